# SPDX-License-Identifier: BSD-3-Clause
"""The fitted attributes of KL-NMF models, and what needs nothing but them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sipower.data.row_blocks import RowBlocks
from sipower.estimators.fit import Fit, exact_rows
from sipower.kernels import FLOOR, Array
from sipower.loop.solve import Status
from sipower.problems.kl import KLBlock

__all__ = ["FittedAttributes", "restore_on_failure", "row_tolerance", "warn_unless_converged"]

FADED = 1e-200  # statistics this small fade no further: their quotient would lose its bits
LEAST_ROW_TOL = 1e-13  # nothing more exact can be told from rounding


class FittedAttributes:
    """The fitted attributes of a model, set after a fit and updated by batches."""

    transform_tol_: float

    def _set_fit(self, fit: Fit, weights: Array | None = None) -> None:
        """Set all attributes; `weights` are the column sums of W where the fit does not hold W."""
        self._set_components(fit.H.T)
        self._set_statistics(fit.W.sum(axis=0) if weights is None else weights)
        self.n_iter_ = fit.rounds
        self.kl_divergence_ = fit.divergence
        self.reconstruction_err_ = float(np.sqrt(2 * max(fit.divergence, 0.0)))
        self.kkt_residual_ = fit.gap
        self.status_ = str(fit.status)
        self.trace_ = fit.trace

    def _set_statistics(self, weights: Array) -> None:
        """Set what `partial_fit` updates: as if the components came from rows of these sums."""
        self.n_steps_ = 0
        self._denominator = np.asarray(weights, np.float64)[:, None]
        self._numerator = self.components_ * self._denominator

    def _learn_from(self, V: RowBlocks, forget_factor: float) -> None:
        """Update the components from the rows of a batch, solved exactly for the present ones."""
        self._delete_measures()
        self.n_steps_ += 1
        if not V.total > 0:  # rows without counts tell nothing
            return
        H = self.components_
        basis = np.ascontiguousarray(H.T, V.dtype)
        block = KLBlock(V.columns, exact_rows(V, basis, self.transform_tol_))
        # Where H is zero its share is zero too, however large the ratio.
        share = H * np.where(H > 0, block.ratio_sums(basis).T, 0)
        fading = np.where(self._denominator > FADED, forget_factor, 1.0)
        self._numerator = fading * self._numerator + share
        self._denominator = fading * self._denominator + block.d[:, None]
        alive = self._denominator > 0
        new = np.divide(self._numerator, self._denominator, where=alive, out=self._numerator.copy())
        # A feature that no batch has had so far must be able to come.
        new = np.where(alive, np.maximum(new, FLOOR * new.max(axis=1, keepdims=True)), H)
        self._set_components(new.astype(V.dtype))

    def _delete_measures(self) -> None:
        """Delete the numbers of an earlier `fit`, which are not those of the components now."""
        divergences = ("kl_divergence_", "reconstruction_err_", "kkt_residual_")
        for name in (*divergences, "n_iter_", "status_", "trace_"):
            self.__dict__.pop(name, None)

    def _set_components(self, components: Array) -> None:
        self.components_ = np.ascontiguousarray(components)
        self.n_components_, self._n_features_out = (len(components),) * 2


@contextmanager
def restore_on_failure(model: Any, *usable: type[BaseException]) -> Iterator[None]:
    """Leave a model as it was if its fit fails, except by an error that leaves a usable one."""
    before = dict(vars(model))
    try:
        yield
    except usable:
        raise
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def row_tolerance(transform_tol: float, tol: float) -> float:
    """Return the certified gap for rows: a larger one would open the gap the loop has closed."""
    return min(transform_tol, max(tol / 4, LEAST_ROW_TOL)) if tol > 0 else transform_tol


def warn_unless_converged(fit: Fit, tol: float) -> None:
    """Warn, where `fit_transform` was called, that a fit has used up its rounds."""
    if fit.status in (Status.MAX_ROUNDS, Status.NOT_FINITE) and tol > 0:
        warnings.warn(
            f"Not converged after {fit.rounds} rounds: the certified gap is {fit.gap:.2e}, "
            f"tol is {tol:.2e}. Increase max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
