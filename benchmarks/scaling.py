# SPDX-License-Identifier: BSD-3-Clause
"""What a pass and a round cost against nonzeros, components and threads, in memory and on disk.

    python benchmarks/scaling.py FOLDER        (FOLDER as for out_of_core.py; best of 3, in turns)

A pass is one gradient of one factor, a round of `auto` near its end two sweeps of coordinate
descent on both factors and one value, a round of `profile` all rows solved anew. float32.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from common import best_seconds
from out_of_core import made

from sipower import as_matrix
from sipower.data.memory import Matrix
from sipower.io import open_store
from sipower.nmf import Auto, Factorization, Factors
from sipower.nmf.rows import profile
from sipower.problems.kl import KLBlock

SIZES, RANKS = (4e6, 12e6, 40e6), (5, 10, 20, 50, 100)


def actions(V: Matrix, rank: int) -> dict[str, object]:
    """A pass over the rows, a round of auto's second phase, and a profiled round."""
    rng = np.random.default_rng(0)
    W, H = (rng.random((n, rank), np.float32) + 0.1 for n in V.shape)
    problem = Factorization(V, rank)
    state = Auto(near=True).init(problem, Factors(W, H), 0)
    for _ in range(2):
        state = Auto(near=True).advance(problem, state)
    return {
        "pass": lambda: KLBlock(V, H).ratio_sums(W),
        "round of auto": lambda: Auto(near=True).advance(problem, state),
        "round of profile": lambda: profile(V, state.H),
    }


def line(label: str, V: Matrix, rank: int) -> None:
    """Nanoseconds a nonzero of each."""
    found = best_seconds(actions(V, rank), repeats=3)  # type: ignore[arg-type]
    cells = " | ".join(f"{1e9 * seconds / V.nnz:7.2f}" for seconds in found.values())
    print(f"| {label:34} | {V.nnz / 1e6:6.1f} | {rank:4} | {V.threads:2} | {cells} |", flush=True)


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print("| data | million nonzeros | K | threads | pass | round of auto | round of profile |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        store = open_store(made(folder, size), dtype="float32", memory_limit="48MB")
        whole = as_matrix(store.rows(0, store.shape[0]), dtype=np.float32)
        line("memory", whole, 20)
        line("disk, 48 MB", store, 20)
        if size == SIZES[1]:
            line("memory", as_matrix(whole, n_jobs=1), 20)
            for rank in RANKS:
                line("memory", whole, rank)


if __name__ == "__main__":
    main()
