# SPDX-License-Identifier: BSD-3-Clause
"""`profile`: compute the exact W for H, and the sums over its rows that an update of H needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div

from sipower.kernels import Array
from sipower.nmf.factors import Factors
from sipower.nmf.row_sums import RowSums
from sipower.nmf.terms import PLAIN, ModelTerms
from sipower.problems.item_terms import Float, Terms, certify
from sipower.problems.kl import KLBlock

__all__ = ["Profile", "feature_gap", "feature_gaps", "multiplier", "profile"]

ROW_TOL = 1e-6  # certified gap to which each row is solved


class Profile(NamedTuple):
    """The exact solution of the row problems for H, and sums over the rows.

    Attributes
    ----------
    W
        Solution of the row problems, (n, K).
    g
        Ratio sums Σ_i (v_i ⊘ z_i) w_iᵀ of the features, (m, K), with z_i = H w_i.
    sums
        What the terms of the features need of W.
    value
        Divergence D(V ‖ W Hᵀ), the penalties of W and, in the profile of a problem, those of H.
    gap
        Sum of the certified gaps of the rows.
    penalty
        The part of the value that is not the divergence.
    """

    W: Array
    g: Array
    sums: RowSums
    value: float
    gap: float
    penalty: float

    @property
    def d(self) -> Array:
        """Linear terms of the features: the column sums of W, (K,), or (m, K)."""
        return np.asarray(self.sums.d)

    def add_feature_penalty(self, terms: ModelTerms, H: Array) -> Profile:
        """Return the profile with the penalties of H in its value."""
        penalty = terms.feature_penalty(H)
        return self._replace(value=self.value + penalty, penalty=self.penalty + penalty)


def profile(V: Any, H: Array, terms: ModelTerms = PLAIN) -> Profile:
    """Return the exact W for the rows of V (n, m) and H (m, K), with the sums over the rows.

    The value does not contain the penalties of H, because they are no sum over rows.
    """
    rows = KLBlock(V, H, terms=terms.row_terms(H))
    W, gaps, _ = rows.solution(ROW_TOL)
    x = Factors(W.astype(V.dtype), H)
    sums = terms.sums(x.W)
    columns = KLBlock(V.columns, x.W, terms=Terms(sums.d))
    sums.weighted[2:] = terms.row_penalties(x.W)
    gap, penalty = float((rows.mass * gaps).sum()), terms.row_penalty(x)
    value = terms.row_objective(rows, x)
    return Profile(x.W, columns.ratio_sums(H), sums._replace(d=columns.d), value, gap, penalty)


def feature_gap(H: Array, rows: Profile, c: Array, terms: ModelTerms = PLAIN) -> float:
    """Return an upper bound on the possible decrease of the objective if only H changes.

    The bound uses only the sums in `rows` and the masses `c` of the features, (m,).
    """
    return float(feature_gaps(H, rows.g, rows.sums, c, terms).sum())


def feature_gaps(H: Array, g: Array, sums: RowSums, c: Array, terms: ModelTerms) -> Float:
    """Return the certified gap of every feature, given W, from sums over the rows of W.

    With prior counts the sums of the components are fixed, so their gap is that of a convex
    problem with constraints.
    """
    if terms.prior is None:
        own = terms.feature_terms(H, sums)
        return _linear_gaps(H, g, own.d, c) if own.is_linear else certify(own, g, H, c)
    own = terms.terms_of_profiles(sums)
    d: Any = own.d
    return certify(own._replace(d=d + terms.prior.multipliers(H, g, d)), g, H, c)


def _linear_gaps(H: Array, g: Array, d: Any, c: Array) -> Float:
    """Return the gaps if d is the only term.

    Each feature is first scaled to its mass, to s_j h_j with s_j = c_j/(d·h_j), which divides g_j
    by s_j.
    """
    H = H.astype(np.float64)
    mass = H @ d if d.ndim == 1 else np.einsum("jk,jk->j", H, d)
    scale = np.divide(c, mass, out=np.ones_like(mass), where=mass > 0)
    G = multiplier(g, d).max(axis=1) / np.where(scale > 0, scale, 1)
    return np.asarray(kl_div(c, mass) + c * np.maximum(G - 1, 0))


def multiplier(g: Array, d: Array) -> Array:
    """Return G = g/d, with zeros where d is zero."""
    return np.divide(g, d, out=np.zeros_like(g), where=d > 0)
