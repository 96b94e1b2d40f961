# SPDX-License-Identifier: BSD-3-Clause
"""Measure the speed of the exact `transform`, and passes of coordinate descent and MU on KOS.

Run: SIPOWER_DATA=... python benchmarks/transform.py
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from common import RANK, common_start, paper_data

from sipower import KLNMF, Stop, as_matrix, solve
from sipower.nmf import MU, RULES, Alternating, Factorization
from sipower.problems import KLBlock

ROWS = 100_000


def time_transform() -> None:
    """Print the speed on 100,000 new rows, each a resampled KOS document."""
    V = paper_data("kos")
    model = KLNMF(RANK, random_state=0, tol=1e-2, n_jobs=1).fit(V)
    rng = np.random.default_rng(0)
    new = sp.csr_array(V)[rng.integers(0, V.shape[0], ROWS)]
    new.data = rng.poisson(new.data).clip(1).astype(float)
    matrix = as_matrix(new, n_jobs=1)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        h = KLBlock(matrix, np.ascontiguousarray(model.components_.T)).solution(1e-6).h
        best = min(best, time.perf_counter() - start)
    gap = KLBlock(matrix, np.ascontiguousarray(model.components_.T)).gaps(h).sum() / matrix.total
    print(f"transform: {matrix.nnz / best / 1e6:.2f} million nonzeros/s and thread, gap {gap:.1e}")


def count_passes_to_gap(tol: float = 1e-3) -> None:
    """Print the passes of several solvers to a gap on KOS."""
    V = paper_data("kos")
    problem, x0 = Factorization(as_matrix(V), RANK), common_start(V)
    mu = solve(problem, Alternating(MU()), x0, stop=Stop(tol, rounds=None, passes=60_000))
    print(f"KOS, gap {tol}: mu {mu.passes:.0f} passes ({mu.status}, gap {mu.residual:.1e})")
    for name in ("ccd", "scd", "auto", "pgd"):
        run = solve(
            problem, Alternating(RULES[name]()), x0, stop=Stop(tol, rounds=None, passes=6_000)
        )
        print(
            f"KOS, gap {tol}: {name} {run.passes:.0f} passes ({run.status}, gap "
            f"{run.residual:.1e}), 1/{mu.passes / run.passes:.0f} of mu; D {run.value:.0f} "
            f"against {mu.value:.0f}"
        )


if __name__ == "__main__":
    time_transform()
    count_passes_to_gap()
