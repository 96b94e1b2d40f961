# SPDX-License-Identifier: BSD-3-Clause
"""A `Matrix` whose rows lie on disk: windows of whole blocks, read into two reusable buffers.

While the kernels work on one window the next is read into the other buffer by plain reads, so that
memory stays within `memory_limit` whatever the size of the data. The blocks and their order are
those of the same data in memory: so are the bits of every result.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from os import PathLike
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from sipower import kernels
from sipower.data.memory import ITEM_WORK, Matrix, Window, cut_by_work, name_array
from sipower.data.validate import least_beside, working_type
from sipower.kernels import Array
from sipower.store import byte_size
from sipower.store.buffers import INDEX, Buffers, Held
from sipower.store.layout import SIDES, Layout, read_layout, read_names
from sipower.store.reader import OpenPart, check_terms

__all__ = ["StoredMatrix", "open_store"]

DEFAULT_LIMIT = "512MB"
SUM_TOL = 1e-9  # of the sum of a row, by rounding


class Source(Protocol):
    """Where the terms of a CSR matrix come from."""

    indptr: NDArray[np.int64]
    value_type: np.dtype[Any]

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with the terms from `first` on."""

    def reopen(self, dtype: np.dtype[Any], threads: int, limit: int) -> StoredMatrix:
        """The matrix again, for another process or another working type."""


class StoredMatrix(Matrix):
    """Rows on disk; made by `open_store`.

    Parameters
    ----------
    source
        Where the terms come from.
    dtype, threads
        As for `Matrix`.
    buffers
        Memory for the windows, shared with the transpose.
    masses
        Sums of the rows and of the columns.
    """

    def __init__(
        self,
        source: Source,
        dtype: np.dtype[Any],
        threads: int,
        buffers: Buffers,
        masses: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> None:
        self.source, self.buffers = source, buffers
        self.indptr = source.indptr
        self.mass, self._column_mass = masses
        self.shape, self.total = (len(masses[0]), len(masses[1])), float(self.mass.sum())
        self.dtype, self.threads = dtype, threads
        self.dense, self.nnz = False, int(self.indptr[-1])
        self.transposable = False
        self.row_names = self.column_names = None
        self.sha256: str | None = None
        self._transposed = None
        self.bounds = cut_by_work(np.diff(self.indptr) + ITEM_WORK)
        self.windows_of_blocks = self._cut_into_windows()
        self._seen: set[int] = set()  # windows that were found whole

    def __reduce__(self) -> tuple[Any, ...]:
        how = self.dtype, self.threads, self.buffers.limit
        return _reopened, (self.source.__reduce__(), how)

    def working_in(self, dtype: np.dtype[Any], threads: int) -> StoredMatrix:
        """The same data for another working type or number of threads."""
        return self.source.reopen(dtype, threads, self.buffers.limit)

    @property
    def array(self) -> Any:
        """There is none."""
        raise ValueError(
            "The data lie on disk and this step needs them in memory: read them whole, or choose "
            "another way (init='random', any solver, no held-out counts)."
        )

    @property
    def column_mass(self) -> NDArray[np.float64]:
        """Sums of the columns."""
        return self._column_mass

    # ---- windows -----------------------------------------------------------------------------

    def _cut_into_windows(self) -> list[range]:
        """Runs of blocks that fit into one buffer."""
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
        """Window after window; the next is being read while one is worked on."""
        waiting = iter(self.windows_of_blocks)
        with self.buffers.lock, ThreadPoolExecutor(1, "sipower-read") as reader:
            ahead: Future[Held] | None = reader.submit(self._held, next(waiting), -1)
            while ahead is not None:
                held = ahead.result()
                coming = next(waiting, None)
                ahead = None if coming is None else reader.submit(self._held, coming, held.place)
                yield held.window

    def _held(self, blocks: range, busy: int) -> Held:
        """The window of some blocks, read unless a buffer has it still."""
        key = (id(self.source), blocks)
        for held in self.buffers.held:
            if held is not None and held.key == key:
                return held
        place = self.buffers.free(busy)
        begin, end = self.bounds[blocks.start], self.bounds[blocks.stop]
        first, last = int(self.indptr[begin]), int(self.indptr[end])
        indices, values = self.buffers.arrays(place, last - first, self.source.value_type)
        self.source.read(first, indices, values)
        rows, seen = slice(begin, end), blocks.start in self._seen
        data = self._checked(self.indptr, indices, values, rows, None if seen else self.mass[rows])
        self._seen.add(blocks.start)
        return self.buffers.keep(Held(key, place, Window(data, blocks)))

    # ---- parts -------------------------------------------------------------------------------

    def rows(self, begin: int, end: int) -> Any:
        """Rows as CSR, read on their own."""
        return self.take(np.arange(begin, end))

    def take(self, items: Array) -> Any:
        """Chosen rows as CSR; those that follow one another are read together."""
        indptr = np.append(0, np.cumsum(self.indptr[items + 1] - self.indptr[items]))
        indices = np.empty(indptr[-1], INDEX)
        values = np.empty(indptr[-1], self.source.value_type)
        starts = np.flatnonzero(np.diff(items, prepend=-2) != 1)
        for begin, end in pairwise(np.append(starts, len(items))):
            run = slice(indptr[begin], indptr[end])
            self.source.read(int(self.indptr[items[begin]]), indices[run], values[run])
        self._checked(indptr, indices, values, slice(0, len(items)), self.mass[items])
        values = values.astype(self.dtype, copy=False)
        return sp.csr_array((values, indices, indptr), shape=(len(items), self.shape[1]))

    def _checked(
        self, indptr: Array, indices: Array, values: Array, rows: slice, mass: Array | None
    ) -> kernels.Csr:
        """What was read, once its indices lie within the matrix and rows have their `mass`.

        The one is asked always, for no index may leave its array; the other of what is read for
        the first time.
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


def _reopened(source: Any, how: tuple[np.dtype[Any], int, int]) -> StoredMatrix:
    """A matrix in another process; nothing is opened before this is called."""
    make, arguments = source
    return make(*arguments).reopen(*how)  # type: ignore[no-any-return]


# ---- stores ----------------------------------------------------------------------------------


class StoreSource:
    """One orientation of a store of .npy files."""

    def __init__(self, layout: Layout, side: str) -> None:
        self.layout, self.side = layout, side
        # Open for good: a store that is replaced meanwhile is not mixed with this one.
        self.indices, self.values = (
            OpenPart(layout.part(side, name)) for name in ("indices", "values")
        )
        self.value_type = self.values.part.dtype
        self.indptr = _whole(layout, side, "indptr")
        rising = self.indptr[0] == 0 and bool((np.diff(self.indptr) >= 0).all())
        if not rising or self.indptr[-1] != layout.nonzeros:
            raise ValueError(
                f"The store {layout.path} is damaged: {side}/indptr.npy; convert again."
            )

    def __str__(self) -> str:
        return f"The store {self.layout.path}"

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreSource, (self.layout, self.side)

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with the terms from `first` on."""
        self.indices.read(first, indices)
        self.values.read(first, values)

    def reopen(self, dtype: np.dtype[Any], threads: int, limit: int) -> StoredMatrix:
        """The matrix of this side again."""
        opened = open_store(self.layout.path, dtype=dtype, n_jobs=threads, memory_limit=limit)
        turned: Any = opened if self.side == "rows" else opened.T
        return turned  # type: ignore[no-any-return]


def _whole(layout: Layout, side: str, name: str) -> Array:
    part = layout.part(side, name)
    array = np.empty(part.length, part.dtype)
    OpenPart(part).read(0, array)
    return array


def open_store(
    path: str | PathLike[str],
    *,
    dtype: DTypeLike | None = None,
    n_jobs: int | None = None,
    memory_limit: int | str = DEFAULT_LIMIT,
) -> StoredMatrix:
    """Open a store that `sipower convert` or `write_store` has made.

    Parameters
    ----------
    path
        Folder of the store.
    dtype
        Working type, float32 or float64; None: float32 for float32 data, else float64.
    n_jobs
        Threads; None means all cores, or one inside a joblib or Dask worker.
    memory_limit
        Bytes that the data may take, such as "1GB"; the factors come on top. It changes no bit of
        any result.

    Returns
    -------
    StoredMatrix
        What `KLNMF`, `solve` and everything else that takes a `Matrix` works on. If the store holds
        its rows only, it serves the rules that need sums alone.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sipower import KLNMF
    >>> from sipower.store import write_store
    >>> from sipower.data.on_disk import open_store
    >>> V = csr_array(np.random.default_rng(0).poisson(1.0, (60, 40)))
    >>> store = pathlib.Path(tempfile.mkdtemp(), "counts.sipower")
    >>> write_store(V, store)
    >>> in_memory, on_disk = KLNMF(3, random_state=0), KLNMF(3, random_state=0)
    >>> W = in_memory.fit_transform(V)
    >>> bool((on_disk.fit_transform(open_store(store)) == W).all())
    True
    """
    layout, limit = read_layout(path), byte_size(memory_limit)
    working = working_type(np.dtype(layout.dtype), dtype)
    _check_range(layout, working)
    buffers, threads = Buffers(limit), kernels.count_threads(n_jobs)
    masses = [_whole(layout, side, "mass") for side in SIDES]
    for side, mass in zip(SIDES, masses, strict=True):
        if not (mass.min() >= 0 and abs(mass.sum() - layout.total) <= SUM_TOL * layout.total):
            raise ValueError(f"The store {path} is damaged: {side}/mass.npy; convert again.")
    samples, features = read_names(layout)
    sides = []
    for number, side in enumerate(layout.orientations):
        both = masses[number], masses[1 - number]
        made = StoredMatrix(StoreSource(layout, side), working, threads, buffers, both)
        made.sha256 = layout.sha256 if side == "rows" else None
        names = [name_array(samples), name_array(features)]
        made.row_names, made.column_names = names[:: 1 - 2 * number]
        sides.append(made)
    rows = sides[0]
    if len(sides) == 2:
        rows.transposable = sides[1].transposable = True
        rows._transposed, sides[1]._transposed = sides[1], rows
    return rows


def _check_range(layout: Layout, working: np.dtype[Any]) -> None:
    limits = np.finfo(working)
    if layout.nonzeros and layout.smallest < least_beside(layout.largest, working):
        raise ValueError(
            f"The smallest entry of {layout.path} is {layout.smallest}, too small for {working}."
        )
    if layout.largest > limits.max or layout.total > limits.max:
        raise ValueError(
            f"The sum of the data in {layout.path} is too large for {working}: rescale them."
        )
