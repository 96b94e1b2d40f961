# SPDX-License-Identifier: BSD-3-Clause
"""`FittedAttributes`: the fitted attributes of KL-NMF models, and methods that need only them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sipower.estimators.fit import Fit
from sipower.kernels import Array

MIN_ROW_TOL = 1e-13  # smaller gaps are below the rounding error


class FittedAttributes:
    """A mixin that sets the fitted attributes after a fit."""

    transform_tol_: float
    guides_: list[Any]

    def _set_fit(self, fit: Fit, weights: Array | None = None) -> None:
        """Set all attributes; `weights` are the column sums of W if the fit does not hold W."""
        self.__dict__.pop("_weight_sums", None)
        self._set_components(fit.H.T)
        self._set_statistics(fit.W.sum(axis=0) if weights is None else weights)
        self.n_iter_ = fit.rounds
        self.kl_divergence_ = fit.divergence
        self.reconstruction_err_ = float(np.sqrt(2 * max(fit.divergence, 0.0)))
        self.kkt_residual_ = fit.gap
        self.status_ = str(fit.status)
        self.trace_ = fit.trace
        self.verification_ = fit.verification
        if fit.effects is not None:
            self.batch_effects_ = fit.effects

    def _set_statistics(self, weights: Array) -> None:
        """Set the statistics of `partial_fit` for components whose W has the sums `weights`."""
        self.n_steps_ = 0
        self._denominator = np.asarray(weights, np.float64)[:, None]
        self._numerator = self.components_ * self._denominator

    def _set_results(self, model: Any, fit: Fit) -> None:
        """Set the attributes of the fit of a `Model`, and what it says about the guides."""
        self._set_fit(fit)
        self.__dict__.pop("guides_", None)
        if model.guides:
            self.guides_ = model.report_guides(self.components_)

    def _delete_measures(self) -> None:
        """Delete the attributes of an earlier `fit` that no longer belong to the components."""
        divergences = ("kl_divergence_", "reconstruction_err_", "kkt_residual_")
        others = ("n_iter_", "status_", "trace_", "verification_", "_weight_sums")
        for name in (*divergences, *others):
            self.__dict__.pop(name, None)

    def _set_components(self, components: Array) -> None:
        self.components_ = np.ascontiguousarray(components)
        self.n_components_, self._n_features_out = (len(components),) * 2


@contextmanager
def restore_on_failure(model: Any, *usable: type[BaseException]) -> Iterator[None]:
    """Restore the attributes of a model after any exception except those of the types `usable`."""
    before = dict(vars(model))
    try:
        yield
    except usable:
        raise
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def row_tolerance(transform_tol: float, tol: float, *, smooth: bool = False) -> float:
    """Return the certified gap to solve rows to, so that the gap of the whole fit is at most `tol`.

    Rows with a gap above a quarter of `tol` could raise the gap of the fit above `tol` again. With
    penalties or prior counts (`smooth`) the gap of a row is quadratic in the error of W, while that
    of H is linear in it, so `tol` is squared.
    """
    needed = tol**2 if smooth else tol / 4
    return min(transform_tol, max(needed, MIN_ROW_TOL)) if tol > 0 else transform_tol
