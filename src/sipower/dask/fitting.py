# SPDX-License-Identifier: BSD-3-Clause
"""`WorkerFitting`: the methods `fit` and `fit_transform` for rows on Dask workers."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, Self

import dask.array as da
import numpy as np
from distributed import default_client
from sklearn.base import _fit_context

from sipower.dask.factorization import WorkerFactorization
from sipower.dask.gathered import gather_prepared
from sipower.dask.lazy_transform import LazyTransform, gather_rows
from sipower.dask.loaded_data import LoadedData, check_loaded
from sipower.dask.plan import uses_columns
from sipower.dask.task_names import task_key
from sipower.dask.verifying import verify_on_workers
from sipower.dask.waiting import check_workers
from sipower.dask.worker_factor import RowTasks
from sipower.dask.worker_rows import WorkerRows
from sipower.data.plausibility import warn_user
from sipower.estimators.attributes import FittedAttributes, restore_on_failure, row_tolerance
from sipower.estimators.callbacks import Listener
from sipower.estimators.fit import Fit, FitSettings, fit
from sipower.estimators.model import Model, check_batches
from sipower.estimators.observation import ARGUMENTS, as_given, as_labels
from sipower.estimators.parameters import as_seed, fit_settings
from sipower.estimators.penalties import has_penalties
from sipower.estimators.prepared import Prepared
from sipower.estimators.prior import check_prior, has_prior
from sipower.estimators.remarks import confounding_remark, warn_about_data, warn_unless_converged
from sipower.kernels import Array
from sipower.loop.solve import Interrupted, Status, hide_inner_results
from sipower.nmf import Factors
from sipower.nmf.batch_effects import BatchFactors
from sipower.nmf.exposure import Exposure
from sipower.nmf.row_rounds import draw_start
from sipower.nmf.row_sample import fit_sample
from sipower.verification import Verification

__all__ = ["WorkerFitting"]


class WorkerFitting(FittedAttributes, LazyTransform):
    """A mixin with `fit` and `fit_transform`."""

    client: Any
    n_components: int
    tol: float
    transform_tol: float
    solver: str
    init: str
    alpha_W: float  # noqa: N815 - scikit-learn's name
    random_state: Any
    dtype: Any
    verify: bool

    def fit(
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
    ) -> Self:
        """Learn the components of X.

        X is a Dask array of row chunks, dense or CSR; an AnnData object whose X is such an array;
        or a list of files (use `Files` to set options), each opened by a worker. The other
        arguments are those of `sipower.KLNMF.fit`, for all rows of X in their order. `weights` and
        `mask` may also be Dask arrays with the row chunks of X. For several fits of the same data,
        X is what `load` returns.
        """
        given = (sample_weight, feature_weight, weights, mask, offsets, batch)
        self.fit_transform(X, **dict(zip(ARGUMENTS, given, strict=True)))
        return self

    def fit_transform(  # noqa: PLR0913 - arguments of sipower.KLNMF
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
        gather: bool = False,
    ) -> Any:
        """Learn the components of X and return W as a lazy array with the row chunks of X.

        The arguments are those of `fit`. The workers keep the rows of X as long as W exists. If
        `gather` is true, W is an array in the memory of the client instead. If `max_time` or Ctrl-C
        ended the fit, W is that of the last round, as in `sipower.KLNMF`.
        """
        given = (sample_weight, feature_weight, weights, mask, offsets, batch)
        V, result = self._learn(X, given)
        W = self._choose_rows(V, result, gather=gather, is_weighted=sample_weight is not None)
        if result.status is Status.INTERRUPTED:
            raise Interrupted(replace(result, W=W))
        return W

    def _choose_rows(self, V: WorkerRows, fit: Fit, *, gather: bool, is_weighted: bool) -> Any:
        """Return W after a fit: that of the last round if the fit ended early, else the exact one.

        It is a lazy array with the row chunks of the data or, if `gather` is true, an array.
        """
        is_late = fit.status in (Status.MAX_SECONDS, Status.INTERRUPTED)
        # With a penalty, the weight of a sample changes its row of W, as in sipower.KLNMF.
        is_other = is_weighted and not self.alpha_W
        sizes = tuple(int(chunk.shape[0]) for chunk in V.chunks)
        W: Any = fit.W
        if isinstance(W, np.ndarray) and len(W) == V.shape[0] and (is_late or not is_other):
            if gather:
                return W
            if is_late:
                return da.from_array(W, (sizes, -1), name=task_key("rows"))
        if not isinstance(W, da.Array):  # it is solved on the workers, when it is needed
            loaded = list(zip(V.chunks, V.futures, strict=True))
            W = self._rows(loaded, with_sample_weights=bool(self.alpha_W))
        return gather_rows(V.client, W) if gather else W

    def load(self, X: Any, **observed: Any) -> LoadedData:
        """Load X to the workers, once for several fits: `fit` and `fit_transform` take the result.

        X and the other arguments are those of `fit`; the fits then take no other arguments. The
        workers keep the data as long as the result exists. Data that do not look like counts draw
        a warning here, not in the fits.
        """
        given = as_given(observed)
        rows = WorkerRows(self._connect(), X, self.dtype, given, self.missing)
        for remark in rows.remarks:
            warn_user(remark)
        return LoadedData(rows, given)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def _learn(self, X: Any, given: tuple[Any, ...]) -> tuple[WorkerRows, Fit]:
        started = time.monotonic()
        check_prior(self)
        listener = Listener(self, X)
        with restore_on_failure(self):
            if isinstance(X, LoadedData):
                loaded = check_loaded(X, self.dtype, given)
            else:
                if not isinstance(X, WorkerRows):
                    listener.begin_stage("loading the rows on the workers")
                loaded = self.load(X, **dict(zip(ARGUMENTS, given, strict=True)))
            V, given = loaded.rows, loaded.given
            seed, rank = as_seed(self.random_state), int(self.n_components)
            smooth = has_prior(self) or has_penalties(self)
            self.transform_tol_ = row_tolerance(self.transform_tol, self.tol, smooth=smooth)
            self._set_values(V)
            self._set_features(V)
            warn_about_data(V, rank)
            batch = given[ARGUMENTS.index("batch")]
            self._set_batches(batch, V.shape[1])
            begun = seed, started, listener
            if self.solver == "auto" and (batch is not None or uses_columns(V, rank)):
                result, remark = self._fit_both_sides(loaded, *begun)
            else:
                result, remark = self._fit_rows(V, *begun), None
        warn_unless_converged(result, self.tol)
        if remark is not None:
            warn_user(remark)
        return V, result  # also after Ctrl-C in a round

    def _fit_both_sides(
        self, loaded: LoadedData, seed: int, started: float, listener: Listener
    ) -> tuple[Fit, str | None]:
        """Fit as `sipower.KLNMF` does; return the fit and a remark on confounded batches."""
        rows, batch = loaded.rows, loaded.given[ARGUMENTS.index("batch")]
        batches = None if batch is None else self.batches_
        if "both_sides" not in vars(loaded):  # it is made at first use
            listener.begin_stage("bringing the columns together on the workers")
        prepared = gather_prepared(rows, loaded.both_sides, batch, batches)
        model = Model(self, prepared, seed)
        problem, listener.restore = model.problem(None), model.restore_point
        settings = fit_settings(
            self, model.V, None, seed=seed, started=started, listener=listener,
            digest=_join(model.digest, rows.digest),
        )  # fmt: skip
        if self.verify:
            check = partial(self._verify_both, RowTasks(rows), batch)
            settings = replace(settings, verify=lambda x: check(model.restore_point(x)))
        fitted = _fit_until_interrupted(problem, None, settings)
        remark = confounding_remark(problem, fitted, batches)
        result = model.restore(fitted)
        self._set_results(model, result)
        return result, remark

    def _fit_rows(self, V: WorkerRows, seed: int, started: float, listener: Listener) -> Fit:
        """Fit with W on the workers; the W of the result is the sum of its rows, or lazy."""
        rank = int(self.n_components)
        exposure = Exposure() if V.has_exposure else None  # the workers have its entries
        model = Model(self, Prepared(V, exposure, column_scale=V.column_scale), seed)
        problem = WorkerFactorization(V, rank, model.terms(rank), self._row_options())
        start = draw_start(problem, seed)
        if self.init == "sample":
            with hide_inner_results():
                start = start._replace(H=fit_sample(V, rank, seed, problem.terms))
        settings = fit_settings(
            self, V, start, seed=seed, started=started, listener=listener,
            digest=_join(model.digest, V.digest),
        )  # fmt: skip
        settings = replace(settings, solver="rows", n_init=1)
        if self.verify:
            settings = replace(settings, verify=partial(self._verify_rows, problem, model))
        result = _fit_until_interrupted(problem, start, settings)
        x = Factors(result.W, result.H)
        restored = model.restore(replace(result, W=problem.weights(x)[None]))
        self._set_results(model, restored)
        if result.status in (Status.MAX_SECONDS, Status.INTERRUPTED):  # not the exact W for H
            return replace(restored, W=problem.lazy_rows(x, _used(restored)))
        return restored

    def _verify_both(self, tasks: RowTasks, batch: Any, x: BatchFactors) -> Verification:
        """Verify a point in the scale of the user, with W on the client."""
        labels = None if batch is None else as_labels(batch, len(batch))
        return verify_on_workers(
            self, tasks, tasks.divide(x.W), x.H, batch=labels, effects=x.effects
        )

    def _verify_rows(self, problem: WorkerFactorization, model: Model, x: Factors) -> Verification:
        """Verify a point with W on the workers."""
        restored = model.restore_point(x._replace(W=problem.weights(x)[None]))
        W = problem.restored_rows(x, _used(restored))
        return verify_on_workers(self, problem.tasks, W, restored.H)

    def _set_batches(self, batch: Any, features: int) -> None:
        """Set the batches and their effects before the fit, or delete those of an earlier fit."""
        for name in ("batches_", "batch_effects_"):
            self.__dict__.pop(name, None)
        if batch is not None:
            self.batches_ = check_batches(as_labels(batch, len(batch)), self)
            self.batch_effects_ = np.ones((len(self.batches_), features))

    def _set_values(self, V: WorkerRows) -> None:
        """Set what the values looked like, with which those of new data are compared."""
        self._remarks = V.remarks
        self.__dict__.pop("_whole_numbers", None)  # remove that of an earlier fit
        if V.whole_numbers is not None:
            self._whole_numbers = V.whole_numbers

    def _set_features(self, V: WorkerRows) -> None:
        self.n_features_in_ = V.shape[1]
        self.__dict__.pop("feature_names_in_", None)  # remove those of an earlier fit
        if V.column_names is not None:
            self.feature_names_in_ = V.column_names

    def _connect(self) -> Any:
        if self.client is None:
            try:
                client: Any = default_client()
            except ValueError:
                raise ValueError(
                    "`client` is None and there is no Dask client: start one, for example with "
                    "distributed.Client()."
                ) from None
        else:
            client = self.client
        if client.asynchronous:
            raise TypeError("`client` must not be asynchronous: use Client(asynchronous=False).")
        check_workers(client)
        return client


def _fit_until_interrupted(problem: Any, start: Factors | None, settings: FitSettings) -> Fit:
    """Return a fit, up to its last completed round if Ctrl-C ends it."""
    try:
        return fit(problem, start, settings)
    except Interrupted as interrupt:
        result: Fit = interrupt.result
        return result


def _used(restored: Any) -> Array:
    """Return which components have weight; a penalty removes those that explain nothing."""
    return np.asarray(restored.W[0] > 0)


def _join(*digests: str | None) -> str | None:
    """Return one fingerprint, or None if there is none."""
    known = [digest or "-" for digest in digests]
    return None if not any(digests) else " ".join(known)
