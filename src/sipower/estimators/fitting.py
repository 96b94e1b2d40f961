# SPDX-License-Identifier: BSD-3-Clause
"""`Fitting`: the methods `fit` and `fit_transform` of KL-NMF."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context

from sipower.data.plausibility import warn_user
from sipower.data.row_blocks import RowBlocks
from sipower.estimators.attributes import FittedAttributes, restore_on_failure, row_tolerance
from sipower.estimators.callbacks import Listener
from sipower.estimators.certificate import state_problem
from sipower.estimators.fingerprints import fingerprints
from sipower.estimators.fit import Fit, FitSettings, fit
from sipower.estimators.model import Model, check_batches
from sipower.estimators.new_data import NewData
from sipower.estimators.observation import ARGUMENTS, Observation, match_observed
from sipower.estimators.parameters import as_seed, check_supported, fit_settings
from sipower.estimators.penalties import has_penalties
from sipower.estimators.prior import check_prior, has_prior
from sipower.estimators.remarks import confounding_remark, warn_about_data, warn_unless_converged
from sipower.kernels import Array
from sipower.loop.solve import Interrupted, Status
from sipower.verification import Verification, verify_factors

__all__ = ["Fitting"]


class Fitting(NewData, FittedAttributes):
    """A mixin with `fit` and `fit_transform`."""

    tol: float
    solver: str
    alpha_W: float  # noqa: N815 - scikit-learn's name
    random_state: Any
    verify: bool

    def fit(  # noqa: PLR0913 - scikit-learn's arguments and ours
        self,
        X: Any,
        y: Any = None,
        W: Any = None,
        H: Any = None,
        *,
        sample_weight: Any = None,
        feature_weight: Any = None,
        weights: Any = None,
        mask: Any = None,
        offsets: Any = None,
        batch: Any = None,
    ) -> Self:
        """Learn the components of X, (n_samples, n_features).

        Parameters
        ----------
        X : array, sparse array, DataFrame, or data on disk that `sipower.io` has opened
            Non-negative data; see `sipower.as_matrix`.
        y
            Not used.
        W, H : ndarray or None
            Start, (n_samples, n_components) and (n_components, n_features), if init is "custom".
        sample_weight, feature_weight : array of shape (n_samples,), (n_features,), or None
            Weights of samples and of features. A sample of weight 2 counts like two equal samples;
            one of weight 0 does not influence the components.
        weights : array or sparse array of shape (n_samples, n_features), or None
            Weights of single entries. Entries that a sparse array does not store have weight 1.
        mask : boolean array of shape (n_samples, n_features) or (n_features,), or None
            True where an entry is observed. Entries that are not observed do not count at all,
            unlike zeros.
        offsets : array of shape (n_samples,) or None
            Size factors s > 0: the model of sample i is s_i W_i H.
        batch : array of shape (n_samples,) or None
            Label of the batch of every sample. Each batch has a factor for each feature, which is
            fitted (`batch_effects_`), so that components need not explain differences of batches.

        Notes
        -----
        A Series or a DataFrame is matched to a DataFrame X by the names of samples and features,
        and refused if X has none. An array has the order of X.
        """
        given = (sample_weight, feature_weight, weights, mask, offsets, batch)
        self.fit_transform(X, W=W, H=H, **dict(zip(ARGUMENTS, given, strict=True)))
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_transform(  # noqa: PLR0913 - scikit-learn's arguments and ours
        self,
        X: Any,
        y: Any = None,
        W: Any = None,
        H: Any = None,
        *,
        sample_weight: Any = None,
        feature_weight: Any = None,
        weights: Any = None,
        mask: Any = None,
        offsets: Any = None,
        batch: Any = None,
    ) -> Array:
        """Learn the components of X and return the W that `transform` would return.

        The arguments are those of `fit`.
        """
        started = time.monotonic()
        check_supported(self)
        check_prior(self)
        listener = Listener(self, X)
        given = (sample_weight, feature_weight, weights, mask, offsets, batch)
        with restore_on_failure(self, Interrupted):
            given = match_observed(X, given)
            V, observation = self._observe(X, given, reset=True)
            self._observed = fingerprints(dict(zip(ARGUMENTS, given, strict=True)))
            warn_about_data(V, self.n_components)
            smooth = has_prior(self) or has_penalties(self)
            self.transform_tol_ = row_tolerance(self.transform_tol, self.tol, smooth=smooth)
            self._set_batches(observation, V.shape[1])
            model = Model(self, self._prepare(V, observation), as_seed(self.random_state))
            start = model.start(W, H)
            problem = model.problem(start)  # checks the parameters before they are described
            listener.restore = model.restore_point
            settings = fit_settings(
                self, model.V, start, seed=model.seed, started=started, listener=listener,
                digest=model.digest,
            )  # fmt: skip
            result, remark = self._fit_model(model, problem, start, settings, V, observation)
            self._weight_sums = result.W.sum(axis=0, dtype=np.float64)
        listener.end()
        warn_unless_converged(result, self.tol, self.solver)
        if remark is not None:
            warn_user(remark)
        return result.W

    def _fit_model(
        self,
        model: Model,
        problem: Any,
        start: Any,
        settings: FitSettings,
        V: RowBlocks,
        observation: Observation,
    ) -> tuple[Fit, str | None]:
        """Fit a model, set the fitted attributes, and return the fit in the scale of the user.

        The second value is a remark on confounded batches, or None.
        Ctrl-C sets the attributes of the last completed round, and raises `Interrupted` with it.
        """
        result, remark = None, None
        check = partial(self._verify, V, observation) if self.verify else None
        if check is not None:
            settings = replace(settings, verify=lambda x: check(model.restore_point(x)))
        try:
            fitted = fit(problem, start, settings)
            remark = confounding_remark(problem, fitted, self.__dict__.get("batches_"))
            result = model.restore(fitted)
            self._set_results(model, result)
            is_weighted = observation.weights.rows is not None and not self.alpha_W
            if is_weighted and result.status is not Status.MAX_SECONDS:
                rows = self._exact_rows(V, observation.without_sample_weights())
                result = self._replace_rows(result, rows, check)
                self.status_, self.verification_ = str(result.status), result.verification
        except KeyboardInterrupt as interrupt:
            if isinstance(interrupt, Interrupted):
                result = model.restore(interrupt.result)
            if result is None:  # no round has begun
                raise
            result = replace(result, status=Status.INTERRUPTED, verification=None)
            self._set_results(model, result)
            raise Interrupted(result) from None
        return result, remark

    def _verify(self, V: RowBlocks, observation: Observation, x: Any) -> Verification:
        """Verify a point (W, H) or (W, H, β) in the scale of the user."""
        effects = getattr(x, "effects", None)
        statement = state_problem(self, V, observation, x.H.shape[1], effects)
        return verify_factors(V, x.W, x.H, statement)

    def _replace_rows(self, fit: Fit, W: Array, check: Callable[[Any], Verification] | None) -> Fit:
        """Return the fit with another W that is the exact one for samples of any weight."""
        fit = replace(fit, W=W)
        if check is None or fit.verification is None or fit.status is not Status.CONVERGED:
            return fit
        verification = check(fit)
        is_converged = verification.is_converged(self.tol)
        status = Status.CONVERGED if is_converged else Status.NOT_VERIFIED
        return replace(fit, verification=verification, status=status)

    def _set_batches(self, observation: Observation, features: int) -> None:
        """Set the batches and their effects before the fit, or delete those of an earlier fit."""
        for name in ("batches_", "batch_effects_"):
            self.__dict__.pop(name, None)
        if observation.batch is not None:
            self.batches_ = check_batches(observation.batch, self)
            self.batch_effects_ = np.ones((len(self.batches_), features))
