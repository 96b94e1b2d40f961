# SPDX-License-Identifier: BSD-3-Clause
"""The start that all solvers share."""

from __future__ import annotations

import numpy as np

from sipower import Stop, solve
from sipower.nmf import MU, Alternating, Factorization


def common_start(problem: Factorization, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return W (n, K) and H (K, m) after 5 multiplicative rounds from Uniform(0, 1), H first.

    The rounds and the random numbers are in float64.
    """
    (n, m), K = problem.V.shape, problem.rank
    rng = np.random.default_rng(seed)
    W, H = rng.random((n, K)), rng.random((K, m)).T
    x = solve(problem, Alternating(MU()), (W, H), stop=Stop(0, rounds=5)).x
    return x.W, np.ascontiguousarray(x.H.T)
