# SPDX-License-Identifier: BSD-3-Clause
"""Rows of an HDF5 file as a `Matrix` on disk: looked through once, then read window by window."""

from __future__ import annotations

from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sipower import kernels
from sipower.data.fingerprint import Fingerprint
from sipower.data.memory import name_array
from sipower.data.on_disk import DEFAULT_LIMIT, StoredMatrix
from sipower.data.validate import EntryError, as_matrix, working_type
from sipower.io.base import ReadError
from sipower.io.hdf5 import open_hdf5
from sipower.io.sources import Compressed, entry_error
from sipower.kernels import Array
from sipower.store import byte_size
from sipower.store.buffers import Buffers
from sipower.store.external_sort import ranges

__all__ = ["open_h5ad"]

AT_ONCE = 2**21  # terms looked at together when a file is opened
READ_AS_THEY_ARE = tuple(np.dtype(kind) for kind in ("u1", "u2", "f4", "f8"))


class BackedSource:
    """The rows of an open HDF5 file."""

    def __init__(self, path: Path, layer: str | None) -> None:
        self.path, self.layer, self._open = path, layer, ExitStack()
        stream = self._open.enter_context(open_hdf5(path, layer))
        self.samples, self.features = stream.samples, stream.features
        if not isinstance(stream.source, Compressed) or stream.source.by_columns:
            raise ReadError(
                f"{path} does not hold its counts row by row (CSR): make a store of it with "
                "sipower convert."
            )
        self.counts = stream.source
        self.indptr: NDArray[np.int64] = self.counts.indptr.astype(np.int64)
        given = self.counts.data.dtype
        self.value_type = given if given in READ_AS_THEY_ARE else np.dtype(np.float64)

    def __str__(self) -> str:
        return str(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return BackedSource, (self.path, self.layer)

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with the terms from `first` on."""
        if len(indices) == 0:
            return
        part = np.s_[first : first + len(indices)]
        self.counts.indices.dataset.read_direct(indices, part)
        self.counts.data.dataset.read_direct(values, part)

    def reopen(self, dtype: np.dtype[Any], threads: int, limit: int) -> StoredMatrix:
        """The matrix again."""
        return open_h5ad(self.path, self.layer, dtype=dtype, n_jobs=threads, memory_limit=limit)

    def looked_through(self, working: np.dtype[Any]) -> tuple[Array, Array, str]:
        """Sums of the rows and of the columns, and the fingerprint; all numbers are checked."""
        rows, columns = self.counts.shape
        mass, column_mass, digest = np.zeros(rows), np.zeros(columns), Fingerprint()
        for begin, end in ranges(self.indptr, AT_ONCE):
            part: Any = self.counts.part(begin, end)
            as_they_are = self.counts.indices[self.indptr[begin] : self.indptr[end]]
            if not np.array_equal(part.indices, as_they_are):
                raise ReadError(
                    f"{self.path} has zeros or unsorted entries among its counts, in rows {begin} "
                    f"to {end - 1}: make a store of it with sipower convert."
                )
            try:
                checked = as_matrix(part, dtype=working, n_jobs=1, transposable=False)
            except EntryError as problem:
                raise entry_error(self.path, problem, begin) from None
            mass[begin:end] = checked.mass
            column_mass += np.bincount(part.indices, part.data, minlength=columns)
            digest.add(part)
        return mass, column_mass, digest.of(self.counts.shape)


def open_h5ad(
    path: str | PathLike[str],
    layer: str | None = None,
    *,
    dtype: DTypeLike | None = None,
    n_jobs: int | None = None,
    memory_limit: int | str = DEFAULT_LIMIT,
) -> StoredMatrix:
    """Open the counts of an .h5ad file, or of a .h5 file of 10x, without reading them into memory.

    Parameters
    ----------
    path, layer
        The file, and the layer to take in place of X. Counts must be stored row by row (CSR).
    dtype, n_jobs, memory_limit
        As in `sipower.io.open_store`.

    Returns
    -------
    StoredMatrix
        It holds its rows only and serves the rules that need sums alone, "auto" among them. A file
        that is used often is better made into a store by `sipower convert`: half as many bytes,
        both orientations, and nothing to decompress.
    """
    source = BackedSource(Path(path), layer)
    working = working_type(source.counts.data.dtype, dtype)
    mass, column_mass, sha256 = source.looked_through(working)
    buffers, threads = Buffers(byte_size(memory_limit)), kernels.count_threads(n_jobs)
    matrix = StoredMatrix(source, working, threads, buffers, (mass, column_mass))
    matrix.sha256 = sha256
    matrix.row_names = name_array(source.samples)
    matrix.column_names = name_array(source.features)
    return matrix
