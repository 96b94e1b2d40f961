# SPDX-License-Identifier: BSD-3-Clause
"""`profile`: solve all rows exactly for H and return the sums that an update of H needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div

from sipower.kernels import Array
from sipower.problems.kl import KLBlock

__all__ = ["Profile", "feature_gap", "multiplier", "profile"]

ROW_TOL = 1e-6  # certified gap to which each row is solved


class Profile(NamedTuple):
    """The exact solution of the row problems for H, and sums over the rows.

    Attributes
    ----------
    W
        Solution of the row problems, (n, K).
    g, d
        Ratio sums of the features, (m, K), and column sums of W, (K,).
    value, gap
        Divergence D(V ‖ W Hᵀ), and the sum of the certified gaps of the rows.
    """

    W: Array
    g: Array
    d: Array
    value: float
    gap: float


def profile(V: Any, H: Array) -> Profile:
    """Solve the rows of V (n, m) for H (m, K) and return the sums over them."""
    rows = KLBlock(V, H)
    W, gaps, _ = rows.solution(ROW_TOL)
    W = W.astype(V.dtype)
    columns = KLBlock(V.columns, W)
    gap = float((rows.c * gaps).sum())
    return Profile(W, columns.ratio_sums(H), columns.d, rows.divergence(W), gap)


def feature_gap(H: Array, rows: Profile, c: Array) -> float:
    """Return an upper bound on the possible decrease of D if only H changes.

    Only the sums in `rows` and the masses `c` of the features, (m,), are needed: a feature that is
    scaled to its mass, s_j h_j with s_j = c_j/(d·h_j), has the ratio sums g_j/s_j.
    """
    mass = H.astype(np.float64) @ rows.d
    scale = np.divide(c, mass, out=np.ones_like(mass), where=mass > 0)
    G = multiplier(rows.g, rows.d).max(axis=1) / np.where(scale > 0, scale, 1)
    return float((kl_div(c, mass) + c * np.maximum(G - 1, 0)).sum())


def multiplier(g: Array, d: Array) -> Array:
    """Return G = g/d, zero where d is zero."""
    return np.divide(g, d, out=np.zeros_like(g), where=d > 0)
