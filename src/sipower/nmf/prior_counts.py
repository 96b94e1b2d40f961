# SPDX-License-Identifier: BSD-3-Clause
"""`PriorCounts`: prior counts of the weights of samples and of the profiles of components.

    P(W, H) = Σ_ik [τ_i w̃_ik − b_ik log w̃_ik] − Σ_jk a_jk log φ_jk,
    w̃_ik = W_ik S_k,   φ_jk = H_jk/S_k,   S_k = Σ_j H_jk

is added to the divergence. φ is the profile of a component, which sums to 1, and w̃ are the counts
of a sample that belong to a component. The prior of a profile is a Dirichlet distribution with the
parameters 1 + a. The prior of a weight is a Gamma distribution with shape 1 + b_ik and rate
τ_i = Σ_k b_ik/c_i, for which the expected total of a sample remains its total c_i: on complete data
the shares of the components in a sample have a Dirichlet prior with the parameters 1 + b.

P does not change if W_k is multiplied and H_k divided by a number, so a fit may scale both as it
likes. Given W, P depends on H through a_jk and through S_k. With A_k = Σ_j a_jk, B_k = Σ_i b_ik and
R_k = Σ_i τ_i W_ik it is

    Σ_k [R_k S_k + (A_k − B_k) log S_k] − Σ_jk a_jk log H_jk + a constant,

in which the logarithm of S couples the features. At the current H′ it is replaced by its tangent,
which adds (A_k − B_k)/S′_k to the linear term d of every feature. Where A_k ≥ B_k the tangent is an
upper bound: an update of H that lowers it lowers the objective. Elsewhere it is one to first order
only. There the concavity of the logarithm gives an upper bound,

    −(B_k − A_k) log S_k  ≤  −(B_k − A_k) Σ_j φ′_jk log(H_jk/φ′_jk),

which adds prior counts to every feature. It is safe but slow, as it does not see that a zero should
grow (`floor` keeps H positive where W has prior counts), so it is used where a step must descend.
In both cases every feature has a problem of its own.

======  ==========================================  ==============
symbol  meaning                                     shape
======  ==========================================  ==============
b       prior counts of the weights of a sample     (K,) or (n, K)
τ       rates of the weights                        (n,)
a       prior counts of the profiles                (m, K)
S       sums of the components                      (K,)
======  ==========================================  ==============
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from sipower.kernels import FLOOR, Array
from sipower.nmf.factors import Factors
from sipower.nmf.row_sums import RowSums

__all__ = ["PriorCounts"]

Float = NDArray[np.float64]
MIN_LINEAR_SHARE = 0.1  # of d that the tangent must leave
LARGEST = 1e300  # multiplier
SHARE_OF_UNSEEN = 1e-3  # of a profile, at the start, for features that have prior counts alone


@dataclass(frozen=True, eq=False)
class PriorCounts:
    """The prior counts of W and of H.

    Parameters
    ----------
    rows, rates
        b and τ; None: W has no prior counts.
    columns
        a, zero where H is fixed; None: H has no prior counts.
    """

    rows: Float | None = None
    rates: Float | None = None
    columns: Float | None = None

    def penalty(self, x: Factors) -> float:
        """Return P(W, H)."""
        return self.rate_penalty(x) + self.count_penalty(x) + self.profile_penalty(x.H)

    def count_penalty(self, x: Factors) -> float:
        """Return the part −Σ_ik b_ik log w̃_ik of P."""
        return 0.0 if self.rows is None else -float(xlogy(self.rows, x.W * _sums(x.H)).sum())

    def profile_penalty(self, H: Array) -> float:
        """Return the part −Σ_jk a_jk log φ_jk of P."""
        if self.columns is None:
            return 0.0
        H, S = H.astype(np.float64, copy=False), _sums(H)
        profile = np.divide(H, S, out=np.zeros(H.shape), where=S > 0)
        return -float(xlogy(self.columns, profile).sum())

    def rate_penalty(self, x: Factors) -> float:
        """Return the part Σ_ik τ_i w̃_ik of P, which is linear in W."""
        return 0.0 if self.rates is None else float((self.rates @ x.W) @ _sums(x.H))

    def row_sums(self, W: Array) -> Float:
        """Return R and B, which the terms of the features need of W, (2, K)."""
        sums = np.zeros((2, W.shape[1]))
        if self.rates is not None:
            sums[0] = self.rates @ W
        if self.rows is not None:
            sums[1] = self.rows.sum(axis=0) if self.rows.ndim == 2 else len(W) * self.rows
        return sums

    def row_terms(self, H: Array) -> tuple[Float | None, Float | None]:
        """Return what is added to d of the samples, (n, K), and their prior counts.

        A component that is zero gets none: no W makes its objective, which is infinite, smaller.
        """
        S, rows = _sums(H), self.rows
        if rows is not None and not S.all():
            rows = np.where(S > 0, rows, 0.0)
        return None if self.rates is None else self.rates[:, None] * S, rows

    def feature_terms(
        self, H: Array, sums: RowSums, d: Float, *, safe: bool
    ) -> tuple[Float, Float | None]:
        """Return what is added to d of the features, (K,), and their prior counts.

        Parameters
        ----------
        H
            Current H.
        sums
            Sums over the rows of W.
        d
            Linear terms of the features without prior counts, (K,) or (m, K).
        safe
            Whether the terms must bound the objective from above.
        """
        S, B, R = _sums(H), sums.prior, sums.rates
        A = np.zeros(H.shape[1]) if self.columns is None else self.columns.sum(axis=0)
        tangent = R + _divide(A - B, S)
        smallest = d if d.ndim == 1 else d.min(axis=0)
        is_bounded = (B > A) & (safe | (smallest + tangent < MIN_LINEAR_SHARE * smallest))
        if not is_bounded.any():
            return tangent, self.columns
        extra = np.where(is_bounded, _divide(B - A, S), 0) * H
        counts = extra if self.columns is None else self.columns + extra
        return np.where(is_bounded, R, tangent), counts

    def multipliers(
        self, H: Array, g: Float, d: Float, sums: RowSums, fixed: NDArray[np.bool_] | None
    ) -> Float:
        """Return the multipliers μ of the constraints that S_k keeps its value, (K,).

        Given W, the profiles are the solution of a convex problem with these constraints. For any
        μ, the problems of the features with d + μ instead of d give a lower bound of its minimum.
        At a solution, H_jk (d_jk + μ_k − g_jk) = a_jk, so the sum over j gives μ. Elsewhere μ is
        raised until d + μ ≥ (g + a/S)/2, because the bound is infinite if d + μ is not positive. At
        a solution d + μ = g + a/H is larger. The problem of components without prior counts is
        convex without a constraint: their μ is the rate R of their weights.

        Parameters
        ----------
        H, g, d
            Components (m, K), their ratio sums (m, K) and linear terms, (K,) or (m, K).
        sums
            Sums over the rows of W.
        fixed
            Entries of H that are given, which have no constraint, (m, K).
        """
        S, a = _sums(H), np.zeros((1, H.shape[1])) if self.columns is None else self.columns
        change = np.zeros(H.shape)  # also where H is zero and g is infinite
        np.multiply(H, g - d, out=change, where=H > 0)
        multipliers = _divide(a.sum(axis=0) + change.sum(axis=0), S)
        free = True if fixed is None else ~fixed
        smallest = np.max((g + _divide(a, S)) / 2 - d, axis=0, where=free, initial=-np.inf)
        is_constrained = a.sum(axis=0) + sums.prior > 0
        return np.where(is_constrained, np.clip(multipliers, smallest, LARGEST), sums.rates)

    def lift_unseen(self, H: Array) -> None:
        """Make the entries of H positive that have prior counts, in place."""
        if self.columns is None:
            return
        A = np.maximum(self.columns.sum(axis=0), np.finfo(float).tiny)
        lifted = np.asarray(SHARE_OF_UNSEEN * _sums(H) * self.columns / A, H.dtype)
        np.copyto(H, lifted, where=(self.columns > 0) & (H == 0))

    def restart_empty(self, H: Array, c: Float, fixed: NDArray[np.bool_] | None) -> None:
        """Give components that are zero the profile of the data, in place; see `lift_unseen`.

        The prior of such a component is infinite, and no update changes it. `c` holds the masses of
        the features, (m,); entries that are `fixed` stay zero.
        """
        empty = ~H.any(axis=0)
        if not empty.any():
            return
        profile = c / c.sum() + SHARE_OF_UNSEEN / len(c)
        allowed = True if fixed is None else ~fixed[:, empty]
        H[:, empty] = np.where(allowed, profile[:, None], 0.0)

    def floor(self, H: Array) -> Array | None:
        """Return the smallest values that H may have, (K,); None: zero."""
        return None if self.rows is None else np.asarray(FLOOR * _sums(H), H.dtype)


def _sums(H: Array) -> Float:
    return np.asarray(H.sum(axis=0, dtype=np.float64))


def _divide(a: Float, b: Float) -> Float:
    """Return a/b, zero where b is zero."""
    return np.divide(a, b, out=np.zeros(np.shape(a)), where=b > 0)
