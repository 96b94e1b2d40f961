# SPDX-License-Identifier: BSD-3-Clause
"""`StoredMatrix`: rows on disk, read in windows of whole blocks into two reusable buffers.

While the kernels work on one window the next is read into the other buffer, so that memory stays
within `memory_limit` whatever the size of the data. The blocks and their order are those of the
same data in memory, and so are the bits of every result.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sipower import kernels
from sipower.data import sampling
from sipower.data.buffers import INDEX, Buffers, Held
from sipower.data.columns import ColumnSums
from sipower.data.memory import Matrix
from sipower.data.row_blocks import ITEM_WORK, Batch, RowBlocks, Window, cut_by_work
from sipower.data.sampling import Scheme
from sipower.data.validate import check_range
from sipower.kernels import Array, Draw
from sipower.store.reader import check_terms

__all__ = ["DEFAULT_LIMIT", "SUM_TOL", "RowSource", "StoredMatrix"]

DEFAULT_LIMIT = "512MB"
SUM_TOL = 1e-9  # of the sum of a row, by rounding


class RowSource(Protocol):
    """A file of rows in CSR, open and checked, and what is known of it."""

    indptr: NDArray[np.int64]
    value_type: np.dtype[Any]
    mass: NDArray[np.float64]
    column_mass: NDArray[np.float64]
    smallest: float  # of the nonzeros
    largest: float
    row_names: Array | None
    column_names: Array | None

    @property
    def path(self) -> Path:
        """The file, for messages."""

    @property
    def sha256(self) -> str | None:
        """Fingerprint, where it is known."""

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with the entries from `first` on."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the function and its arguments that open the file in another process."""


class StoredMatrix(RowBlocks):
    """Rows on disk; made by `sipower.io.open_store` and `open_h5ad`.

    Parameters
    ----------
    sides
        The rows, and the columns as rows of the transpose where the file has both.
    dtype, threads
        As for `Matrix`.
    buffers
        Memory for the windows, shared with the transpose.
    """

    dense = False

    def __init__(
        self, sides: tuple[RowSource, ...], dtype: np.dtype[Any], threads: int, buffers: Buffers
    ) -> None:
        self.sides, self.buffers = sides, buffers
        self.source = source = sides[0]
        self.dtype, self.threads = dtype, threads
        self.mass, self.indptr = source.mass, source.indptr
        self.shape, self.nnz = (len(source.mass), len(source.column_mass)), int(self.indptr[-1])
        self.total = float(self.mass.sum())
        self.has_columns = len(sides) == 2
        self.row_names, self.column_names = source.row_names, source.column_names
        self._check_range(dtype)
        self.bounds = cut_by_work(np.diff(self.indptr) + ITEM_WORK)
        self.windows_of_blocks = self._cut_into_windows()
        self._verified: set[int] = set()  # windows whose values were compared with their sums

    def _check_range(self, dtype: np.dtype[Any]) -> None:
        source = self.source
        check_range(str(source.path), source.smallest, source.largest, self.total, dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        settings = self.dtype, self.threads, self.buffers.limit
        return _reopen, (tuple(side.__reduce__() for side in self.sides), *settings)

    # ---- other forms of the data -------------------------------------------------------------

    def with_settings(
        self, dtype: np.dtype[Any] | None = None, threads: int | None = None
    ) -> StoredMatrix:
        """Return the open file for another working type or number of threads."""
        dtype = self.dtype if dtype is None else dtype
        threads = self.threads if threads is None else threads
        if (dtype, threads) == (self.dtype, self.threads):
            return self
        self._check_range(dtype)
        return self._copy(dtype=dtype, threads=threads)

    def _copy(self, **changes: Any) -> Self:
        copied = super()._copy(**changes)
        if "T" not in changes:  # the transpose has settings and names of its own
            vars(copied).pop("T", None)
        return copied

    def with_data(self, data: Any, *, rows_only: bool = False) -> Matrix:
        """Return other data, an array or CSR, in memory and with the settings of these."""
        return Matrix(data, self.dtype, self.threads, rows_only=rows_only)

    @cached_property
    def T(self) -> StoredMatrix:  # noqa: N802
        """The columns of the file as rows."""
        if not self.has_columns:
            raise ValueError("This file holds its rows only: use .columns instead of .T.")
        transpose = StoredMatrix(self.sides[::-1], self.dtype, self.threads, self.buffers)
        names = {"row_names": self.column_names, "column_names": self.row_names}
        return transpose._copy(T=self, **names)

    @property
    def columns(self) -> RowBlocks:
        """The other side as items: the transpose, or sums over the rows."""
        return self.T if self.has_columns else ColumnSums(self)

    # ---- windows -----------------------------------------------------------------------------

    def _cut_into_windows(self) -> list[range]:
        """Return runs of blocks that fit into one buffer."""
        starts = self.indptr[np.array(self.bounds)]
        room = self.buffers.terms(self.source.value_type)
        longest = int(np.diff(starts).max(initial=0))
        if longest > room:
            need = 2 * longest * (INDEX.itemsize + self.source.value_type.itemsize) + 32
            raise ValueError(
                f"memory_limit is {self.buffers.limit} bytes: the largest block of these data "
                f"needs at least {need}."
            )
        windows, first = [], 0
        while first < len(starts) - 1:
            last = int(np.searchsorted(starts, starts[first] + room, side="right")) - 1
            windows.append(range(first, max(last, first + 1)))
            first = windows[-1].stop
        return windows

    def windows(self) -> Iterator[Window]:
        """Yield window after window; the next is being read while one is worked on."""
        waiting = iter(self.windows_of_blocks)
        with self.buffers.lock, ThreadPoolExecutor(1, "sipower-read") as reader:
            ahead: Future[Held] | None = reader.submit(self._load, next(waiting), -1)
            while ahead is not None:
                held = ahead.result()
                coming = next(waiting, None)
                ahead = None if coming is None else reader.submit(self._load, coming, held.place)
                yield held.window

    def _load(self, blocks: range, busy: int) -> Held:
        """Return the window of some blocks, read unless a buffer still holds it."""
        key = (id(self.source), blocks)
        for held in self.buffers.held:
            if held is not None and held.key == key:
                return held
        place = self.buffers.free(busy)
        begin, end = self.bounds[blocks.start], self.bounds[blocks.stop]
        first, last = int(self.indptr[begin]), int(self.indptr[end])
        indices, values = self.buffers.arrays(place, last - first, self.source.value_type)
        self.source.read(first, indices, values)
        rows = slice(begin, end)
        mass = None if blocks.start in self._verified else self.mass[rows]
        data = self._verify(self.indptr, indices, values, rows, mass)
        self._verified.add(blocks.start)
        return self.buffers.keep(Held(key, place, Window(data, blocks)))

    # ---- parts of the data -------------------------------------------------------------------

    def take(self, items: Array) -> Any:
        """Return chosen rows in CSR; those that follow one another are read together."""
        indptr = np.append(0, np.cumsum(self.indptr[items + 1] - self.indptr[items]))
        indices = np.empty(indptr[-1], INDEX)
        values = np.empty(indptr[-1], self.source.value_type)
        starts = np.flatnonzero(np.diff(items, prepend=-2) != 1)
        for begin, end in pairwise(np.append(starts, len(items))):
            run = slice(indptr[begin], indptr[end])
            self.source.read(int(self.indptr[items[begin]]), indices[run], values[run])
        self._verify(indptr, indices, values, slice(0, len(items)), self.mass[items])
        values = values.astype(self.dtype, copy=False)
        return sp.csr_array((values, indices, indptr), shape=(len(items), self.shape[1]))

    def _verify(
        self, indptr: Array, indices: Array, values: Array, rows: slice, mass: Array | None
    ) -> kernels.Csr:
        """Return what was read, once its indices lie within the matrix and rows have their `mass`.

        The indices are checked at every read, for none may leave its array; the sums when something
        is read for the first time.
        """
        try:
            data = kernels.Csr(indptr, indices, values, self.shape[1], (rows.start, rows.stop))
            if mass is not None:
                starts = indptr[rows.start : rows.stop + 1]
                check_terms(starts - starts[0], indices, values)
                if not np.allclose(data.row_sums(), mass, rtol=SUM_TOL, atol=0):
                    raise ValueError("the values of a row have another sum")
            return data
        except ValueError as problem:
            raise ValueError(
                f"{self.source} is damaged: {problem}; convert the data again."
            ) from None

    def sample(self, scheme: Scheme, share: float, draw: Draw, *, replace: bool = False) -> Batch:
        """Draw entries of every item; the other schemes need the data in memory."""
        if scheme in ("vectors", "elements"):
            return Batch(self.array)  # which refuses
        weighted = scheme == "weighted"
        csr = sampling.sample_items(self, share, draw, weighted=weighted, replace=replace)
        return Batch(self.with_data(csr))

    @property
    def column_mass(self) -> NDArray[np.float64]:
        """Sums of the columns."""
        return self.source.column_mass

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of shape and nonzeros; see `sipower.data.fingerprint`."""
        return self.source.sha256 or super().sha256


def _reopen(sides: Any, dtype: np.dtype[Any], threads: int, limit: int) -> StoredMatrix:
    """Open a file in another process; nothing is opened before this is called."""
    sources = tuple(make(*arguments) for make, arguments in sides)
    return StoredMatrix(sources, dtype, threads, Buffers(limit))
