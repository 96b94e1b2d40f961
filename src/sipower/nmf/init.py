# SPDX-License-Identifier: BSD-3-Clause
"""Starts for KL-NMF."""

from __future__ import annotations

import numpy as np

from sipower.kernels import Array, Draw
from sipower.matrix import Matrix

__all__ = ["random_factors"]

STREAM = 2  # of the random numbers; the solvers' batches have stream 0


def random_factors(V: Matrix, rank: int, seed: int) -> tuple[Array, Array]:
    """Uniform(0, 1) factors, scaled so that W Hᵀ has the mean of V."""
    scale = 2 * np.sqrt(V.total / (V.shape[0] * V.shape[1] * rank))
    sides = enumerate(V.shape)
    W, H = (scale * Draw(seed, STREAM, side=s).uniform(n, rank) for s, n in sides)
    return W.astype(V.dtype), H.astype(V.dtype)
