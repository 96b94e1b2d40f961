# SPDX-License-Identifier: BSD-3-Clause
"""`KLNMF` for data in row chunks on the workers of a Dask cluster."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

import dask.array as da
import numpy as np
from dask.delayed import delayed
from dask.highlevelgraph import HighLevelGraph
from distributed import default_client
from distributed.worker import warn
from numpy.typing import DTypeLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sipower import estimators
from sipower.dask.chunks import (
    Chunk,
    LoadedChunk,
    Origin,
    as_chunks,
    find_other_feature,
    load_chunk,
)
from sipower.dask.factorization import WorkerFactorization
from sipower.dask.waiting import check_workers
from sipower.dask.worker_rows import WorkerRows
from sipower.estimators.attributes import FittedAttributes, restore_on_failure, row_tolerance
from sipower.estimators.callbacks import Listener
from sipower.estimators.fit import as_fit, exact_rows, fit_profile
from sipower.estimators.parameters import CONSTRAINTS, as_seed, fit_settings
from sipower.estimators.remarks import warn_about_data, warn_unless_converged
from sipower.kernels import Array
from sipower.loop.solve import Interrupted, Record
from sipower.nmf import Factors
from sipower.nmf.init import random_factor
from sipower.nmf.online import fit_sample

SHARED_PARAMETERS = (
    "tol", "max_iter", "max_time", "random_state", "dtype", "transform_tol", "verbose", "on_round",
    "checkpoint", "checkpoint_every",
)  # fmt: skip


class KLNMF(  # type: ignore[call-arg]
    FittedAttributes,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
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
        then merges components until K are left; "random" draws the same uniform random numbers as
        `sipower.KLNMF`.
    tol, max_iter, max_time, random_state, dtype, verbose, on_round
        As in `sipower.KLNMF`. The same seed gives the same results up to the rounding of sums,
        because their order depends on which workers hold the chunks.
    transform_tol : float
        Certified gap to which `transform` solves every row; after `fit`, a quarter of `tol` if that
        is smaller. The fit itself solves rows to a gap of 1e-6.
    checkpoint, checkpoint_every
        As in `sipower.KLNMF`; the file is written where the client runs.

    Attributes
    ----------
    components_, n_iter_, kl_divergence_, reconstruction_err_, kkt_residual_, status_, trace_
        As in `sipower.KLNMF`.
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

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # a connection cannot be stored

    def __sklearn_clone__(self) -> KLNMF:
        return type(self)(**self.get_params(deep=False))  # keeps the same client

    # ---- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the components of X.

        X is a Dask array of row chunks, dense or CSR; an AnnData object whose X is such an array;
        or a list of files (use `Files` to set options), each opened by a worker.
        """
        self._learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> da.Array:
        """Learn the components of X and return W as a lazy array with the row chunks of X.

        The workers keep the rows of X as long as W exists.
        """
        V = self._learn(X)
        return self._rows(list(zip(V.chunks, V.futures, strict=True)))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def _learn(self, X: Any) -> WorkerRows:
        started = time.monotonic()
        listener = Listener(self, X)
        with restore_on_failure(self, Interrupted):
            V = WorkerRows(self._connect(), X, self.dtype)
            seed, rank = as_seed(self.random_state), int(self.n_components)
            self.transform_tol_ = row_tolerance(self.transform_tol, self.tol)
            self._set_features(V)
            warn_about_data(V, rank)
            draw = fit_sample if self.init == "sample" else partial(random_factor, side=1)
            H = draw(V, rank, seed).astype(V.dtype)
            start = Factors(np.zeros((0, rank), V.dtype), H)
            settings = fit_settings(self, V, start, seed=seed, started=started, listener=listener)
            settings = replace(settings, trace="every")  # every round computes value and gap
            problem = WorkerFactorization(V, rank)
            try:
                result = fit_profile(problem, start, settings)
            except Interrupted as interrupt:
                self._set_fit(as_fit(problem, interrupt.result), interrupt.result.state.d)
                raise
            fit = as_fit(problem, result)
            self._set_fit(fit, result.state.d)
        warn_unless_converged(fit, self.tol)
        return V

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

    # ---- using -------------------------------------------------------------------------------

    def transform(self, X: Any) -> da.Array:
        """Return W for the fitted components as a lazy array, chunk by chunk.

        X has one of the types that `fit` accepts. The result is bitwise equal to that of
        `sipower.KLNMF.transform`. Feature names are compared with those of the fit when a worker
        reads them.
        """
        check_is_fitted(self)
        chunks = as_chunks(X)
        _check_features(chunks[0].shape[1], self.n_features_in_)
        load = delayed(load_chunk, pure=False)
        return self._rows([(chunk, load(chunk.data, self.components_.dtype)) for chunk in chunks])

    def _rows(self, loaded: list[tuple[Chunk, Any]]) -> da.Array:
        """Return W as a lazy array; `loaded` pairs each chunk with its rows, delayed or loaded."""
        solve = delayed(_solve_rows, pure=False)
        basis = delayed(np.ascontiguousarray(self.components_.T), traverse=False)
        names = delayed(getattr(self, "feature_names_in_", None), traverse=False)
        chunks = [
            solve(rows, chunk.origin, basis, names, self.transform_tol_) for chunk, rows in loaded
        ]
        # da.concatenate would drop chunks without rows.
        name = f"sipower-rows-{uuid.uuid4().hex}"
        layer = {(name, number, 0): chunk.key for number, chunk in enumerate(chunks)}
        graph = HighLevelGraph.from_collections(name, layer, dependencies=chunks)
        sizes = tuple(chunk.shape[0] for chunk, _ in loaded)
        return da.Array(graph, name, (sizes, (self.n_components_,)), dtype=self.components_.dtype)

    def to_local(self) -> estimators.KLNMF:
        """Return the fitted model as a `sipower.KLNMF`, for data in memory."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        del parameters["client"], parameters["init"]
        local = estimators.KLNMF(solver=self.solver, **parameters)
        for name in vars(self).keys() - self.get_params().keys():
            setattr(local, name, getattr(self, name))
        return local


def _solve_rows(
    chunk: LoadedChunk, origin: Origin, H: Array, names: Array | None, tol: float
) -> Array:
    """Return the rows of W for one chunk, computed on the worker of the chunk by one thread."""
    if chunk.info.problem is not None:
        raise ValueError(origin.describe(chunk.info.problem))
    _check_features(chunk.info.shape[1], len(H))
    if other := find_other_feature(chunk.info.feature_names, names):
        raise ValueError(
            f"{origin.name} has other features than the data of the fit: {other}. "
            "The feature names should match those that were passed during fit."
        )
    rows = chunk.with_threads(1)
    if rows is None:
        return np.zeros((0, H.shape[1]), H.dtype)
    missing = ~H.any(axis=1)
    if missing.any() and (lost := int((rows.column_mass[missing] > 0).sum())):
        # `exact_rows` warns only in the log of the worker; this warning reaches the client.
        warn(
            f"{origin.name} has counts of {lost} feature(s) that no component has: these counts "
            "are ignored."
        )
    return exact_rows(rows, H, tol)


def _check_features(count: float, expected: int) -> None:
    if not math.isnan(count) and count != expected:
        raise ValueError(
            f"X has {count} features, but KLNMF is expecting {expected} features as input."
        )
