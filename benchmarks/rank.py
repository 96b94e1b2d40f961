# SPDX-License-Identifier: BSD-3-Clause
"""Measure how often `rank_selection` chooses the true rank: python benchmarks/rank.py.

Data are drawn from a topic model (1,000 documents of 400 or 100 words, a vocabulary of 800, 5, 10
or 20 topics, 5 seeds each) and as independent counts, whose rank is 1. Ranks 1 to 28 are
tried. Over-dispersed counts are drawn from the same model with a dispersion of 0.3 and 1 (400
documents of 800 words, a vocabulary of 300, 4, 7 or 10 topics, 5 seeds each); ranks 1 to 16 are
tried. A line of JSON per data set is appended to results/rank.jsonl; data sets in it are skipped.
The treatment of dispersion was chosen on seeds 1 to 3 with 3 to 12 topics; the seeds of the
over-dispersed counts here begin at 100.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sipower import KLNMF, rank_selection
from sipower.datasets import negative_binomial_topics, poisson, poisson_topics

RESULTS = Path(__file__).parent / "results" / "rank.jsonl"
KEYS = ("length", "true", "seed", "dispersion")
RANKS, DISPERSED_RANKS = range(1, 29), range(1, 17)
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
    for dispersion in (0.3, 1.0):
        for K in (4, 7, 10):
            for seed in SEEDS:
                name = {"length": 800, "true": K, "seed": 100 + seed, "dispersion": dispersion}
                settings = {"alpha": 0.2, "beta": 0.1, "length": 800, "seed": 100 + seed}
                settings["dispersion"] = dispersion
                yield (
                    name,
                    lambda K=K, settings=settings: negative_binomial_topics(
                        400, 300, K, **settings
                    ),
                )


def identity(row: dict[str, Any]) -> tuple[float, ...]:
    """Return the values that identify a data set."""
    return tuple(row.get(key, 0) for key in KEYS)


def main() -> None:
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    finished = {identity(row) for row in rows}
    model = KLNMF(tol=1e-2, random_state=0, dtype=np.float32)
    for name, draw in problems():
        if identity(name) in finished:
            continue
        ranks = DISPERSED_RANKS if "dispersion" in name else RANKS
        selection = rank_selection(draw(), ranks, model, replicates=REPLICATES)
        errors = selection.deviance.mean(axis=1).round(5).tolist()
        row = name | {"best": selection.best, "errors": errors}
        rows.append(row)
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(name, "->", selection.best, flush=True)
    for length, truth, dispersion in sorted(
        {identity(row)[:2] + identity(row)[3:] for row in rows}
    ):
        of_kind = (row for row in rows if identity(row)[:2] == (length, truth))
        ranks = [row["best"] for row in of_kind if row.get("dispersion", 0) == dispersion]
        near = sum(abs(rank - truth) <= 1 for rank in ranks)
        print(
            f"length {length}, true rank {truth}, dispersion {dispersion}: {near} of {len(ranks)} "
            f"within 1: {ranks}"
        )


if __name__ == "__main__":
    main()
