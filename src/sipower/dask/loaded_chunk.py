# SPDX-License-Identifier: BSD-3-Clause
"""`LoadedChunk`: validated rows on a worker, what the driver knows of them, and how they travel."""

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
    """What the driver knows of a chunk."""

    shape: tuple[int, int]
    nnz: int = 0
    total: float = 0.0
    dense: bool = False
    dtype: Any = None
    column_names: Array | None = None
    problem: Exception | None = None

    @property
    def feature_names(self) -> Array | None:
        """The names that scikit-learn keeps and compares: all of them strings."""
        names = self.column_names
        if names is None or not all(isinstance(name, str) for name in names):
            return None
        return np.asarray(names, object)


def find_other_feature(names: Array | None, expected: Array | None) -> str:
    """Return in words the first feature that is not the expected one, "" if there is none."""
    if names is None or expected is None or not (names != expected).any():
        return ""
    at = int(np.argmax(names != expected))
    return f"feature {at} is {names[at]!s}, not {expected[at]!s}"


def _no_matrix() -> None:
    """The matrix of a chunk without rows."""


@dataclass
class LoadedChunk:
    """Rows on a worker; no matrix if there are none, or if they were refused.

    Attributes
    ----------
    info
        What the driver knows of them.
    make
        Makes the matrix where it has just arrived from another worker.
    size
        Bytes, so that Dask knows what it costs to hold or to move a chunk.
    """

    info: ChunkInfo
    make: Callable[[], RowBlocks | None] = _no_matrix
    size: int = 0

    @classmethod
    def from_matrix(cls, info: ChunkInfo, matrix: RowBlocks) -> LoadedChunk:
        """Return a chunk whose rows are there."""
        chunk = cls(info, size=_bytes(matrix))
        chunk.matrix = matrix
        return chunk

    @cached_property
    def matrix(self) -> RowBlocks | None:
        """The rows. What has come from another worker is made here, not while it arrives.

        Dask waits for ever for a task whose data raise when they arrive.
        """
        return self.make()

    @cached_property
    def _by_threads(self) -> dict[int, RowBlocks]:
        return {}

    def with_threads(self, threads: int) -> RowBlocks | None:
        """Return the rows for so many threads; made once, not in every round."""
        if self.matrix is not None and threads not in self._by_threads:
            self._by_threads[threads] = self.matrix.with_settings(threads=threads)
        return self._by_threads.get(threads)

    def __reduce__(self) -> tuple[Any, ...]:
        held = vars(self).get("matrix")  # a chunk that has arrived and waits goes on as it came
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
    measured = matrix.nnz, matrix.total, matrix.dense, matrix.dtype, matrix.column_names
    return LoadedChunk.from_matrix(ChunkInfo(shape, *measured), matrix)
