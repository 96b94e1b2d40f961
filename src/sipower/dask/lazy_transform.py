# SPDX-License-Identifier: BSD-3-Clause
"""`LazyTransform`: the method `transform` of a model that was fitted on a Dask cluster."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from dask.highlevelgraph import HighLevelGraph
from distributed.worker import warn
from numpy.typing import DTypeLike
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sipower.dask.arguments import check_arguments, divide_arguments
from sipower.dask.chunks import Chunk, Origin, as_chunks, find_other_feature
from sipower.dask.loaded_chunk import LoadedChunk, load_chunk
from sipower.dask.task_names import task_key
from sipower.dask.waiting import gather_results
from sipower.data.names import as_names
from sipower.data.plausibility import count_remark
from sipower.estimators.exact_rows import exact_rows
from sipower.estimators.new_data import check_fitted_batches
from sipower.estimators.observation import ARGUMENTS
from sipower.estimators.prior import row_model
from sipower.kernels import Array

__all__ = ["LazyTransform", "gather_rows", "stack_chunks"]

ROW_PARAMETERS = ("alpha_W", "alpha_H", "l1_ratio", "prior_W")


class LazyTransform(TransformerMixin):  # type: ignore[misc]
    """A mixin with `transform`."""

    components_: Array
    n_components_: int
    n_features_in_: int
    transform_tol_: float
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
    ) -> da.Array:
        """Return W for the fitted components as a lazy array, chunk by chunk.

        X has one of the types that `fit` accepts, and the other arguments are those of `fit`;
        `sample_weight` has no effect on rows. The result is bitwise equal to that of
        `sipower.KLNMF.transform`. Feature names are compared with those of the fit when a worker
        reads them. The values of the first chunk are compared with those of the fit when it is
        computed: the warning of `sipower.KLNMF.transform` comes then.
        """
        check_is_fitted(self)
        features = as_names(getattr(self, "feature_names_in_", None))
        given = check_arguments((None, feature_weight, weights, mask, offsets, batch), features)
        if batch is not None:
            check_fitted_batches(self, given[ARGUMENTS.index("batch")])
        chunks = as_chunks(X)
        _check_features(chunks[0].shape[1], self.n_features_in_)
        load, dtype = delayed(load_chunk, pure=False), self.components_.dtype
        parts = zip(chunks, divide_arguments(given, chunks), strict=True)
        return self._rows(
            [
                (
                    chunk,
                    load(chunk.data, dtype, part, self.missing, dask_key_name=task_key("chunk", i)),
                )
                for i, (chunk, part) in enumerate(parts)
            ],
            compared=next((i for i, chunk in enumerate(chunks) if chunk.shape[0] != 0), None),
        )

    def _rows(
        self,
        loaded: list[tuple[Chunk, Any]],
        *,
        with_sample_weights: bool = False,
        compared: int | None = None,
    ) -> da.Array:
        """Return W as a lazy array; `loaded` pairs each chunk with its rows, delayed or loaded.

        The values of the chunk with the number `compared` are compared with those of the fit.
        """
        solve = delayed(_solve_rows, pure=False)
        H = np.ascontiguousarray(self.components_.T)
        basis = delayed(H, name=task_key("components"), traverse=False)
        feature_names = getattr(self, "feature_names_in_", None)
        names = delayed(feature_names, name=task_key("feature-names"), traverse=False)
        options = self._row_options()
        options.transform_tol_ = self.transform_tol_
        options.with_sample_weights = with_sample_weights
        options.batch_effects_ = getattr(self, "batch_effects_", None)
        options.batches_ = getattr(self, "batches_", None)
        options.whole_numbers = getattr(self, "_whole_numbers", None)
        model = delayed(options, name=task_key("row-options"), traverse=False)
        chunks = [
            solve(
                rows, chunk.origin, basis, names, model, compare=i == compared,
                dask_key_name=task_key("solve-rows", i),
            )
            for i, (chunk, rows) in enumerate(loaded)
        ]  # fmt: skip
        sizes = tuple(chunk.shape[0] for chunk, _ in loaded)
        return stack_chunks(chunks, sizes, self.n_components_, self.components_.dtype)

    def _row_options(self) -> SimpleNamespace:
        """Return the parameters from which workers make the terms of their rows."""
        return SimpleNamespace(**{name: getattr(self, name) for name in ROW_PARAMETERS})


def stack_chunks(
    chunks: list[Any], sizes: tuple[float, ...], columns: int, dtype: DTypeLike
) -> da.Array:
    """Return delayed chunks of rows, of the given sizes, as one lazy array."""
    # da.concatenate would drop chunks without rows.
    name = task_key("rows")
    layer = {(name, number, 0): chunk.key for number, chunk in enumerate(chunks)}
    graph = HighLevelGraph.from_collections(name, layer, dependencies=chunks)
    return da.Array(graph, name, (sizes, (columns,)), dtype=dtype)


def gather_rows(client: Any, W: da.Array) -> Array:
    """Return W in the memory of the client."""
    futures = client.compute(list(W.to_delayed().ravel()), optimize_graph=False)
    return np.concatenate(gather_results(client, futures))


def _solve_rows(
    chunk: LoadedChunk,
    origin: Origin,
    H: Array,
    names: Array | None,
    options: Any,
    *,
    compare: bool,
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
    prepared = chunk.prepared_for_transform(
        options.batch_effects_, options.batches_, with_sample_weights=options.with_sample_weights
    )
    if prepared is None:
        return np.zeros((0, H.shape[1]), H.dtype)
    if compare and (remark := count_remark(chunk.matrix, fitted=options.whole_numbers)):
        warn(f"{origin.name}: {remark}")  # reaches the client
    V, H = prepared.V, prepared.scale_columns(H)
    missing = ~H.any(axis=1)
    if missing.any() and (lost := int((V.column_mass[missing] > 0).sum())):
        # `exact_rows` warns only in the log of the worker; this warning reaches the client.
        warn(
            f"{origin.name} has counts of {lost} feature(s) that no component has: these counts "
            "are ignored."
        )
    terms = row_model(options, prepared, H.shape[1]).row_terms(H)
    return prepared.restore_rows(exact_rows(V, H, options.transform_tol_, terms))


def _check_features(count: float, expected: int) -> None:
    if not math.isnan(count) and count != expected:
        raise ValueError(
            f"X has {count} features, but KLNMF is expecting {expected} features as input."
        )
