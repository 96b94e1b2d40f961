# SPDX-License-Identifier: BSD-3-Clause
"""`StoredMatrix`: data on disk, read in windows of whole blocks into two reusable buffers.

While the kernels work on one window, the next one is read into the other buffer, so that memory
stays within `memory_limit` whatever the size of the data. The blocks and their order are the same
as for data in memory, and therefore every result is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sipower import kernels
from sipower.data import sampling
from sipower.data.block_bounds import cut_by_work
from sipower.data.buffers import INDEX, Buffers, LoadedWindow
from sipower.data.memory import Matrix
from sipower.data.row_blocks import ITEM_WORK, ROWS_ONLY, Batch, RowBlocks, Window
from sipower.data.row_source import RowSource
from sipower.data.sampling import Scheme
from sipower.data.validate import check_range
from sipower.data.weighted_source import WeightedSource, measure_weighted
from sipower.data.weights import Weights
from sipower.kernels import Array, Draw
from sipower.store.layout import check_entries

DEFAULT_LIMIT = "512MB"
SUM_TOL = 1e-9  # relative rounding error of the sum of a row


class StoredMatrix(RowBlocks):
    """Data on disk, opened by `sipower.io.open_on_disk`.

    Parameters
    ----------
    sides
        Source of the rows and, if the file holds the transpose too, source of its rows.
    dtype, threads
        As for `Matrix`.
    buffers
        Memory for the windows, shared with the transpose.
    """

    dense = False
    combines_kernels = True

    def __init__(
        self, sides: tuple[RowSource, ...], dtype: np.dtype[Any], threads: int, buffers: Buffers
    ) -> None:
        self.sides, self.buffers = sides, buffers
        self.source = source = sides[0]
        self.dtype, self.threads = dtype, threads
        self.mass, self.indptr = source.mass, source.indptr
        self.shape, self.nnz = (len(source.mass), source.width), int(self.indptr[-1])
        self.total = float(self.mass.sum())
        self.has_columns = len(sides) == 2
        self.row_names, self.column_names = source.row_names, source.column_names
        self._check_range(dtype)
        self.bounds = cut_by_work(np.diff(self.indptr) + ITEM_WORK)
        self.windows_of_blocks = self._cut_into_windows()
        self._verified: set[int] = set()  # first blocks of the windows whose row sums were checked

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
        """Return the same data for the working type `dtype` and `threads` threads."""
        dtype = self.dtype if dtype is None else dtype
        threads = self.threads if threads is None else threads
        if (dtype, threads) == (self.dtype, self.threads):
            return self
        self._check_range(dtype)
        return self._copy(dtype=dtype, threads=threads)

    def _copy(self, **changes: Any) -> Self:
        copied = super()._copy(**changes)
        if "T" not in changes:  # the cached transpose has the old settings and names
            vars(copied).pop("T", None)
        if "dtype" in changes:  # the fingerprint is that of the rounded values
            vars(copied).pop("sha256", None)
        return copied

    def weighted(self, weights: Weights) -> StoredMatrix:
        """Return the data times `weights`, which are applied whenever a window is read.

        Each orientation is read once for its sums, also by fits that run together. Both matrices
        share the buffers.
        """
        pairs = [(self, weights)]
        if self.has_columns:
            pairs.append((self.T, weights.transpose()))
        with self.buffers.weighting:
            sides = tuple(V._weighted_source(own) for V, own in pairs)
        weighted = StoredMatrix(sides, self.dtype, self.threads, self.buffers)
        return weighted.with_names(self.row_names, self.column_names)

    def _weighted_source(self, weights: Weights) -> WeightedSource:
        """Return the weighted rows, those of another matrix if it has the same weights."""
        key = self.source, self.dtype, weights.sha256
        found: WeightedSource | None = self.buffers.weighted.get(key)
        if found is None:
            found = WeightedSource(
                self.source, weights, self.dtype, measure_weighted(self, weights)
            )
            self.buffers.weighted[key] = found
        return found

    def with_data(self, data: Any, *, rows_only: bool = False) -> Matrix:
        """Return `data`, an array or CSR, as a matrix in memory with the settings of this one."""
        return Matrix(data, self.dtype, self.threads, rows_only=rows_only)

    @cached_property
    def T(self) -> StoredMatrix:  # noqa: N802
        """The transpose: the columns of the file as rows."""
        if not self.has_columns:
            raise ValueError(ROWS_ONLY)
        transpose = StoredMatrix(self.sides[::-1], self.dtype, self.threads, self.buffers)
        names = {"row_names": self.column_names, "column_names": self.row_names}
        return transpose._copy(T=self, **names)

    # ---- windows -----------------------------------------------------------------------------

    def _cut_into_windows(self) -> list[range]:
        """Return the windows: ranges of blocks, each of which fits into one buffer."""
        starts = self.indptr[np.array(self.bounds)]
        room = self.buffers.capacity(self.source.value_type)
        longest = int(np.diff(starts).max(initial=0))
        if longest > room:
            need = 2 * longest * (INDEX.itemsize + self.source.value_type.itemsize) + 32
            raise ValueError(
                f"`memory_limit` must be at least {need} bytes, twice the size of the largest "
                f"block, got {self.buffers.limit}."
            )
        windows, first = [], 0
        while first < len(starts) - 1:
            last = int(np.searchsorted(starts, starts[first] + room, side="right")) - 1
            windows.append(range(first, max(last, first + 1)))
            first = windows[-1].stop
        return windows

    def windows(self) -> Iterator[Window]:
        """Yield the windows in order, and read the next one in the background.

        Fits that run together (`SharedReads`) read every window once.
        """
        shared = self.buffers.shared
        if shared is not None and shared.has_current_thread():
            yield from shared.windows(self)
            return
        waiting = iter(self.windows_of_blocks)
        with self.buffers.lock, ThreadPoolExecutor(1, "sipower-read") as reader:
            ahead: Future[LoadedWindow] | None = reader.submit(self.load, next(waiting), -1)
            while ahead is not None:
                loaded = ahead.result()
                blocks = next(waiting, None)
                ahead = None if blocks is None else reader.submit(self.load, blocks, loaded.buffer)
                yield loaded.window

    def window_key(self, blocks: range) -> tuple[RowSource, range]:
        """Return what identifies a window among those of all matrices that share the buffers."""
        return self.source, blocks

    def _useful_threads(self, h: Array) -> int:
        shared = self.buffers.shared
        if shared is None or not shared.has_current_thread():
            return super()._useful_threads(h)
        return RowBlocks._useful_threads(self._copy(threads=shared.threads_per_fit), h)

    def load(self, blocks: range, busy: int) -> LoadedWindow:
        """Return the window with these blocks, and read it unless a buffer still holds it.

        `busy` is the number of the buffer in use, which is not overwritten; −1 means none.
        """
        key = self.window_key(blocks)
        for loaded in self.buffers.loaded:
            if loaded is not None and loaded.key == key:
                return loaded
        buffer = self.buffers.claim(busy)
        begin, end = self.bounds[blocks.start], self.bounds[blocks.stop]
        first, last = int(self.indptr[begin]), int(self.indptr[end])
        indices, values = self.buffers.arrays(buffer, last - first, self.source.value_type)
        self.source.read(first, indices, values)
        rows = slice(begin, end)
        mass = None if blocks.start in self._verified else self.mass[rows]
        data = self._verify(self.indptr, indices, values, rows, mass)
        self._verified.add(blocks.start)
        return self.buffers.register(LoadedWindow(key, buffer, Window(data, blocks)))

    # ---- parts of the data -------------------------------------------------------------------

    def take(self, items: Array) -> Any:
        """Return the rows with the numbers `items` in CSR; consecutive rows are read together."""
        indptr = np.append(0, np.cumsum(self.indptr[items + 1] - self.indptr[items]))
        indices = np.empty(indptr[-1], INDEX)
        values = np.empty(indptr[-1], self.source.value_type)
        starts = np.flatnonzero(np.diff(items, prepend=-2) != 1)
        for begin, end in pairwise(np.append(starts, len(items))):
            run = slice(indptr[begin], indptr[end])
            self.source.read(int(self.indptr[items[begin]]), indices[run], values[run])
        self._verify(indptr, indices, values, slice(0, len(items)), self.mass[items])
        values = values.astype(self.dtype, copy=False)
        if indptr[-1] <= np.iinfo(INDEX).max:  # otherwise SciPy would widen the indices
            indptr = indptr.astype(INDEX)
        return sp.csr_array((values, indices, indptr), shape=(len(items), self.shape[1]))

    def _verify(
        self, indptr: Array, indices: Array, values: Array, rows: slice, mass: Array | None
    ) -> kernels.Csr:
        """Check that indices are in range and row sums equal `mass`, and return the rows as CSR.

        The indices are checked at every read, because kernels rely on them. If `mass` is None, as
        for windows that were read before, the values and their sums are not checked again.
        """
        try:
            data = kernels.Csr(indptr, indices, values, self.shape[1], (rows.start, rows.stop))
            if mass is not None:
                starts = indptr[rows.start : rows.stop + 1]
                check_entries(starts - starts[0], indices, values)
                if not np.allclose(data.row_sums(), mass, rtol=SUM_TOL, atol=0):
                    raise ValueError("the values of a row do not have the recorded sum")
            return data
        except ValueError as problem:
            raise ValueError(
                f"{self.source} is damaged: {problem}; {self.source.remedy}."
            ) from None

    def sample(self, scheme: Scheme, share: float, draw: Draw, *, replace: bool = False) -> Batch:
        """Draw a batch V_S with E[V_S] = V; `scheme` must draw from each item separately."""
        if scheme in ("vectors", "elements"):
            raise ValueError(
                f"`scheme` must be 'stratified' or 'weighted' for data on disk, got {scheme!r}: "
                "change it, or read the data into memory with sipower.io.read."
            )
        weighted = scheme == "weighted"
        csr = sampling.sample_items(self, share, draw, weighted=weighted, replace=replace)
        return Batch(self.with_data(csr))

    @property
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the columns."""
        return self.source.column_mass

    @cached_property
    def sha256(self) -> str:
        """The fingerprint of shape and nonzeros; see `sipower.data.fingerprint`."""
        return self.source.sha256 or super().sha256


def _reopen(sides: Any, dtype: np.dtype[Any], threads: int, limit: int) -> StoredMatrix:
    """Reopen the file of a matrix that is unpickled, possibly in another process."""
    sources = tuple(make(*arguments) for make, arguments in sides)
    return StoredMatrix(sources, dtype, threads, Buffers(limit))
