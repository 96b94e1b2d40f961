# SPDX-License-Identifier: BSD-3-Clause
"""`open_rows`: the rows of an AnnData or 10x file as row blocks, read without a cache."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sipower import kernels
from sipower.data.buffers import Buffers
from sipower.data.fingerprint import Fingerprint
from sipower.data.on_disk import StoredMatrix
from sipower.data.validate import EntryError, as_matrix, name_array, working_type
from sipower.io.base import ReadError
from sipower.io.dispatch import open_counts
from sipower.io.sources import Compressed, entry_error
from sipower.io.words import TextSettings
from sipower.kernels import Array
from sipower.store.external_sort import ranges

__all__ = ["open_rows"]

ENTRIES_AT_ONCE = 2**21  # entries that are checked at a time when a file is opened
UNCONVERTED_TYPES = tuple(np.dtype(kind) for kind in ("u1", "u2", "f4", "f8"))


class BackedSource:
    """The rows of an open file as a `RowSource`; all entries are checked on opening."""

    remedy = "write the file again"

    def __init__(self, path: Path, layer: str | None) -> None:
        self.path, self.layer, self._open = path, layer, ExitStack()
        stream = self._open.enter_context(open_counts(path, None, layer, TextSettings()))
        self.row_names, self.column_names = name_array(stream.samples), name_array(stream.features)
        if not isinstance(stream.source, Compressed) or stream.source.by_columns:
            raise ReadError(
                f"{path} does not hold its counts row by row (CSR): open it with a `cache`, or "
                "convert it to a store with sipower convert."
            )
        self.counts, self._stream = stream.source, stream
        self.origin, self.feature_ids = stream.origin, stream.feature_ids
        self.indptr: NDArray[np.int64] = self.counts.indptr.astype(np.int64)
        dtype = self.counts.data.dtype
        self.value_type = dtype if dtype in UNCONVERTED_TYPES else np.dtype(np.float64)
        self._inspect()

    def __str__(self) -> str:
        return str(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return BackedSource, (self.path, self.layer)

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with consecutive nonzeros, beginning with number `first`."""
        if len(indices) == 0:
            return
        part = np.s_[first : first + len(indices)]
        self.counts.indices.read_into(indices, part)
        self.counts.data.read_into(values, part)

    def _inspect(self) -> None:
        """Check all entries, and compute sums, range and fingerprint in the same pass."""
        (rows, columns), working = self.counts.shape, working_type(self.counts.data.dtype, None)
        self.mass, self.column_mass = np.zeros(rows), np.zeros(columns)
        self.width = columns
        self.smallest, self.largest, digest = np.inf, 0.0, Fingerprint()
        for begin, end in ranges(self.indptr, ENTRIES_AT_ONCE):
            part: Any = self.counts.part(begin, end)
            stored = self.counts.indices[self.indptr[begin] : self.indptr[end]]
            if not np.array_equal(part.indices, stored):
                raise ReadError(
                    f"{self.path} has stored zeros or unsorted entries in rows {begin} to "
                    f"{end - 1}: open it with a `cache`, or convert it to a store with sipower "
                    "convert."
                )
            try:
                checked = as_matrix(part, dtype=working, n_jobs=1, rows_only=True)
            except EntryError as problem:
                error = entry_error(self.path, problem, begin)
                raise self._stream.add_advice(error) from None
            self.mass[begin:end] = checked.mass
            self.column_mass += np.bincount(part.indices, part.data, minlength=columns)
            if part.nnz:
                self.smallest = min(self.smallest, float(part.data.min()))
                self.largest = max(self.largest, float(part.data.max()))
            digest.add(part)
        self.smallest = self.smallest if self.largest > 0 else 0.0
        self.sha256: str | None = digest.hexdigest(self.counts.shape)


def open_rows(
    path: Path, layer: str | None, *, dtype: DTypeLike | None, n_jobs: int | None, memory_limit: int
) -> StoredMatrix:
    """Open counts stored row by row (CSR) without reading them into memory or converting them.

    The arguments are those of `sipower.io.open_on_disk`.
    """
    source = BackedSource(path, layer)
    working = working_type(source.counts.data.dtype, dtype)
    return StoredMatrix((source,), working, kernels.count_threads(n_jobs), Buffers(memory_limit))
