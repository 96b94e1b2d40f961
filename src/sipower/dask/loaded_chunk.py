# SPDX-License-Identifier: BSD-3-Clause
"""`LoadedChunk`: validated rows on a worker, their description, and their pickling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.kernels import Array

__all__ = ["ChunkInfo", "LoadedChunk", "find_other_feature", "load_chunk"]


class ChunkInfo(NamedTuple):
    """The description of a chunk, which is sent to the client."""

    shape: tuple[int, int]
    nnz: int = 0
    total: float = 0.0
    dense: bool = False
    dtype: Any = None
    column_names: Array | None = None
    problem: Exception | None = None

    @property
    def feature_names(self) -> Array | None:
        """The feature names, or None unless all are strings.

        This is scikit-learn's rule for `feature_names_in_`.
        """
        names = self.column_names
        if names is None or not all(isinstance(name, str) for name in names):
            return None
        return np.asarray(names, object)


def find_other_feature(names: Array | None, expected: Array | None) -> str:
    """Describe the first feature that differs from the expected one; "" if none does."""
    if names is None or expected is None or not (names != expected).any():
        return ""
    at = int(np.argmax(names != expected))
    return f"feature {at} is {names[at]!s}, not {expected[at]!s}"


def _no_matrix() -> None:
    """Return None, the matrix of a chunk without rows."""


@dataclass
class LoadedChunk:
    """Rows on a worker; there is no matrix if they are empty or invalid.

    Attributes
    ----------
    info
        Description of the rows.
    make
        Function that makes the matrix after it has arrived from another worker.
    size
        Size in bytes, from which Dask estimates the cost of a chunk.
    """

    info: ChunkInfo
    make: Callable[[], RowBlocks | None] = _no_matrix
    size: int = 0

    @classmethod
    def from_matrix(cls, info: ChunkInfo, matrix: RowBlocks) -> LoadedChunk:
        """Return a chunk with these rows."""
        chunk = cls(info, size=_bytes(matrix))
        chunk.matrix = matrix
        return chunk

    @cached_property
    def matrix(self) -> RowBlocks | None:
        """The rows. Those from another worker are made at first use, not on arrival.

        Dask would wait for ever for a task whose data raise an error on arrival.
        """
        return self.make()

    @cached_property
    def _by_threads(self) -> dict[int, RowBlocks]:
        return {}

    def with_threads(self, threads: int) -> RowBlocks | None:
        """Return the rows for a number of threads; they are made once, not in every round."""
        if self.matrix is not None and threads not in self._by_threads:
            self._by_threads[threads] = self.matrix.with_settings(threads=threads)
        return self._by_threads.get(threads)

    def __reduce__(self) -> tuple[Any, ...]:
        held = vars(self).get("matrix")  # a chunk that was not used yet is sent on as it arrived
        make = self.make if held is None else partial(_restore, *held.__reduce__())
        return LoadedChunk, (self.info, make, self.size)

    def __sizeof__(self) -> int:
        return self.size


def _bytes(matrix: RowBlocks) -> int:
    if not matrix.is_in_memory:
        return 0
    if matrix.dense:
        return int(matrix.array.nbytes)
    array = matrix.array
    return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)


def _restore(make: Callable[..., RowBlocks], arguments: Any) -> RowBlocks:
    return make(*arguments)


def load_chunk(data: Any, dtype: DTypeLike | None) -> LoadedChunk:
    """Validate a chunk or the rows of a file, on the worker that will hold them."""
    shape: Any = (0, 0)
    try:
        data = data(dtype) if callable(data) else data
        shape = np.shape(data)
        if len(shape) == 2 and shape[0] == 0 < shape[1]:
            return LoadedChunk(ChunkInfo(shape))
        matrix = as_matrix(data, dtype=dtype, n_jobs=1, rows_only=True)
    except (TypeError, ValueError) as problem:
        return LoadedChunk(ChunkInfo(shape, problem=problem))
    facts = matrix.nnz, matrix.total, matrix.dense, matrix.dtype, matrix.column_names
    return LoadedChunk.from_matrix(ChunkInfo(shape, *facts), matrix)
