# SPDX-License-Identifier: BSD-3-Clause
"""`PartialFit`: the method that updates the components from batches of samples."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context

from sipower.data.row_blocks import RowBlocks
from sipower.estimators.attributes import FittedAttributes, restore_on_failure
from sipower.estimators.exact_rows import exact_rows
from sipower.estimators.parameters import as_seed, check_supported, initial_components
from sipower.estimators.penalties import has_penalties
from sipower.estimators.prior import has_prior
from sipower.kernels import FLOOR
from sipower.problems.kl import KLBlock

__all__ = ["PartialFit"]

MIN_STATISTIC = 1e-200  # smaller statistics decay no further: their quotients would lose precision


class PartialFit(FittedAttributes):
    """A mixin with `partial_fit`."""

    random_state: Any
    transform_tol: float
    forget_factor: float
    missing: str | None
    components_fixed: Any
    components_zero: Any
    _matrix: Any

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Self:
        """Update the components from a batch of samples.

        The rows of the batch are solved exactly for the current H. Then H ← A/B with the statistics
        A = Σ H∘Wᵀ(V ⊘ WH) and B = Σ colsum(W) of all batches, which decay by `forget_factor`.
        """
        check_supported(self)
        if self.components_fixed is not None or self.components_zero is not None or self.missing:
            raise ValueError(
                "`partial_fit` takes neither known components nor missing values: use fit."
            )
        if has_penalties(self) or has_prior(self):
            raise ValueError("`partial_fit` takes neither penalties nor prior counts: use fit.")
        with restore_on_failure(self):
            self._learn_batch(X, W, H)
        return self

    def _learn_batch(self, X: Any, W: Any, H: Any) -> None:
        first = not hasattr(self, "components_")
        V = self._matrix(X, reset=first)
        if not first and (W is not None or H is not None):
            raise ValueError("`W` and `H` must be None after the first partial_fit.")
        # If no batch so far had counts, the start is drawn again from the first one that has.
        if first or (V.total > 0 and not self.components_.any()):
            first_H = initial_components(self, V, as_seed(self.random_state), W, H)
            self.transform_tol_ = self.transform_tol
            self._set_components(first_H.T)
            self._set_statistics(np.zeros(self.n_components_))
        self._learn_from(V, self.forget_factor)

    def _learn_from(self, V: RowBlocks, forget_factor: float) -> None:
        """Update the components from a batch whose rows are solved for the current components."""
        self._delete_measures()
        self.n_steps_ += 1
        if not V.total > 0:  # rows without counts carry no information
            return
        H = self.components_
        basis = np.ascontiguousarray(H.T, V.dtype)
        block = KLBlock(V.columns, exact_rows(V, basis, self.transform_tol_))
        # Where H is zero its share is zero, even if the ratio is infinite.
        share = H * np.where(H > 0, block.ratio_sums(basis).T, 0)
        decay = np.where(self._denominator > MIN_STATISTIC, forget_factor, 1.0)
        self._numerator = decay * self._numerator + share
        self._denominator = decay * self._denominator + block.d[:, None]
        alive = self._denominator > 0
        new = np.divide(self._numerator, self._denominator, where=alive, out=self._numerator.copy())
        # The floor lets features enter that have not occurred in any batch so far.
        new = np.where(alive, np.maximum(new, FLOOR * new.max(axis=1, keepdims=True)), H)
        self._set_components(new.astype(V.dtype))
