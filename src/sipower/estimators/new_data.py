# SPDX-License-Identifier: BSD-3-Clause
"""`NewData`: the methods of a fitted KL-NMF model for new samples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin, _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from sipower._files import quote
from sipower.data.containers import as_frame, is_table
from sipower.data.plausibility import measure_values, warn_about_values
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.exact_rows import exact_rows, leave_out_unexplained
from sipower.estimators.missing import hide_unobserved, split_missing
from sipower.estimators.observation import (
    ARGUMENTS,
    NOTHING_GIVEN,
    Observation,
    as_observation,
    match_observed,
)
from sipower.estimators.parameters import as_custom_factor, check_supported
from sipower.estimators.prepared import Prepared, prepare, warn_if_unobserved
from sipower.estimators.prior import row_model
from sipower.kernels import Array
from sipower.problems.item_problem import NO_TERMS, Terms
from sipower.problems.kl import KLBlock

__all__ = ["NewData", "check_features", "check_fitted_batches"]


class NewData(TransformerMixin):  # type: ignore[misc]  # set_output needs it where transform is
    """A mixin with `transform`, `inverse_transform` and `score`."""

    components_: Array
    n_components: Any
    n_components_: int
    transform_tol: float
    transform_tol_: float
    batches_: Array
    dtype: Any
    n_jobs: int | None
    missing: str | None

    def transform(
        self,
        X: Any,
        *,
        sample_weight: Any = None,
        feature_weight: Any = None,
        weights: Any = None,
        mask: Any = None,
        offsets: Any = None,
        batch: Any = None,
    ) -> Array:
        """Return W (n_samples, n_components) for the fitted components, certified row by row.

        Each row of W depends only on its row of X: order and batching change no bit. The other
        arguments are those of `fit`. `sample_weight` has no effect on rows. A batch that was not in
        the fit, or no batch, has no batch effects.
        """
        check_is_fitted(self)
        given = (sample_weight, feature_weight, weights, mask, offsets, batch)
        V, observation = self._observe(X, given, reset=False)
        return self._exact_rows(V, observation.without_sample_weights())

    def inverse_transform(self, X: Any) -> Array:
        """Return W H for X = W, (n_samples, n_components)."""
        check_is_fitted(self)
        W: Any = X if sp.issparse(X) else np.asarray(X)
        if W.ndim != 2 or W.shape[1] != self.n_components_:
            raise ValueError(f"`X` must have shape (samples, {self.n_components_}), got {W.shape}.")
        return np.asarray(W @ self.components_)

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        feature_weight: Any = None,
        weights: Any = None,
        mask: Any = None,
        offsets: Any = None,
        batch: Any = None,
    ) -> float:
        """Return −D(X ‖ transform(X) H)/ΣX; higher is better, 0 is a perfect fit.

        W is fitted to the rows that are scored, so more components always score better. Counts of
        features that no component contains are left out, as in `transform`. The other arguments are
        those of `fit`; with weights, D and ΣX are weighted.
        """
        check_is_fitted(self)
        given = (sample_weight, feature_weight, weights, mask, offsets, batch)
        V, observation = self._observe(X, given, reset=False)
        W = self._exact_rows(V, observation.without_sample_weights())
        if V.is_in_memory:
            V = leave_out_unexplained(V, self._basis(V), warn=False)
        prepared = self._prepare(V, observation)
        V, H = prepared.V, prepared.scale_columns(self._basis(V))
        block = KLBlock(V, H, terms=_row_terms(prepared, H))
        value = block.divergence(prepared.scale_rows(W))
        if prepared.exposure is not None:
            value -= prepared.exposure.log_term
        return -max(value, 0.0) / V.total if V.total > 0 else 0.0

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def _rows_for(self, X: Any, H: Any, given: tuple[Any, ...] = NOTHING_GIVEN) -> Array:
        """Return W for a given H, without a fit; `given` holds the values of `ARGUMENTS`."""
        check_supported(self)
        if H is None:
            raise ValueError("`H` must be given with update_H=False.")
        V, observation = self._observe(X, given, reset=True)
        self.components_ = as_custom_factor("H", H, (self.n_components, V.shape[1]), V)
        self.transform_tol_ = self.transform_tol
        return self._exact_rows(V, observation.without_sample_weights())

    # ---- data and how they were observed -----------------------------------------------------

    def _matrix(self, X: Any, *, reset: bool) -> RowBlocks:
        dtype = self.dtype if reset else self.components_.dtype
        X = as_frame(X)
        matrix = as_matrix(X, dtype=dtype, n_jobs=self.n_jobs)
        check_features(self, X, matrix, reset=reset)
        if reset:
            self._remarks = warn_about_values(X, matrix)
            self.__dict__.pop("_whole_numbers", None)
            if matrix.is_in_memory:  # every fit of a store would read its first rows once more
                self._whole_numbers = measure_values(matrix).share
        else:
            fitted = getattr(self, "_whole_numbers", None)
            warn_about_values(X, matrix, is_new=True, fitted=fitted)
        return matrix

    def _observe(
        self, X: Any, given: tuple[Any, ...], *, reset: bool
    ) -> tuple[RowBlocks, Observation]:
        """Return the data and how they were observed, both validated.

        `given` holds the values of `ARGUMENTS`.
        """
        given = match_observed(X, given)
        is_missing, mask = None, given[ARGUMENTS.index("mask")]
        if mask is not None:
            X = hide_unobserved(X, mask)
        if self.missing == "nan":
            X, is_missing = split_missing(X)
        V = self._matrix(X, reset=reset)
        observation = as_observation(V.shape, given, missing=is_missing, fitting=reset)
        warn_if_unobserved(V, observation, fitting=reset)
        return V, observation

    def _prepare(self, V: RowBlocks, observation: Observation) -> Prepared:
        if observation.batch is None:
            return prepare(V, observation)
        check_fitted_batches(self, observation.batch)
        return prepare(V, observation, self.batch_effects_, self.batches_)

    def _basis(self, V: RowBlocks) -> Array:
        return np.ascontiguousarray(self.components_.T, V.dtype)

    def _row_problem(self, V: RowBlocks, observation: Observation) -> tuple[Prepared, Array, Terms]:
        """Return the weighted data, the basis H' (m, K) and the terms of the rows of W'."""
        prepared = self._prepare(V, observation)
        H = prepared.scale_columns(self._basis(V))
        return prepared, H, row_model(self, prepared, H.shape[1]).row_terms(H)

    def _exact_rows(self, V: RowBlocks, observation: Observation) -> Array:
        """Return the W of the fitted components, certified row by row."""
        prepared, H, terms = self._row_problem(V, observation)
        return prepared.restore_rows(exact_rows(prepared.V, H, self.transform_tol_, terms))


def check_features(model: Any, X: Any, matrix: RowBlocks, *, reset: bool) -> None:
    """Set the number and the names of the features of a model, or compare them with its own.

    This is scikit-learn's check, also for row blocks and tables with names, which it cannot read.
    """
    if not (is_table(X) or isinstance(X, RowBlocks)):
        validate_data(model, X, reset=reset, skip_check_array=True)
        return
    labels, known = matrix.column_names, getattr(model, "feature_names_in_", None)
    names = [] if labels is None else labels.tolist()
    names = names if all(isinstance(name, str) for name in names) else []
    if reset or known is None or len(known) != len(names):
        validate_data(model, matrix, reset=reset, skip_check_array=True)
        if reset and names:
            model.feature_names_in_ = np.array(names, object)
    elif names != known.tolist():
        at = next(at for at, pair in enumerate(zip(names, known, strict=True)) if len({*pair}) > 1)
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order: "
            f"feature {at} is {quote(names[at])} instead of {quote(known[at])}."
        )


def _row_terms(prepared: Prepared, H: Array) -> Terms:
    exposure = prepared.exposure
    return NO_TERMS if exposure is None else Terms(exposure.linear_terms(0, H))


def check_fitted_batches(model: Any, batch: Array) -> None:
    """Check that a model has batch effects, and warn if none belongs to a label of `batch`."""
    if not hasattr(model, "batch_effects_"):
        raise ValueError(
            "`batch` was not given in fit, so there are no batch effects: leave it out."
        )
    if set(batch.tolist()).isdisjoint(model.batches_.tolist()):
        warnings.warn(
            "No label of `batch` was in fit, so all batch effects are 1: check the labels and "
            f"their type, {batch.dtype} here and {model.batches_.dtype} in fit.",
            UserWarning,
            stacklevel=5,
        )
