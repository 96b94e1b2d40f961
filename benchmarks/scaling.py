# SPDX-License-Identifier: BSD-3-Clause
"""Measure the cost of a pass and a round against nonzeros, components and threads.

    python benchmarks/scaling.py FOLDER        (as for out_of_core.py; best of 3, interleaved)

A pass is one gradient of one factor. A round of `auto` near its end is two sweeps of coordinate
descent on both factors and one objective value. A round of `rows` visits all rows. Data are in
memory and on disk, in float32.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from common import best_seconds
from out_of_core import ensure_store

from sipower import as_matrix
from sipower.data.memory import Matrix
from sipower.io import open_on_disk
from sipower.nmf import Auto, Factorization, Factors, RowRounds
from sipower.problems.kl import KLBlock

SIZES, RANKS = (4e6, 12e6, 40e6), (5, 10, 20, 50, 100)


def timed_actions(V: Matrix, rank: int) -> dict[str, object]:
    """Return functions for a pass over the rows, a round of auto's second phase and of rows."""
    rng = np.random.default_rng(0)
    W, H = (rng.random((n, rank), np.float32) + 0.1 for n in V.shape)
    problem = Factorization(V, rank)
    state = Auto(near=True).init(problem, Factors(W, H), 0)
    for _ in range(2):
        state = Auto(near=True).advance(problem, state)
    solver = RowRounds(near=True)
    by_row = solver.advance(problem, solver.init(problem, state.x, 0))
    return {
        "pass": lambda: KLBlock(V, H).ratio_sums(W),
        "round of auto": lambda: Auto(near=True).advance(problem, state),
        "round of rows": lambda: solver.advance(problem, by_row),
    }


def print_line(label: str, V: Matrix, rank: int) -> None:
    """Print the nanoseconds per nonzero of each action."""
    times = best_seconds(timed_actions(V, rank), repeats=3)  # type: ignore[arg-type]
    cells = " | ".join(f"{1e9 * seconds / V.nnz:7.2f}" for seconds in times.values())
    print(f"| {label:34} | {V.nnz / 1e6:6.1f} | {rank:4} | {V.threads:2} | {cells} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print("| data | million nonzeros | K | threads | pass | round of auto | round of rows |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        store = open_on_disk(ensure_store(folder, size), dtype="float32", memory_limit="48MB")
        whole = as_matrix(store.rows(0, store.shape[0]), dtype=np.float32)
        print_line("memory", whole, 20)
        print_line("disk, 48 MB", store, 20)
        if size == SIZES[1]:
            print_line("memory", as_matrix(whole, n_jobs=1), 20)
            for rank in RANKS:
                print_line("memory", whole, rank)


if __name__ == "__main__":
    main()
