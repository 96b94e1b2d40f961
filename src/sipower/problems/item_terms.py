# SPDX-License-Identifier: BSD-3-Clause
"""`Terms`: the terms of an item problem besides the data, and the certificate from its sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from sipower import kernels
from sipower.kernels import Array

__all__ = ["NO_TERMS", "Terms", "certify"]

Float = NDArray[np.float64]


class Terms(NamedTuple):
    """The terms of the objective besides the data; each has shape (K,) or (items, K).

    Attributes
    ----------
    d
        Linear term; None: the column sums of the basis.
    prior
        Prior counts a ≥ 0; None: none.
    fixed
        Components of h that keep their value, bool; None: none.
    ridge
        Ridge r ≥ 0, one number or one for each item.
    """

    d: Array | None = None
    prior: Array | None = None
    fixed: Array | None = None
    ridge: float | Array = 0.0

    @property
    def has_ridge(self) -> bool:
        """Whether some item has a ridge."""
        return bool(np.any(self.ridge))

    @property
    def is_linear(self) -> bool:
        """Whether d is the only term: no ridge, no prior counts, no fixed components."""
        return self.fixed is None and not self.has_ridge and self.prior is None

    def penalty(self, h: Array) -> float:
        """Return ½r‖h‖² − Σ a log h over the components that are not fixed, in float64."""
        free = True if self.fixed is None else ~np.asarray(self.fixed, bool)
        value = 0.0
        if self.has_ridge:
            squares = np.square(h, dtype=np.float64).sum(axis=1, where=free)
            value += 0.5 * float((self.ridge * squares).sum())
        if self.prior is not None:
            value -= float(xlogy(self.prior, h.astype(np.float64)).sum(where=free))
        return value


NO_TERMS = Terms()


def certify(terms: Terms, g: Float, h: Array, c: Float) -> Float:
    """Return the certified gap of every item from its ratio sums g; see `ItemProblem.gaps`.

    Parameters
    ----------
    terms
        The terms of the objective besides the data, with d.
    g, h, c
        Ratio sums (items, K), factor (items, K) and masses (items,).
    """
    h, out = kernels.as_contiguous(h, np.float64), np.zeros(len(h))
    # Without the data, the basis only holds the terms.
    basis = kernels.basis(np.zeros((1, h.shape[1])), dense=False, **terms._asdict())
    kernels.certify(basis, g, h, c, out)
    return out
