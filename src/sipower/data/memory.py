# SPDX-License-Identifier: BSD-3-Clause
"""`Matrix`: non-negative data in memory, one array divided into blocks of equal work."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from sipower import kernels
from sipower.data import sampling
from sipower.data.block_bounds import MAX_BLOCKS, cut_by_work
from sipower.data.row_blocks import (
    ITEM_WORK,
    ROWS_ONLY,
    Batch,
    RowBlocks,
    Window,
)
from sipower.data.sampling import Scheme
from sipower.data.weights import Weights, scale_csr, scale_dense
from sipower.kernels import Array, Draw

ITEMS_PER_DENSE_BLOCK = 16  # minimum, unless there would be fewer than MIN_DENSE_BLOCKS blocks
MIN_DENSE_BLOCKS = 16


class Matrix(RowBlocks):
    """A validated matrix of non-negative data, dense or CSR, as `as_matrix` returns it.

    Parameters
    ----------
    data
        C-contiguous ndarray or canonical CSR array, with a dtype that the kernels read.
    dtype
        Working type of the factors, float32 or float64.
    threads
        Number of threads that work on the blocks.
    rows_only
        Whether to leave out the transpose; columns are then available only as sums.
    """

    is_in_memory = True
    combines_kernels = True

    def __init__(
        self, data: Any, dtype: DTypeLike, threads: int = 1, *, rows_only: bool = False
    ) -> None:
        self._array: Any = data
        self.shape: tuple[int, int] = data.shape
        self.dtype = np.dtype(dtype)
        self.threads = threads
        self.has_columns = not rows_only
        self._transpose: Matrix | Callable[[], Matrix | None] | None = None
        if isinstance(data, np.ndarray):
            self.dense, self.nnz = True, data.size
            self.data: Any = kernels.Dense(kernels.as_contiguous(data))
            entries = np.full(self.shape[0], self.shape[1])
            # A block holds several items, because they share data in the processor's cache.
            blocks_for_size = max(MIN_DENSE_BLOCKS, self.shape[0] // ITEMS_PER_DENSE_BLOCK)
            max_blocks: int | None = min(blocks_for_size, MAX_BLOCKS)
        else:
            self.dense, self.nnz = False, int(data.nnz)
            self.indptr = kernels.as_contiguous(data.indptr, np.int64)
            indices = kernels.as_contiguous(data.indices, np.int32)
            values = kernels.as_contiguous(data.data)
            self.data = kernels.Csr(self.indptr, indices, values, self.shape[1])
            entries = np.diff(self.indptr)
            max_blocks = None
        self.bounds = cut_by_work(entries + ITEM_WORK, max_blocks)
        self.mass: NDArray[np.float64] = self.data.row_sums()
        with np.errstate(over="ignore"):  # `as_matrix` rejects an overflow
            self.total = float(self.mass.sum())

    @property
    def array(self) -> Any:
        """All entries, as an array or in CSR; do not write to them."""
        return self._array

    def __reduce__(self) -> tuple[Any, ...]:
        settings = self.dtype, self.threads, not self.has_columns
        return _restore, (self.array, *settings, self.row_names, self.column_names)

    def windows(self) -> Iterator[Window]:
        """Yield a single window with all blocks."""
        yield Window(self.data, range(len(self.bounds) - 1))

    # ---- other forms of the data -------------------------------------------------------------

    def with_settings(
        self, dtype: np.dtype[Any] | None = None, threads: int | None = None
    ) -> Matrix:
        """Return the data for the working type `dtype` and `threads` threads.

        None keeps the present setting. If nothing changes, self is returned.
        """
        dtype = self.dtype if dtype is None else dtype
        threads = self.threads if threads is None else threads
        if dtype == self.dtype:
            return self if threads == self.threads else self._copy(threads=threads)
        fits_kernels = self.array.dtype in (dtype, np.uint8, np.uint16)
        array = self.array if fits_kernels else read_only(self.array.astype(dtype))
        other = Matrix(array, dtype, threads, rows_only=not self.has_columns)
        return other.with_names(self.row_names, self.column_names)

    def _copy(self, **changes: Any) -> Self:
        # Drop the cached transpose and sparse form: they carry the old settings and names.
        copied = super()._copy(_transpose=None, **changes)
        vars(copied).pop("_sparse", None)
        return copied

    def with_data(self, data: Any, *, rows_only: bool = False) -> Matrix:
        """Return `data`, an array or CSR matrix, as a `Matrix` with the settings of this one."""
        return Matrix(data, self.dtype, self.threads, rows_only=rows_only)

    @property
    def T(self) -> Matrix:  # noqa: N802
        """The transpose, whose items are the columns; computed once, when first needed."""
        cached = self._transpose
        other = cached if isinstance(cached, Matrix) or cached is None else cached()
        if other is None:
            if not self.has_columns:
                raise ValueError(ROWS_ONLY)
            transposed = self.array.T
            transposed = (
                np.ascontiguousarray(transposed) if self.dense else sp.csr_array(transposed)
            )
            plain = Matrix(read_only(transposed), self.dtype, self.threads)
            other = self._transpose = plain.with_names(self.column_names, self.row_names)
            other._transpose = weakref.ref(self)
        return other

    def sparse(self) -> Matrix:
        """Return the same data in CSR, which stores only the nonzeros."""
        return self._sparse if self.dense else self

    @cached_property
    def _sparse(self) -> Matrix:
        csr = sp.csr_array(self.array, dtype=self.dtype)
        return Matrix(read_only(csr), self.dtype, self.threads)

    def weighted(self, weights: Weights) -> Matrix:
        """Return the data times `weights`, in the same layout."""
        scale = scale_dense if self.dense else scale_csr
        array = scale(self.array, weights, self.dtype, self.bounds)
        weighted = self.with_data(read_only(array), rows_only=not self.has_columns)
        return weighted.with_names(self.row_names, self.column_names)

    # ---- parts of the data -------------------------------------------------------------------

    def sample(self, scheme: Scheme, share: float, draw: Draw, *, replace: bool = False) -> Batch:
        """Draw a batch V_S with E[V_S] = V; see `sipower.data.sampling` for the schemes."""
        if scheme == "vectors":
            n = self.shape[1]
            s = kernels.batch_size(share, n)
            drawn = draw.batch(n, s, replace=replace)
            part = sampling.scale_sample(self.array[:, drawn], n / s, self.dtype)
            return Batch(self.with_data(part), drawn)
        whole = self.sparse()
        if scheme == "elements":
            positions = sampling.draw_positions(whole.nnz, share, draw, replace)
            csr = sampling.sample_elements(whole.array, positions, self.dtype)
        else:
            weighted = scheme == "weighted"
            csr = sampling.sample_items(whole, share, draw, weighted=weighted, replace=replace)
        return Batch(self.with_data(csr))

    def rows(self, begin: int, end: int) -> Any:
        """Return the rows `begin` to `end` − 1 as an array or in CSR."""
        return self.array[begin:end]

    def take(self, items: Array) -> Any:
        """Return the rows with the numbers `items` as an array or in CSR."""
        return self.array[items]

    # ---- statistics of the data --------------------------------------------------------------

    @cached_property
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the columns, computed without a transpose."""
        if self.dense:
            return np.asarray(self.array.sum(axis=0, dtype=np.float64))
        return np.asarray(np.ones(self.shape[0]) @ self.array)  # CSR's `sum` adds in float32

    @cached_property
    def unevenness(self) -> float:
        """The mass-weighted mean over the items of n Σ_i v_i² / (Σ_i v_i)², for n entries v_i.

        It is 1 if all entries are equal and n if one entry has all the mass. A random batch must be
        larger by this factor to have the same variance as for equal entries. The nonzeros of
        sparse data are treated as equal.
        """
        n = self.shape[1]
        if not self.dense:
            return super().unevenness
        squares = 0.0  # Σ_j c_j Σ_i (v_ij/c_j)²
        for begin, end in pairwise(self.bounds):
            mass = self.mass[begin:end]
            shares = self.array[begin:end] / np.where(mass > 0, mass, 1.0)[:, None]
            squares += float(mass @ np.einsum("ij,ij->i", shares, shares))
        return max(n * squares / self.total, 1.0) if self.total > 0 else 1.0


def _restore(
    array: Any,
    dtype: Any,
    threads: int,
    rows_only: bool,
    row_names: Array | None,
    column_names: Array | None,
) -> Matrix:
    matrix = Matrix(read_only(array), dtype, threads, rows_only=rows_only)
    return matrix.with_names(row_names, column_names)


def read_only(data: Any) -> Any:
    """Make an array, or the three arrays of a CSR array, read-only and return it."""
    for part in (data,) if isinstance(data, np.ndarray) else (data.data, data.indices, data.indptr):
        part.flags.writeable = False
    return data
