# SPDX-License-Identifier: BSD-3-Clause
"""Measure how often `rank_selection` chooses the true rank: python benchmarks/rank.py.

Data are drawn from a topic model (1,000 documents of 400 or 100 words, a vocabulary of 800, 5, 10
or 20 topics, 5 seeds each) and as independent counts, whose rank is 1. Ranks 1 to 28 are
tried. A line of JSON per data set is appended to results/rank.jsonl; data sets in it are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sipower import KLNMF, rank_selection
from sipower.datasets import poisson, poisson_topics

RESULTS = Path(__file__).parent / "results" / "rank.jsonl"
RANKS = range(1, 29)
REPLICATES = 3
SEEDS = range(5)


def problems() -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the length, true rank and seed of each data set, and a function that draws it."""
    for length in (400, 100):
        for K in (5, 10, 20):
            for seed in SEEDS:
                name = {"length": length, "true": K, "seed": seed}
                yield (
                    name,
                    lambda K=K, length=length, seed=seed: poisson_topics(
                        1000, 800, K, length=length, seed=seed
                    ),
                )
    for seed in SEEDS:
        name = {"length": 400, "true": 1, "seed": seed}
        yield name, lambda seed=seed: poisson(1000, 800, 1 - np.exp(-0.5), seed=seed)


def main() -> None:
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    finished = {(row["length"], row["true"], row["seed"]) for row in rows}
    model = KLNMF(tol=1e-2, random_state=0, dtype=np.float32)
    for name, draw in problems():
        if tuple(name.values()) in finished:
            continue
        selection = rank_selection(draw(), RANKS, model, replicates=REPLICATES)
        errors = selection.deviance.mean(axis=1).round(5).tolist()
        row = name | {"best": selection.best, "errors": errors}
        rows.append(row)
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(name, "->", selection.best, flush=True)
    for length, truth in sorted({(row["length"], row["true"]) for row in rows}):
        ranks = [r["best"] for r in rows if (r["length"], r["true"]) == (length, truth)]
        near = sum(abs(rank - truth) <= 1 for rank in ranks)
        print(f"length {length}, true rank {truth}: {near} of {len(ranks)} within 1: {ranks}")


if __name__ == "__main__":
    main()
