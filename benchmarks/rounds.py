# SPDX-License-Identifier: BSD-3-Clause
"""Time a round of both phases of `auto` against nonzeros, K and threads.

    SIPOWER_DATA=... python benchmarks/rounds.py

Results are written to benchmarks/results/curves.jsonl.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import RANK, paper_data

from sipower import as_matrix
from sipower.nmf import Extrapolated, Factorization, make_solver

FILE = Path(__file__).parent / "results" / "curves.jsonl"


def time_rounds(V: Any, rank: int, threads: int) -> dict[str, float]:
    """Return the seconds of a round of both phases of `auto`, best of eight."""
    problem = Factorization(as_matrix(V, dtype=np.float32, n_jobs=threads), rank)
    power, newton = make_solver("sci-pi").solver, Extrapolated(make_solver("newton").rule)
    best = {}
    for label, solver in (("sci-pi", power), ("newton", newton)):
        state, times = solver.init(problem, None, 0), []
        for _ in range(8):
            before = time.perf_counter()
            state = solver.advance(problem, state)
            times.append(time.perf_counter() - before)
        best[label] = min(times)
    return best


def time_scaling() -> list[dict[str, Any]]:
    """Return the cost of a round against nonzeros, K and threads."""
    rows = []
    for nnz in (100_000, 300_000, 1_000_000, 3_000_000):
        V = sp.random_array((nnz // 50, 5000), density=0.01, random_state=0, format="csr")
        V.data[:] = np.random.default_rng(0).poisson(2.0, V.nnz) + 1
        rows.append({"nnz": V.nnz, "rank": RANK, "threads": 1} | time_rounds(V, RANK, 1))
    V = paper_data("nips")
    rows += [
        {"nnz": V.nnz, "rank": k, "threads": 1} | time_rounds(V, k, 1) for k in (2, 8, 20, 32, 64)
    ]
    for name in ("nips", "wt"):
        V = paper_data(name)
        rows += [
            {"set": name, "rank": RANK, "threads": t} | time_rounds(V, RANK, t) for t in (1, 2)
        ]
    return rows


def main() -> None:
    rows = time_scaling()
    for row in rows:
        print({k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()})
    FILE.write_text("".join(json.dumps(r) + "\n" for r in rows))


if __name__ == "__main__":
    main()
