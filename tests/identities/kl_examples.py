# SPDX-License-Identifier: BSD-3-Clause
"""A KL block without empty items and a half-step of a rule."""

import numpy as np

import oracles
from sipower.nmf.rule import HalfStep

HALF_STEP = HalfStep(step=1.0, seed=3, round=2, side=1)


def positive(n=9, m=14, rank=4, seed=0):
    """A block without empty items, its factor, and the same by the oracle's names."""
    rng = np.random.default_rng(seed)
    V = rng.poisson(3.0, (n, m)) + rng.integers(0, 2, (n, m)) * 1.0
    V[:, 0] += 1
    W, H = oracles.factors(n, m, rank, seed)
    return V, H, W
