# SPDX-License-Identifier: BSD-3-Clause
"""`Factors`, a point of KL-NMF, and the checks and scalings that keep it within range."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sipower.kernels import FLOOR, Array

__all__ = ["Factors", "balancing_scale", "check_shapes", "lift_zeros"]

MAX_DRIFT = 24  # log2 of the largest allowed ratio of the column sums of W and H


class Factors(NamedTuple):
    """A point of KL-NMF: V ≈ W Hᵀ, both factors stored as (items, K)."""

    W: Array
    H: Array


def check_shapes(x: Factors, shape: tuple[int, int], rank: int) -> None:
    """Check that the factors match the shape of the data and are finite and non-negative."""
    expected = ((shape[0], rank), (shape[1], rank))
    if (x.W.shape, x.H.shape) != expected:
        raise ValueError(
            f"`x0` must hold W and H of shapes {expected}, got {x.W.shape} and {x.H.shape}."
        )
    if not all(np.isfinite(factor).all() and (factor >= 0).all() for factor in x):
        raise ValueError("W and H of `x0` must be finite and non-negative.")


def balancing_scale(W: Array, h: Array) -> Array | None:
    """Return powers of two that balance the scales of W and H, or None if that is not needed.

    The caller must divide the columns of W and multiply the columns of H by these numbers, (K,).
    `h` holds the column sums of H, (K,).
    """
    w = (np.ones(len(W), W.dtype) @ W).astype(np.float64)  # a matrix product is faster than a sum
    alive = (w > 0) & (h > 0) & np.isfinite(w)
    log_ratio = np.log2(np.where(alive, w, 1.0)) - np.log2(np.where(alive, h, 1.0))
    unbalanced = np.abs(log_ratio) > MAX_DRIFT
    if not unbalanced.any():
        return None
    return np.asarray(np.where(unbalanced, np.exp2(np.round(log_ratio / 2)), 1.0).astype(W.dtype))


def lift_zeros(factor: Array, d: Array, mass: Array) -> None:
    """Raise exact zeros of a factor to a small share of their item's mass, in place.

    An item that has positive counts but only zeros in its factor would make D infinite. `d` holds
    the column sums of the other factor, (K,); `mass` holds the masses of the items. An item without
    mass is set to zero.
    """
    largest = factor.max()
    for k in range(factor.shape[1]):
        zero = factor[:, k] == 0
        floor = FLOOR * mass[zero] / d[k] if d[k] > 0 else FLOOR * largest
        factor[zero, k] = np.minimum(floor, largest)
    factor[mass == 0] = 0
