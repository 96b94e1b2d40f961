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

in which the logarithm of S couples the features. At the current H′ it is bounded from above, by its
tangent where A_k ≥ B_k and by the concavity of the logarithm elsewhere:

    (A_k − B_k) log S_k  ≤  (A_k − B_k) (S_k/S′_k − 1) + (A_k − B_k) log S′_k
    (A_k − B_k) log S_k  ≤  −(B_k − A_k) Σ_j φ′_jk log(H_jk/φ′_jk)

Both bounds touch at H′. The first adds to the linear term d, the second to the prior counts, so an
update of H that does not raise the bound does not raise the objective either, and every feature
still has a problem of its own. The second bound does not see that a zero should grow, so `floor`
keeps H positive where W has prior counts.

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

__all__ = ["PriorCounts"]

Float = NDArray[np.float64]
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
        S = _sums(x.H)
        value = self.rate_penalty(x)
        if self.rows is not None:
            value -= float(xlogy(self.rows, x.W * S).sum())
        if self.columns is not None:
            H = x.H.astype(np.float64, copy=False)
            profile = np.divide(H, S, out=np.zeros(H.shape), where=S > 0)
            value -= float(xlogy(self.columns, profile).sum())
        return value

    def rate_penalty(self, x: Factors) -> float:
        """Return the part Σ_ik τ_i w̃_ik of P, which is linear in W."""
        return 0.0 if self.rates is None else float((self.rates @ x.W) @ _sums(x.H))

    def linear_terms(self, side: int, x: Factors) -> Float | None:
        """Return what is added to d of W (side 0) or of H (side 1), (items, K) or (K,)."""
        S = _sums(x.H)
        if side == 0:
            return None if self.rates is None else self.rates[:, None] * S
        A, B = self._totals(x)
        linear = _divide(np.maximum(A - B, 0), S)
        return linear if self.rates is None else linear + self.rates @ x.W

    def counts(self, side: int, x: Factors) -> Float | None:
        """Return the prior counts of the items of W (side 0) or of H (side 1)."""
        if side == 0:
            return self.rows
        A, B = self._totals(x)
        if not (B > A).any():
            return self.columns
        extra = _divide(np.maximum(B - A, 0), _sums(x.H)) * x.H
        return extra if self.columns is None else self.columns + extra

    def multipliers(self, H: Array, g: Float, d: Float) -> Float:
        """Return the multipliers μ of the constraints that every S_k keeps its value, (K,).

        Given W, the profiles are the solution of a convex problem with these constraints. For any
        μ, the problems of the features with d + μ instead of d give a lower bound of its minimum.
        At a solution, H_jk (d_jk + μ_k − g_jk) = a_jk, so the sum over j gives μ. No d + μ may be
        negative.

        Parameters
        ----------
        H, g, d
            Components (m, K), their ratio sums (m, K) and linear terms, (K,) or (m, K).
        """
        A = 0.0 if self.columns is None else self.columns.sum(axis=0)
        multipliers = _divide(A + (H * (g - d)).sum(axis=0), _sums(H))
        return np.maximum(multipliers, -(d if d.ndim == 1 else d.min(axis=0)))

    def lift_unseen(self, H: Array) -> None:
        """Make the entries of H positive that have prior counts, in place."""
        if self.columns is None:
            return
        A = np.maximum(self.columns.sum(axis=0), np.finfo(float).tiny)
        lifted = np.asarray(SHARE_OF_UNSEEN * _sums(H) * self.columns / A, H.dtype)
        np.copyto(H, lifted, where=(self.columns > 0) & (H == 0))

    def floor(self, H: Array) -> Array | None:
        """Return the smallest values that H may have, (K,); None: zero."""
        return None if self.rows is None else np.asarray(FLOOR * _sums(H), H.dtype)

    def tilt(self, H: Array) -> None:
        """Add the uneven part of the prior to a random H, half of every such profile, in place."""
        if self.columns is None:
            return
        uneven = self.columns - self.columns.min(axis=0)
        total = uneven.sum(axis=0)
        H += (_divide(_sums(H), total) * uneven).astype(H.dtype)

    def _totals(self, x: Factors) -> tuple[Float, Float]:
        """Return A and B, (K,)."""
        zero = np.zeros(x.H.shape[1])
        A = zero if self.columns is None else self.columns.sum(axis=0)
        if self.rows is None:
            return A, zero
        return A, self.rows.sum(axis=0) if self.rows.ndim == 2 else len(x.W) * self.rows


def _sums(H: Array) -> Float:
    return np.asarray(H.sum(axis=0, dtype=np.float64))


def _divide(a: Float, b: Float) -> Float:
    """Return a/b, zero where b is zero."""
    return np.divide(a, b, out=np.zeros(np.shape(a)), where=b > 0)
