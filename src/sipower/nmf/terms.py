# SPDX-License-Identifier: BSD-3-Clause
"""`ModelTerms`: what the model of a factorisation has besides V, W and H."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Array
from sipower.nmf.exposure import Exposure
from sipower.nmf.factors import Factors
from sipower.nmf.prior_counts import PriorCounts
from sipower.nmf.row_sums import RowSums
from sipower.problems.item_problem import NO_TERMS, ItemProblem, Terms

__all__ = ["PLAIN", "ModelTerms"]


MAX_SCALE_STEPS = 30
MIN_LOG_SCALE = 1e-7  # a smaller change of scale is not worth its rounding errors


@dataclass(frozen=True, eq=False)
class ModelTerms:
    """The terms of both factors; the index of a pair is the side, 0 for W and 1 for H.

    Parameters
    ----------
    exposure
        How much of every entry is observed; None: all of it.
    fixed, values
        Entries of H that keep their value, bool, (m, K), and their values; without `values`, they
        keep those of the start. None: none.
    prior
        Prior counts of W and H; None: none. They exclude `l1` and `ridge`.
    l1, ridge
        L1 penalty, which adds to d, and ridge of W and of H; each a number or one for each item.
    """

    exposure: Exposure | None = None
    fixed: NDArray[np.bool_] | None = None
    values: Array | None = None
    prior: PriorCounts | None = None
    l1: tuple[float | Array, float | Array] = (0.0, 0.0)
    ridge: tuple[float | Array, float | Array] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if self.prior is not None and (self.has_l1 or self.has_ridge):
            raise ValueError("`prior` excludes `l1` and `ridge`, which depend on the scale of H.")

    @property
    def is_plain(self) -> bool:
        """Whether the model is V ≈ W Hᵀ with no other term."""
        return self.exposure is None and self.is_linear and not self.has_l1

    @property
    def is_linear(self) -> bool:
        """Whether the linear terms d are the only ones: no ridge, prior counts or fixed entries."""
        return self.fixed is None and not self.has_ridge and self.prior is None

    @property
    def has_own_d(self) -> bool:
        """Whether every feature has linear terms of its own, before penalties and prior counts."""
        return self.exposure is not None

    @property
    def has_l1(self) -> bool:
        """Whether a factor has an L1 penalty."""
        return any(np.any(l1) for l1 in self.l1)

    @property
    def has_ridge(self) -> bool:
        """Whether a factor has a ridge."""
        return any(np.any(ridge) for ridge in self.ridge)

    @property
    def has_penalty(self) -> bool:
        """Whether the objective has other parts than the divergence: L1, ridge, prior counts."""
        return self.has_l1 or self.has_ridge or self.prior is not None

    def insert_fixed(self, H: Array, start: Array | None = None) -> None:
        """Write the fixed entries into H, in place: the given values, or else those of `start`."""
        values = start if self.values is None else self.values
        if self.fixed is not None and values is not None:
            np.copyto(H, values, where=self.fixed, casting="same_kind")

    def raise_to_floor(self, H: Array) -> None:
        """Raise the free entries of H to the floor that prior counts need, in place."""
        floor = None if self.prior is None else self.prior.floor(H)
        if floor is not None:
            np.maximum(H, floor, out=H, where=True if self.fixed is None else ~self.fixed)

    @property
    def fixed_features(self) -> NDArray[np.bool_] | bool:
        """Features that cannot be scaled in H, (m,): they have fixed entries or prior counts."""
        if self.prior is not None and self.exposure is not None:
            assert self.exposure.effects is not None
            return np.ones(self.exposure.effects.shape[1], bool)
        if self.fixed is None or self.values is None:
            return False
        return np.asarray((self.fixed & (self.values > 0)).any(axis=1))

    def penalty(self, x: Factors) -> float:
        """Return all penalties of W and H: L1, ridge and prior counts."""
        return self.row_penalty(x) + self.feature_penalty(x.H)

    def row_penalty(self, x: Factors) -> float:
        """Return the penalties of W, a sum over its rows."""
        linear = self._l1_penalty(0, x.W) if self.prior is None else self.prior.rate_penalty(x)
        return linear + self._curved_row_penalty(x)

    def feature_penalty(self, H: Array) -> float:
        """Return the penalties of H alone."""
        if self.prior is not None:
            return self.prior.profile_penalty(H)
        ridge = Terms(fixed=self.fixed, ridge=self.ridge[1]).penalty(H)
        return ridge + self._l1_penalty(1, H)

    def _curved_row_penalty(self, x: Factors) -> float:
        """Return the penalties of W that are not part of its linear terms."""
        if self.prior is not None:
            return self.prior.count_penalty(x)
        return Terms(ridge=self.ridge[0]).penalty(x.W)

    def row_objective(self, rows: ItemProblem, x: Factors, *, exact: bool = True) -> float:
        """Return D and the penalties of W; `rows` is the problem of W given H."""
        value = rows.divergence(x.W, exact=exact)
        if self.exposure is not None:
            value = max(value - self.exposure.log_term, 0.0)
        return value + self._curved_row_penalty(x) if self.has_penalty else value

    def normalising_scale(self, H: Array) -> Array:
        """Return the numbers (K,) that give every component the sum 1, and 1 for known ones."""
        sums = H.sum(axis=0, dtype=np.float64)
        scale = np.divide(1.0, sums, out=np.ones_like(sums), where=sums > 0)
        if self.fixed is not None:
            scale[(self.fixed & (H > 0)).any(axis=0)] = 1
        return np.asarray(scale, H.dtype)

    def best_scale(self, H: Array, row_penalties: NDArray[np.float64]) -> Array | None:
        """Return the numbers (K,) that divide W and multiply H with the smallest penalty.

        None: only one factor has a penalty, or the scale is best. With s = 1/scale the penalty of a
        component is a s + b/s + c s²/2 + e/(2 s²), which is convex in log s. `row_penalties` holds
        a and c, (2, K).
        """
        (a, c), (b, e) = row_penalties, self._penalty_sums(1, H)
        moves = (a + c > 0) & (b + e > 0)
        if self.fixed is not None:
            moves &= ~(self.fixed & (H > 0)).any(axis=0)
        t = np.zeros(len(a))
        for _ in range(MAX_SCALE_STEPS):
            up, down = (
                a * np.exp(t) + 2 * c * np.exp(2 * t),
                b * np.exp(-t) + 2 * e * np.exp(-2 * t),
            )
            slope = up - c * np.exp(2 * t) - down + e * np.exp(-2 * t)
            step = np.divide(slope, up + down, out=np.zeros_like(t), where=moves)
            t -= np.clip(step, -1, 1)
        if not (np.abs(t) > MIN_LOG_SCALE).any():
            return None
        return np.asarray(np.exp(-t).astype(H.dtype))

    def row_penalties(self, W: Array) -> NDArray[np.float64]:
        """Return Σ_i λ_i W_ik and Σ_i r_i W_ik² with the L1 penalties λ and ridges r, (2, K)."""
        return self._penalty_sums(0, W)

    def _penalty_sums(self, side: int, factor: Array) -> NDArray[np.float64]:
        sums = np.zeros((2, factor.shape[1]))
        for row, (penalty, power) in enumerate(((self.l1[side], 1), (self.ridge[side], 2))):
            if np.any(penalty):
                sums[row] = self._weighted_sums(penalty, factor**power)
        return sums

    @staticmethod
    def _weighted_sums(penalty: float | Array, factor: Array) -> NDArray[np.float64]:
        """Return Σ_i penalty_i factor_ik, (K,)."""
        weights = np.broadcast_to(np.asarray(penalty, np.float64), len(factor))
        return np.asarray(weights @ factor.astype(np.float64))

    def _l1_penalty(self, side: int, factor: Array) -> float:
        """Return the L1 penalty of W (side 0) or H (side 1); fixed entries count, as in d·h."""
        if not np.any(self.l1[side]):
            return 0.0
        return float((self.l1[side] * factor.sum(axis=1, dtype=np.float64)).sum())

    def of_side(self, side: int, x: Factors, *, safe: bool = True) -> Terms:
        """Return the terms of the convex problem of one side, given the other factor.

        With prior counts of W or H, the terms of H depend on the current H too: those that couple
        the features are replaced by a bound, if `safe`, or else by their tangent.
        """
        if self.is_plain:
            return NO_TERMS
        if side == 0:
            return self.row_terms(x.H)
        return self.feature_terms(x.H, self.sums(x.W), safe=safe)

    def row_terms(self, H: Array) -> Terms:
        """Return the terms of the rows of W, given H."""
        if self.is_plain:
            return NO_TERMS
        d = None if self.exposure is None else self.exposure.linear_terms(0, H)
        linear, prior = (None, None) if self.prior is None else self.prior.row_terms(H)
        if np.any(self.l1[0]) or linear is not None:
            d = H.sum(axis=0, dtype=np.float64) if d is None else d
            d = self._add_l1(0, d) if linear is None else np.asarray(d + linear)
        return Terms(d, prior, None, self.ridge[0])

    def feature_terms(self, H: Array, sums: RowSums, *, safe: bool = True) -> Terms:
        """Return the terms of the features, given sums over the rows of W; see `of_side`."""
        terms = self.terms_of_profiles(sums)
        if self.prior is None or terms.d is None:
            return terms
        linear, counts = self.prior.feature_terms(H, sums, terms.d, safe=safe)
        return terms._replace(d=np.asarray(terms.d + linear), prior=counts)

    def terms_of_profiles(self, sums: RowSums) -> Terms:
        """Return the terms of the features without those that scale the components."""
        d = sums.d if sums.d is None else self._add_l1(1, sums.d)
        prior = None if self.prior is None else self.prior.columns
        return Terms(d, prior, self.fixed, self.ridge[1])

    def sums(self, W: Array) -> RowSums:
        """Return what the terms of the features need of W; see `row_penalties` for the rest."""
        d, weighted = None, np.zeros((4, W.shape[1]))
        if self.exposure is not None:
            d = self.exposure.linear_terms(1, W)
        elif np.any(self.l1[1]) or self.prior is not None:
            d = W.sum(axis=0, dtype=np.float64)
        if self.prior is not None:
            weighted[:2] = self.prior.row_sums(W)
        return RowSums(d, weighted)

    def _add_l1(self, side: int, d: Array) -> Array:
        """Return linear terms with the L1 penalty of a side added, (K,) or (items, K)."""
        if not np.any(self.l1[side]):
            return d
        d = d + np.reshape(self.l1[side], (-1, 1)) * np.ones(d.shape[-1])
        return d[0] if len(d) == 1 else d


PLAIN = ModelTerms()
