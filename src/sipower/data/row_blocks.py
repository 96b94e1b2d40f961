# SPDX-License-Identifier: BSD-3-Clause
"""`RowBlocks`: the common interface of all data; it runs kernels on fixed blocks of rows.

`ColumnSums` takes the place of the columns of data that are stored by row only: it gives sums over
the rows, but no single column. Problems and solvers use data only through `RowBlocks`, wherever the
rows are stored. Each implementation declares its capabilities:

=================================  =========  ===========  ============
implementation                     has_items  has_columns  is_in_memory
=================================  =========  ===========  ============
`data.memory.Matrix`               yes        optional     yes
`data.on_disk.StoredMatrix`        yes        optional     no
`dask.worker_matrix.WorkerMatrix`  yes        yes          no
`dask.worker_rows.WorkerRows`      no         no           no
`ColumnSums`                       no         no           no
=================================  =========  ===========  ============
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sipower import kernels
from sipower.data.fingerprint import hash_rows
from sipower.data.sampling import Scheme, scale_sample
from sipower.data.weights import Weights
from sipower.kernels import Array, Basis, Draw, batch_size

R = TypeVar("R")

ROWS_ONLY = "The data are available by row only: use `columns` instead of `T`."
ITEM_WORK = 8  # cost of an item apart from its entries, measured in entries


class Window(NamedTuple):
    """A range of blocks, and the data in memory that hold their items."""

    data: Any
    blocks: range


class Batch(NamedTuple):
    """A sampled matrix, and the rows of the fixed factor for its columns; None means all."""

    matrix: RowBlocks
    basis_rows: NDArray[np.int32] | None = None


class RowBlocks(ABC):
    """Non-negative data (items, n) in fixed blocks of rows, in memory or elsewhere.

    Attributes
    ----------
    shape, nnz, total
        Size, number of stored entries and sum of all entries.
    dtype, threads
        Working type of the factors, and number of threads that work on the blocks.
    dense
        Whether all entries are stored.
    mass
        Sums of the rows, float64.
    row_names, column_names
        Arrays of names, or None.
    bounds
        Block b holds the rows bounds[b] to bounds[b + 1] − 1. The bounds depend only on the data.
    indptr
        Where the nonzeros of each row begin; only sparse data with `has_items` have it.
    has_items, refusal
        Whether kernels can work on single rows (`for_items`); `refusal` is the error if not.
    has_columns
        Whether kernels can work on single columns too (`columns.for_items`).
    is_in_memory
        Whether `array` holds all entries.
    combines_kernels
        Whether `for_items` also runs an update followed by its divergences (`MeasuredKernel`).
    """

    shape: tuple[int, int]
    nnz: int
    total: float
    dtype: np.dtype[Any]
    threads: int
    dense: bool
    mass: NDArray[np.float64]
    bounds: list[int]
    indptr: NDArray[np.int64]
    row_names: Array | None = None
    column_names: Array | None = None
    has_items: bool = True
    refusal: str
    has_columns: bool = True
    is_in_memory: bool = False
    combines_kernels: bool = False

    # ---- the two primitives ------------------------------------------------------------------

    def for_items(
        self, kernel: kernels.Kernel, basis: Basis, h: Array, out: Array, *extra: Any
    ) -> Array:
        """Run kernel(data, basis, h, begin, end, out, *extra) on all blocks and return `out`."""
        for data, blocks in self.windows():

            def task(number: int, data: Any = data, blocks: range = blocks) -> None:
                kernel(data, basis, h, *self._items(blocks[number]), out, *extra)

            kernels.run_blocks(len(blocks), task, self._useful_threads(h))
        return out

    def basis(self, factor: Array, **terms: Any) -> Basis:
        """Return the basis of the kernels on these data; see `kernels.basis`."""
        return kernels.basis(factor, dense=self.dense, **terms)

    def sums(self, kernel: kernels.Kernel, basis: Basis, h: Array) -> NDArray[np.float64]:
        """Return the sum of the (n, K) arrays that `kernel` computes for the blocks."""
        total = np.zeros((self.shape[1], h.shape[1]))
        for data, blocks in self.windows():

            def partial(number: int, part: Array, data: Any = data, blocks: range = blocks) -> None:
                kernel(data, basis, h, *self._items(blocks[number]), part)

            kernels.sum_blocks(len(blocks), partial, total, self._useful_threads(h))
        return total

    def windows(self) -> Iterator[Window]:
        """Yield all blocks with their data, as many at a time as fit into memory."""
        raise ValueError(self.refusal)

    def reduce(self, function: Callable[..., R], *arguments: Any) -> R:
        """Return function(rows, *arguments), summed over the workers if rows are distributed."""
        return function(self, *arguments)

    def _items(self, block: int) -> tuple[int, int]:
        return self.bounds[block], self.bounds[block + 1]

    def _useful_threads(self, h: Array) -> int:
        work = self.nnz * h.shape[1] * kernels.threads.SECONDS_PER_ENTRY
        return self.threads if work > kernels.threads.MIN_PARALLEL_SECONDS else 1

    # ---- other forms of the data -------------------------------------------------------------

    @property
    def T(self) -> RowBlocks:  # noqa: N802
        """The transpose, for data with `has_columns`."""
        raise ValueError(ROWS_ONLY)

    @property
    def columns(self) -> RowBlocks:
        """The columns as items: the transpose, or `ColumnSums` if there is none."""
        return self.T if self.has_columns else ColumnSums(self)

    @abstractmethod
    def with_settings(
        self, dtype: np.dtype[Any] | None = None, threads: int | None = None
    ) -> RowBlocks:
        """Return the data for other settings, or self if none changes; None keeps a setting."""

    @abstractmethod
    def with_data(self, data: Any, *, rows_only: bool = False) -> RowBlocks:
        """Return `data`, an array or CSR, as a matrix in memory with the settings of this one."""

    def sparse(self) -> RowBlocks:
        """Return the same data in CSR."""
        return self

    def with_names(self, rows: Array | None, columns: Array | None) -> Self:
        """Return the same data with these names of the rows and columns."""
        return self._copy(row_names=rows, column_names=columns)

    def _copy(self, **changes: Any) -> Self:
        """Return a copy that shares all data with this object, with some attributes changed."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), **changes)
        return other

    def weighted(self, weights: Weights) -> RowBlocks:
        """Return the data times `weights`; call `sipower.data.weighting.apply_weights` instead."""
        raise ValueError(f"`weights` need data in memory or on disk, got {type(self).__name__}.")

    def take(self, items: Array) -> Any:
        """Return the rows with the numbers `items` as an array or in CSR."""
        raise ValueError(self.refusal)

    def rows(self, begin: int, end: int) -> Any:
        """Return the rows `begin` to `end` − 1 as an array or in CSR."""
        return self.take(np.arange(begin, end))

    def row(self, item: int) -> NDArray[np.float64]:
        """Return the row with the number `item` as a dense float64 array."""
        part: Any = self.rows(item, item + 1)
        return np.asarray((part if self.dense else part.toarray())[0], np.float64)

    def sample(self, scheme: Scheme, share: float, draw: Draw, *, replace: bool = False) -> Batch:
        """Draw a batch V_S with E[V_S] = V; see `sipower.data.sampling` for the schemes."""
        raise ValueError(self.refusal)

    @property
    def array(self) -> Any:
        """All entries as an array or in CSR, if they are in memory."""
        raise ValueError(
            "The data are not in memory, but this step needs all of them: read the whole file with "
            "sipower.io.read, or use init='random' and no held-out counts."
        )

    # ---- statistics of the data --------------------------------------------------------------

    @property
    @abstractmethod
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the columns, computed without a transpose."""

    @property
    def unevenness(self) -> float:
        """How many times larger a batch must be because entries differ; see `Matrix.unevenness`."""
        return self.shape[0] * self.shape[1] / max(self.nnz, 1)

    @property
    def layout(self) -> str:
        """The storage format, on which the last bits of results depend."""
        form = "dense" if self.dense else "sparse"
        return form if self.has_columns else f"{form}, rows alone"

    @cached_property
    def sha256(self) -> str:
        """The fingerprint of shape and nonzeros; see `sipower.data.fingerprint`."""
        return hash_rows(self.rows, self.shape)


class ColumnSums(RowBlocks):
    """The columns of row-only data as items: kernels can sum over rows, but not read columns.

    Parameters
    ----------
    rows
        The data, with `has_columns` False.
    """

    has_items = False
    has_columns = False
    refusal = (
        "The data are available by row only, but this step needs their columns: use a solver that "
        "needs only sums over the rows, such as 'sci-pi' or 'auto'."
    )

    def __init__(self, rows: RowBlocks) -> None:
        self._rows = rows
        self.shape = rows.shape[::-1]
        self.dtype, self.threads, self.dense = rows.dtype, rows.threads, rows.dense
        self.nnz, self.total = rows.nnz, rows.total
        self.mass = rows.column_mass
        self.row_names, self.column_names = rows.column_names, rows.row_names

    @property
    def columns(self) -> RowBlocks:
        """The row-only data themselves."""
        return self._rows

    @property
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the rows."""
        return self._rows.mass

    def with_settings(self, *settings: Any, **named: Any) -> RowBlocks:
        """Return the same columns for other settings; see `RowBlocks.with_settings`."""
        rows = self._rows.with_settings(*settings, **named)
        return self if rows is self._rows else ColumnSums(rows)

    def with_data(self, data: Any, *, rows_only: bool = False) -> RowBlocks:
        """Return `data`, an array or CSR, as a matrix in memory with the settings of this one."""
        return self._rows.with_data(data, rows_only=rows_only)

    def sample(self, scheme: Scheme, share: float, draw: Draw, *, replace: bool = False) -> Batch:
        """Draw a batch of whole rows of the row-only data; `scheme` must be "vectors"."""
        if scheme != "vectors":
            raise ValueError(
                f"`scheme` must be 'vectors' for data available by row only, got {scheme!r}."
            )
        n = self._rows.shape[0]
        s = batch_size(share, n)
        drawn = draw.batch(n, s, replace=replace)
        part = scale_sample(self._rows.take(drawn), n / s, self.dtype)
        return Batch(ColumnSums(self._rows.with_data(part)), drawn)
