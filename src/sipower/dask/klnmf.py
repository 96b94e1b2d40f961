# SPDX-License-Identifier: BSD-3-Clause
"""`KLNMF` for data in row chunks on the workers of a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import dask.array as da
from distributed import default_client
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sipower import estimators
from sipower.dask.factorization import WorkerFactorization
from sipower.dask.lazy_transform import LazyTransform
from sipower.dask.waiting import check_workers
from sipower.dask.worker_rows import WorkerRows
from sipower.estimators.attributes import FittedAttributes, restore_on_failure, row_tolerance
from sipower.estimators.callbacks import Listener
from sipower.estimators.fit import Fit, as_fit, fit_profile
from sipower.estimators.model import Model
from sipower.estimators.observation import ARGUMENTS, check_names
from sipower.estimators.parameters import CONSTRAINTS, as_seed, fit_settings
from sipower.estimators.penalties import has_penalties
from sipower.estimators.prepared import Prepared
from sipower.estimators.prior import check_prior, has_prior
from sipower.estimators.remarks import warn_about_data, warn_unless_converged
from sipower.loop.solve import Interrupted, Record, Result
from sipower.nmf.exposure import Exposure
from sipower.nmf.online import fit_sample
from sipower.nmf.profile import draw_start

SHARED_PARAMETERS = (
    "tol", "max_iter", "max_time", "random_state", "dtype", "transform_tol", "verbose", "on_round",
    "checkpoint", "checkpoint_every", "components_fixed", "components_zero", "prior_W", "prior_H",
    "guides", "guide_strength", "missing", "alpha_W", "alpha_H", "l1_ratio",
)  # fmt: skip


class KLNMF(  # type: ignore[call-arg]
    FittedAttributes,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    LazyTransform,
    BaseEstimator,  # type: ignore[misc]
    auto_wrap_output_keys=None,  # because W is lazy, and a DataFrame would load all of it
):
    """Non-negative matrix factorisation for the Kullback-Leibler divergence on a Dask cluster.

    The fit is the same as ``sipower.KLNMF(solver="profile")``: in every round, each row of W is
    solved exactly, with a certificate, for the current H. W stays on the workers. In each round,
    one task per worker sends sums of the size of H to the client.

    Parameters
    ----------
    n_components : int
        Number of components K.
    client : distributed.Client or None
        Client of the cluster; None means the client that was started last.
    init : {"sample", "random"}
        Start of H. "sample" factorises up to 8,192 rows on the client with surplus components,
        then merges components until K are left. With known components or `components_zero` the rows
        are factorised with K components instead; `prior_H` and `guides` come last. "random" draws
        the same uniform random numbers as `sipower.KLNMF`.
    tol, max_iter, max_time, random_state, dtype, verbose, on_round
        As in `sipower.KLNMF`. The same seed gives the same results up to the rounding of sums,
        because their order depends on which workers hold the chunks.
    transform_tol : float
        Certified gap to which `transform` solves every row; after `fit`, a quarter of `tol` if that
        is smaller. The fit itself solves rows to a gap of 1e-6.
    checkpoint, checkpoint_every
        As in `sipower.KLNMF`; the file is written where the client runs.
    components_fixed, components_zero, prior_W, prior_H, guides, guide_strength, missing
        As in `sipower.KLNMF`. `missing` concerns arrays: NaN in a file is an error.
    alpha_W, alpha_H, l1_ratio
        As in `sipower.KLNMF`.

    Attributes
    ----------
    components_, n_iter_, kl_divergence_, reconstruction_err_, kkt_residual_, status_, trace_
        As in `sipower.KLNMF`.
    guides_ : list of GuideReport
        As in `sipower.KLNMF`; only with `guides`.
    feature_names_in_ : ndarray of str
        Names of the features, if a file or a chunk has them.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sipower.dask import KLNMF
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(400, 100, 3, length=200, seed=0).toarray()
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = KLNMF(3, random_state=0, tol=1e-2)
    ...     W = model.fit_transform(da.from_array(V, chunks=(100, -1)))
    ...     W.chunks, W.compute().shape, model.status_
    (((100, 100, 100, 100), (3,)), (400, 3), 'converged')
    """

    solver, n_init = "profile", 1  # recorded in the checkpoint of a run

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": CONSTRAINTS["n_components"][:1],
        "client": "no_validation",
        "init": [StrOptions({"sample", "random"})],
        **{name: CONSTRAINTS[name] for name in SHARED_PARAMETERS},
    }

    def __init__(  # noqa: PLR0913 - arguments of sipower.KLNMF
        self,
        n_components: int,
        *,
        client: Any = None,
        init: str = "sample",
        tol: float = 1e-3,
        max_iter: int = 500,
        max_time: float | None = None,
        random_state: Any = None,
        dtype: DTypeLike | None = None,
        transform_tol: float = 1e-6,
        verbose: int = 0,
        on_round: Callable[[Record], object] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        components_fixed: Any = None,
        components_zero: Any = None,
        prior_W: Any = 0.0,
        prior_H: Any = 0.0,
        guides: Any = None,
        guide_strength: float | None = None,
        missing: Literal["nan"] | None = None,
        alpha_W: float = 0.0,
        alpha_H: float | Literal["same"] = "same",
        l1_ratio: float = 0.0,
    ) -> None:
        self.n_components = n_components
        self.client = client
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.dtype = dtype
        self.transform_tol = transform_tol
        self.verbose = verbose
        self.on_round = on_round
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.components_fixed = components_fixed
        self.components_zero = components_zero
        self.prior_W = prior_W
        self.prior_H = prior_H
        self.guides = guides
        self.guide_strength = guide_strength
        self.missing = missing
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # a connection cannot be stored

    def __sklearn_clone__(self) -> KLNMF:
        return type(self)(**self.get_params(deep=False))  # keeps the same client

    # ---- fitting -----------------------------------------------------------------------------

    def fit(  # noqa: PLR0913 - arguments of sipower.KLNMF
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
        `mask` may also be Dask arrays with the row chunks of X. `batch` is not offered.
        """
        self._learn(X, (sample_weight, feature_weight, weights, mask, offsets, batch))
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
    ) -> da.Array:
        """Learn the components of X and return W as a lazy array with the row chunks of X.

        The arguments are those of `fit`. The workers keep the rows of X as long as W exists.
        """
        V = self._learn(X, (sample_weight, feature_weight, weights, mask, offsets, batch))
        # With a penalty, the weight of a sample changes its row of W, as in sipower.KLNMF.
        loaded = list(zip(V.chunks, V.futures, strict=True))
        return self._rows(loaded, with_sample_weights=bool(self.alpha_W))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def _learn(self, X: Any, given: tuple[Any, ...]) -> WorkerRows:
        started = time.monotonic()
        check_prior(self)
        listener = Listener(self, X)
        with restore_on_failure(self, Interrupted):
            V = WorkerRows(self._connect(), X, self.dtype, given, self.missing)
            seed, rank = as_seed(self.random_state), int(self.n_components)
            smooth = has_prior(self) or has_penalties(self)
            self.transform_tol_ = row_tolerance(self.transform_tol, self.tol, smooth=smooth)
            self._set_features(V)
            for name in ("weights", "mask"):
                check_names(name, given[ARGUMENTS.index(name)], V)
            warn_about_data(V, rank)
            exposure = Exposure() if V.has_exposure else None  # the workers have its entries
            model = Model(self, Prepared(V, exposure, column_scale=V.column_scale), seed)
            problem = WorkerFactorization(V, rank, model.terms(rank), self._row_options())
            start = draw_start(problem, seed)
            if self.init == "sample":
                start = start._replace(H=fit_sample(V, rank, seed, problem.terms).astype(V.dtype))
            settings = fit_settings(
                self, V, start, seed=seed, started=started, listener=listener,
                digest=_join(model.digest, V.digest),
            )  # fmt: skip
            settings = replace(settings, trace="every")  # every round computes value and gap
            try:
                result = fit_profile(problem, start, settings)
            except Interrupted as interrupt:
                self._set_result(problem, model, interrupt.result)
                raise
            fit = self._set_result(problem, model, result)
        warn_unless_converged(fit, self.tol)
        return V

    def _set_result(self, problem: WorkerFactorization, model: Model, result: Result[Any]) -> Fit:
        """Set the fitted attributes; W is replaced by the sum of its rows."""
        weights = problem.weights(result.x.H)[None]
        fit = model.restore(replace(as_fit(problem, result), W=weights))
        self._set_fit(fit)
        self._set_guides(model)
        return fit

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

    def to_local(self) -> estimators.KLNMF:
        """Return the fitted model as a `sipower.KLNMF`, for data in memory."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        del parameters["client"], parameters["init"]
        local = estimators.KLNMF(solver=self.solver, **parameters)
        for name in vars(self).keys() - self.get_params().keys():
            setattr(local, name, getattr(self, name))
        return local


def _join(*digests: str | None) -> str | None:
    """Return one fingerprint, or None if there is none."""
    known = [digest or "-" for digest in digests]
    return None if not any(digests) else " ".join(known)
