# SPDX-License-Identifier: BSD-3-Clause
"""The point of KL-NMF, V ≈ W Hᵀ, and what keeps its numbers within range."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sipower.kernels import FLOOR, Array

__all__ = ["Factors", "check_shapes", "drift", "lift_zeros"]

MAX_DRIFT = 24  # the factors' column sums may differ by this power of two


class Factors(NamedTuple):
    """The point of KL-NMF: V ≈ W Hᵀ, both stored (items, K)."""

    W: Array
    H: Array


def check_shapes(x: Factors, shape: tuple[int, int], rank: int) -> None:
    """Refuse factors that do not fit data of a shape, or that are not finite and non-negative."""
    expected = ((shape[0], rank), (shape[1], rank))
    if (x.W.shape, x.H.shape) != expected:
        raise ValueError(f"W and H have shapes {x.W.shape} and {x.H.shape}, expected {expected}.")
    if not all(np.isfinite(factor).all() and (factor >= 0).all() for factor in x):
        raise ValueError("W and H must be finite and non-negative.")


def drift(W: Array, h: Array) -> Array | None:
    """Return powers of two that W is to be divided and H multiplied by, if scales have drifted.

    `h` are the column sums of H.
    """
    w = (np.ones(len(W), W.dtype) @ W).astype(np.float64)  # a product: faster than a sum
    alive = (w > 0) & (h > 0) & np.isfinite(w)
    apart = np.log2(np.where(alive, w, 1.0)) - np.log2(np.where(alive, h, 1.0))
    far = np.abs(apart) > MAX_DRIFT
    if not far.any():
        return None
    return np.asarray(np.where(far, np.exp2(np.round(apart / 2)), 1.0).astype(W.dtype))


def lift_zeros(factor: Array, d: Array, mass: Array) -> None:
    """Lift exact zeros to FLOOR of their item's mass: one may meet a count, where D is infinite.

    `d` are the column sums of the other factor.
    """
    largest = factor.max()
    for k in range(factor.shape[1]):
        zero = factor[:, k] == 0
        least = FLOOR * mass[zero] / d[k] if d[k] > 0 else FLOOR * largest
        factor[zero, k] = np.minimum(least, largest)
    factor[mass == 0] = 0
