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
from sipower.problems.item_problem import NO_TERMS, Terms

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
        if self.prior is not None:
            return self.prior.penalty(x)
        fixed = None, self.fixed
        return sum(
            Terms(fixed=fixed[side], ridge=self.ridge[side]).penalty(x[side])
            + self._l1_penalty(side, x[side])
            for side in (0, 1)
        )

    def row_penalty(self, x: Factors) -> float:
        """Return the penalties that the linear terms of the rows of W contain."""
        return self._l1_penalty(0, x.W) if self.prior is None else self.prior.rate_penalty(x)

    def best_scale(self, x: Factors) -> Array | None:
        """Return the numbers (K,) that divide W and multiply H with the smallest penalty.

        None: only one factor has a penalty, or the scale is best. With s = 1/scale the penalty of a
        component is a s + b/s + c s²/2 + e/(2 s²), which is convex in log s.
        """
        sums = [self._weighted_sums(self.l1[side], x[side]) for side in (0, 1)]
        squares = [self._weighted_sums(self.ridge[side], x[side] ** 2) for side in (0, 1)]
        (a, b), (c, e) = sums, squares
        moves = (a + c > 0) & (b + e > 0)
        if self.fixed is not None:
            moves &= ~(self.fixed & (x.H > 0)).any(axis=0)
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
        return np.asarray(np.exp(-t).astype(x.H.dtype))

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
        terms = self.without_scale(side, x)
        if self.prior is None:
            return terms
        d = x[1 - side].sum(axis=0, dtype=np.float64) if terms.d is None else terms.d
        if side == 1:
            linear, counts = self.prior.feature_terms(x, d, safe=safe)
            return terms._replace(d=d + linear, prior=counts)
        rates, counts = self.prior.row_terms(x.H)
        return terms._replace(d=terms.d if rates is None else d + rates, prior=counts)

    def without_scale(self, side: int, x: Factors) -> Terms:
        """Return the terms of one side as `of_side`, without those that scale the components."""
        basis = x[1 - side]
        d = None if self.exposure is None else self.exposure.linear_terms(side, basis)
        if np.any(self.l1[side]):
            sums = basis.sum(axis=0, dtype=np.float64) if d is None else d
            d = sums + np.reshape(self.l1[side], (-1, 1)) * np.ones(basis.shape[1])
            d = d[0] if len(d) == 1 else d
        prior = self.prior.columns if side == 1 and self.prior is not None else None
        return Terms(d, prior, self.fixed if side == 1 else None, self.ridge[side])


PLAIN = ModelTerms()
