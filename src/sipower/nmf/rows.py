# SPDX-License-Identifier: BSD-3-Clause
"""`profile`: compute the exact W for H, and the sums over its rows that an update of H needs."""

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
    g
        Ratio sums Σ_i (v_i ⊘ z_i) w_iᵀ of the features, (m, K), with z_i = H w_i.
    d
        Column sums of W, (K,).
    value
        Divergence D(V ‖ W Hᵀ).
    gap
        Sum of the certified gaps of the rows.
    """

    W: Array
    g: Array
    d: Array
    value: float
    gap: float


def profile(V: Any, H: Array) -> Profile:
    """Return the exact W for the rows of V (n, m) and H (m, K), with the sums over the rows."""
    rows = KLBlock(V, H)
    W, gaps, _ = rows.solution(ROW_TOL)
    W = W.astype(V.dtype)
    columns = KLBlock(V.columns, W)
    gap = float((rows.c * gaps).sum())
    return Profile(W, columns.ratio_sums(H), columns.d, rows.divergence(W), gap)


def feature_gap(H: Array, rows: Profile, c: Array) -> float:
    """Return an upper bound on the possible decrease of D if only H changes.

    The bound uses only the sums in `rows` and the masses `c` of the features, (m,). It first scales
    each feature to its mass, to s_j h_j with s_j = c_j/(d·h_j), which divides g_j by s_j.
    """
    mass = H.astype(np.float64) @ rows.d
    scale = np.divide(c, mass, out=np.ones_like(mass), where=mass > 0)
    G = multiplier(rows.g, rows.d).max(axis=1) / np.where(scale > 0, scale, 1)
    return float((kl_div(c, mass) + c * np.maximum(G - 1, 0)).sum())


def multiplier(g: Array, d: Array) -> Array:
    """Return G = g/d, with zeros where d is zero."""
    return np.divide(g, d, out=np.zeros_like(g), where=d > 0)
