# SPDX-License-Identifier: BSD-3-Clause
"""`LoadedChunk`: the validated rows of a chunk on a worker, and how they were observed."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sipower.dask.chunks import ChunkInfo, ReadRows
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.missing import hide_unobserved, split_missing
from sipower.estimators.observation import (
    ARGUMENTS,
    NOTHING_GIVEN,
    Observation,
    as_observation,
)
from sipower.estimators.prepared import Prepared, prepare

__all__ = ["LoadedChunk", "load_chunk", "observe_chunk"]

PLAIN = Observation()


class LoadedChunk:
    """The rows of a chunk on a worker.

    Rows from another worker are unpickled at first use, not on arrival: if unpickling raised an
    error on arrival, Dask would wait forever for the task.

    Parameters
    ----------
    info
        Description of the chunk.
    matrix
        The rows, or None if the chunk is empty or invalid.
    observation
        Weights, missing values and size factors of these rows.
    remarks
        What the reader of a file says about it; None: the rows are not from a file.
    feature_ids
        Ids of the features, or None.
    pickled
        A function and its arguments, or None. If given, the function is called at first use, and
        its result replaces `matrix`.
    """

    def __init__(
        self,
        info: ChunkInfo,
        matrix: RowBlocks | None = None,
        observation: Observation = PLAIN,
        remarks: tuple[str, ...] | None = None,
        feature_ids: tuple[str, ...] | None = None,
        pickled: Any = None,
    ) -> None:
        self.info, self.observation, self.pickled = info, observation, pickled
        self.remarks, self.feature_ids = remarks, feature_ids
        self._prepared: Prepared | None = None
        if pickled is None:
            self.matrix = matrix

    @cached_property
    def matrix(self) -> RowBlocks | None:
        """The rows, unpickled at first use."""
        make, arguments = self.pickled
        return make(*arguments)  # type: ignore[no-any-return]

    def prepared(self, threads: int = 1) -> Prepared | None:
        """Return the weighted rows without batch effects, for `threads` threads.

        None: the chunk has no rows. They are computed once.
        """
        if self.matrix is None:
            return None
        if self._prepared is None:
            self._prepared = prepare(self.matrix, replace(self.observation, batch=None))
        weighted = self._prepared.V.with_settings(threads=threads)
        self._prepared = replace(self._prepared, V=weighted)
        return self._prepared

    def prepared_for_transform(
        self, effects: Any, batches: Any, *, with_sample_weights: bool
    ) -> Prepared | None:
        """Return the weighted rows with batch effects, and with or without sample weights."""
        observation = self.observation
        if with_sample_weights or observation.weights.rows is None:
            if observation.batch is None:
                return self.prepared()
        else:
            observation = observation.without_sample_weights()
        if self.matrix is None:
            return None
        return prepare(self.matrix.with_settings(threads=1), observation, effects, batches)

    def convert(self, dtype: Any) -> LoadedChunk:
        """Return the chunk with another working type."""
        matrix = None if self.matrix is None else self.matrix.with_settings(dtype)
        info, facts = self.info._replace(dtype=dtype), (self.remarks, self.feature_ids)
        return LoadedChunk(info, matrix, self.observation, *facts)

    def __reduce__(self) -> tuple[Any, ...]:
        matrix = vars(self).get("matrix")  # missing if the chunk was never used
        pickled = self.pickled if matrix is None else matrix.__reduce__()
        facts = self.remarks, self.feature_ids
        return LoadedChunk, (self.info, None, self.observation, *facts, pickled)

    def __sizeof__(self) -> int:
        return self.info.size


def load_chunk(
    data: Any,
    dtype: DTypeLike | None,
    given: tuple[Any, ...] = NOTHING_GIVEN,
    missing: str | None = None,
) -> LoadedChunk:
    """Load and validate the rows of a chunk on the worker that will hold them.

    Parameters
    ----------
    data
        A chunk of an array, a function of `dtype` that reads a file, or a loaded chunk.
    dtype
        Working type; None: that of the data.
    given
        Values of `ARGUMENTS` for these rows.
    missing
        "nan" if NaN means not observed.
    """
    shape: Any = (0, 0)
    remarks, feature_ids = None, None
    try:
        data = data(dtype) if callable(data) else data
        if isinstance(data, LoadedChunk):
            if data.matrix is None:
                return data
            remarks, feature_ids = data.remarks, data.feature_ids
            data = data.matrix
        elif isinstance(data, ReadRows):
            data, feature_ids, remarks = data
        shape = np.shape(data)
        if len(shape) == 2 and shape[0] == 0 < shape[1]:
            return LoadedChunk(ChunkInfo(shape))
        is_missing, mask = None, given[ARGUMENTS.index("mask")]
        if mask is not None:
            data = hide_unobserved(data, mask)
        if missing == "nan":
            data, is_missing = split_missing(data)
        matrix = as_matrix(data, dtype=dtype, n_jobs=1, rows_only=True)
        observation = as_observation(matrix.shape, given, missing=is_missing, fitting=False)
        chunk = LoadedChunk(ChunkInfo(shape), matrix, observation, remarks, feature_ids)
        return _add_info(chunk)
    except (TypeError, ValueError) as problem:
        return LoadedChunk(ChunkInfo(shape, problem=problem))


def observe_chunk(chunk: LoadedChunk, given: tuple[Any, ...]) -> LoadedChunk:
    """Return a chunk that was loaded before its part of the arguments was known."""
    if chunk.matrix is None:
        return chunk
    return load_chunk(chunk, chunk.info.dtype, given)


def _add_info(chunk: LoadedChunk) -> LoadedChunk:
    """Return a valid chunk with the description of its weighted rows."""
    prepared = chunk.prepared()
    assert prepared is not None
    V = prepared.V
    chunk.info = ChunkInfo(
        V.shape, V.nnz, V.total, V.dense, V.dtype, V.column_names, _bytes(V),
        has_exposure=prepared.exposure is not None,
    )  # fmt: skip
    return chunk


def _bytes(matrix: RowBlocks) -> int:
    """Return the memory that rows take, from which Dask estimates the cost of moving them."""
    if not matrix.is_in_memory:
        return 0
    array = matrix.array
    parts = (array,) if matrix.dense else (array.data, array.indices, array.indptr)
    return sum(part.nbytes for part in parts)
