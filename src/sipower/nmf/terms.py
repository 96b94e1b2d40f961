# SPDX-License-Identifier: BSD-3-Clause
"""`ModelTerms`: what the model of a factorisation has besides V, W and H."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Array
from sipower.nmf.exposure import Exposure
from sipower.nmf.factors import Factors
from sipower.problems.item_problem import NO_TERMS, Terms

__all__ = ["PLAIN", "ModelTerms"]


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
        Prior counts of W and of H, each (K,), (items, K) or None.
    ridge
        Ridge of W and of H.
    """

    exposure: Exposure | None = None
    fixed: NDArray[np.bool_] | None = None
    values: Array | None = None
    prior: tuple[Array | None, Array | None] = (None, None)
    ridge: tuple[float, float] = (0.0, 0.0)

    @property
    def is_plain(self) -> bool:
        """Whether the model is V ≈ W Hᵀ with no other term."""
        return self.exposure is None and self.is_linear

    @property
    def is_linear(self) -> bool:
        """Whether the linear terms d are the only ones: no ridge, prior counts or fixed entries."""
        return self.fixed is None and not self.has_penalty

    @property
    def has_penalty(self) -> bool:
        """Whether a factor has a ridge or prior counts."""
        return any(self.ridge) or any(counts is not None for counts in self.prior)

    def insert_fixed(self, H: Array, start: Array | None = None) -> None:
        """Write the fixed entries into H, in place: the given values, or else those of `start`."""
        values = start if self.values is None else self.values
        if self.fixed is not None and values is not None:
            np.copyto(H, values, where=self.fixed, casting="same_kind")

    @property
    def fixed_features(self) -> NDArray[np.bool_] | bool:
        """Features with a fixed entry other than zero, (m,): they cannot be scaled in H."""
        if self.fixed is None or self.values is None:
            return False
        return np.asarray((self.fixed & (self.values > 0)).any(axis=1))

    def penalties(self, x: Factors) -> tuple[float, float]:
        """Return the penalties of W and of H: ridge and prior counts."""
        fixed = None, self.fixed
        sides = (Terms(None, self.prior[i], fixed[i], self.ridge[i]).penalty(x[i]) for i in (0, 1))
        penalty_W, penalty_H = sides
        return penalty_W, penalty_H

    def of_side(self, side: int, basis: Array) -> Terms:
        """Return the terms of the convex problem of one side, given the other factor."""
        if self.is_plain:
            return NO_TERMS
        d = None if self.exposure is None else self.exposure.linear_terms(side, basis)
        return Terms(d, self.prior[side], self.fixed if side == 1 else None, self.ridge[side])


PLAIN = ModelTerms()
