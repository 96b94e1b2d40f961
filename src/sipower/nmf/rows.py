# SPDX-License-Identifier: BSD-3-Clause
"""The rows solved exactly for H, and the H-sized sums over them that an update of H needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div

from sipower.kernels import Array
from sipower.problems.kl import KLBlock

__all__ = ["Profile", "gap_of_features", "multiplier", "profile"]

ROW_TOL = 1e-6  # certified gap of the rows


class Profile(NamedTuple):
    """What the rows tell of H: their W, the sums, D and the sum of the rows' certified gaps."""

    W: Array
    g: Array
    d: Array
    value: float
    gap: float


def profile(V: Any, H: Array) -> Profile:
    """Solve the rows of V for H and add up what H needs of them."""
    rows = KLBlock(V, H)
    W, gaps, _ = rows.solution(ROW_TOL)
    W = W.astype(V.dtype)
    columns = KLBlock(V.columns, W)
    gap = float((rows.c * gaps).sum())
    return Profile(W, columns.ratio_sums(H), columns.d, rows.divergence(W), gap)


def gap_of_features(H: Array, found: Profile, c: Array) -> float:
    """How far D can fall by changing H alone, at most; from the sums alone.

    At its mass, h_j s_j with s_j = c_j/(d·h_j), the ratio sums of a feature are g_j/s_j.
    """
    mass = H.astype(np.float64) @ found.d
    scale = np.divide(c, mass, out=np.ones_like(mass), where=mass > 0)
    G = multiplier(found.g, found.d).max(axis=1) / np.where(scale > 0, scale, 1)
    return float((kl_div(c, mass) + c * np.maximum(G - 1, 0)).sum())


def multiplier(g: Array, d: Array) -> Array:
    """G = g/d, zero where a component has no weight."""
    return np.divide(g, d, out=np.zeros_like(g), where=d > 0)
