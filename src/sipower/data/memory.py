# SPDX-License-Identifier: BSD-3-Clause
"""`Matrix`: row blocks of non-negative data (made by `as_matrix`, the one validation).

    for_items(kernel, ...)   a kernel over the matrix's own rows (items)
    sums(kernel, ...)        partial results for the other side, added in block order in float64
    columns                  the other side as items: the transpose, or `Columns` without one
    sample(...)              a random sparser matrix V_S with E[V_S] = V

In memory a matrix is one array cut into blocks by work; the blocks depend on the data alone. On
disk (`sipower.data.on_disk`) the same blocks come in windows, one after another: the same bits.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from sipower import kernels
from sipower.kernels import Array, Basis, Draw

Scheme = Literal["vectors", "elements", "stratified", "weighted"]
SCHEMES: tuple[Scheme, ...] = ("vectors", "elements", "stratified", "weighted")

MOST_BLOCKS = 64
SHARING = 16  # dense items of a block, unless there would be too few blocks
LEAST_BLOCK = 32768  # terms: far more work than handing out a block
LARGEST_BLOCK = 2**21  # terms: what is read from disk at once stays small
ITEM_WORK = 8  # what an item costs beside its terms, in terms


class Window(NamedTuple):
    """Data that hold the items of some blocks."""

    data: Any
    blocks: range


class Batch(NamedTuple):
    """A sampled matrix and the rows of the basis it meets (None: all of them)."""

    matrix: Matrix | Columns
    others: NDArray[np.int32] | None = None


class Matrix:
    """Non-negative data, dense or CSR, validated; made by `as_matrix`.

    Parameters
    ----------
    data
        C-contiguous ndarray or canonical CSR array in a type the kernels read.
    dtype
        Working type of the factors, float32 or float64.
    threads
        Threads that work on the blocks.
    """

    def __init__(
        self,
        data: Any,
        dtype: DTypeLike,
        threads: int = 1,
        *,
        transposable: bool = True,
    ) -> None:
        self.array: Any = data
        self.shape: tuple[int, int] = data.shape
        self.dtype = np.dtype(dtype)
        self.threads = threads
        self.transposable = transposable
        self.row_names: Array | None = None
        self.column_names: Array | None = None
        self.sha256: str | None = None  # where the fingerprint is known already
        self._transposed: Matrix | Callable[[], Matrix | None] | None = None
        self._sparse: Matrix | None = None
        if isinstance(data, np.ndarray):
            self.dense, self.nnz = True, data.size
            self.data: Any = kernels.Dense(kernels.readable(data))
            terms = np.full(self.shape[0], self.shape[1])
        else:
            self.dense, self.nnz = False, int(data.nnz)
            self.indptr = kernels.readable(data.indptr, np.int64)
            indices = kernels.readable(data.indices, np.int32)
            self.data = kernels.Csr(
                self.indptr, indices, kernels.readable(data.data), self.shape[1]
            )
            terms = np.diff(self.indptr)
        # Dense items share the panels of the basis that are in cache.
        most = min(max(16, len(terms) // SHARING), MOST_BLOCKS) if self.dense else None
        self.bounds = cut_by_work(terms + ITEM_WORK, most)
        self.mass: NDArray[np.float64] = self.data.row_sums()
        with np.errstate(over="ignore"):  # `as_matrix` refuses it
            self.total = float(self.mass.sum())

    @property
    def layout(self) -> str:
        """What decides the bits of results beside the numbers themselves."""
        return f"{'dense' if self.dense else 'sparse'}{'' if self.transposable else ', rows alone'}"

    def __reduce__(self) -> tuple[Any, ...]:
        names = {"row_names": self.row_names, "column_names": self.column_names}
        return _remade, (self.array, self.dtype, self.threads, self.transposable), names

    def working_in(self, dtype: np.dtype[Any], threads: int) -> Matrix:
        """The same data for another working type or number of threads."""
        kept = self.array.dtype in (dtype, np.uint8, np.uint16)
        array = self.array if kept else read_only(self.array.astype(dtype))
        other = Matrix(array, dtype, threads, transposable=self.transposable)
        other.row_names, other.column_names = self.row_names, self.column_names
        return other

    @property
    def T(self) -> Matrix:  # noqa: N802
        """The same data with the other side as items; made once, when first asked for."""
        known = self._transposed
        other = known if isinstance(known, Matrix) or known is None else known()
        if other is None:
            if not self.transposable:
                raise ValueError("This matrix holds its rows only: use .columns instead of .T.")
            turned = self.array.T
            turned = np.ascontiguousarray(turned) if self.dense else sp.csr_array(turned)
            other = Matrix(read_only(turned), self.dtype, self.threads)
            other.row_names, other.column_names = self.column_names, self.row_names
            other._transposed = weakref.ref(self)
            self._transposed = other
        return other

    @property
    def columns(self) -> Matrix | Columns:
        """The other side as items: the transpose, or a view that works by sums alone."""
        return self.T if self.transposable else Columns(self)

    def sparse(self) -> Matrix:
        """The same data as CSR: its nonzeros as single terms."""
        if not self.dense:
            return self
        if self._sparse is None:
            csr = sp.csr_array(self.array, dtype=self.dtype)
            self._sparse = Matrix(read_only(csr), self.dtype, self.threads)
        return self._sparse

    # ---- the two primitives ------------------------------------------------------------------

    def for_items(
        self, kernel: kernels.Kernel, basis: Basis, h: Array, out: Array, *extra: Any
    ) -> Array:
        """Run kernel(data, basis, h, begin, end, out, *extra) over all blocks of items."""
        for data, blocks in self.windows():

            def task(number: int, data: Any = data, blocks: range = blocks) -> None:
                kernel(data, basis, h, *self._items(blocks[number]), out, *extra)

            kernels.run_blocks(len(blocks), task, self._useful_threads(h))
        return out

    def sums(self, kernel: kernels.Kernel, basis: Basis, h: Array) -> NDArray[np.float64]:
        """Add up what the kernel leaves for the other side, (others, K), block after block."""
        total = np.zeros((self.shape[1], h.shape[1]))
        for data, blocks in self.windows():

            def partial(number: int, part: Array, data: Any = data, blocks: range = blocks) -> None:
                kernel(data, basis, h, *self._items(blocks[number]), part)

            kernels.sum_blocks(len(blocks), partial, total, self._useful_threads(h))
        return total

    def windows(self) -> Iterator[Window]:
        """All blocks, as the data that hold them come: in memory, at once."""
        yield Window(self.data, range(len(self.bounds) - 1))

    def _items(self, block: int) -> tuple[int, int]:
        return self.bounds[block], self.bounds[block + 1]

    def _useful_threads(self, h: Array) -> int:
        work = self.nnz * h.shape[1] * kernels.threads.SECONDS_PER_TERM
        return self.threads if work > kernels.threads.WORTH_A_THREAD else 1

    # ---- sampling ----------------------------------------------------------------------------

    def sample(self, scheme: Scheme, share: float, draw: Draw, *, replace: bool = False) -> Batch:
        """Draw V_S with E[V_S] = V: a share of the terms, each times its unbiased factor.

        ==========  =====================================================  ===================
        scheme      draws                                                  factor
        ==========  =====================================================  ===================
        vectors     s of the n others, the same for all items              n / s
        elements    s of all nonzeros                                      nnz / s
        stratified  s_j of the n_j nonzeros of every item                  n_j / s_j
        weighted    s_j of every item, with probability p_i = V_ij / c_j   1 / (s_j p_i)
        ==========  =====================================================  ===================

        Weighted draws without replacement are systematic: the factor is one over the inclusion
        probability min(1, τ V_ij), whose sum over the item is s_j.
        """
        if scheme == "vectors":
            n = self.shape[1]
            s = kernels.batch_size(share, n)
            others = draw.batch(n, s, replace=replace)
            part = _scaled(self.array[:, others], n / s, self.dtype)
            return Batch(Matrix(part, self.dtype, self.threads), others)
        whole = self.sparse()
        if scheme == "elements":
            at = whole.draw_elements(share, draw, replace)
            values = whole.array.data[at] * (whole.nnz / max(len(at), 1))
            indptr = np.searchsorted(at, whole.indptr)
            parts = values.astype(self.dtype), whole.array.indices[at], indptr
        else:
            weighted = scheme == "weighted"
            drawn = [
                draw.items(data, self.dtype, share, weighted=weighted, replace=replace)
                for data, _ in whole.windows()
            ]
            values, indices, counts = (np.concatenate(part) for part in zip(*drawn, strict=True))
            parts = values, indices, np.append(0, np.cumsum(counts))
        return Batch(Matrix(sp.csr_array(parts, shape=self.shape), self.dtype, self.threads))

    # ---- parts -------------------------------------------------------------------------------

    def rows(self, begin: int, end: int) -> Any:
        """Rows as an array or as CSR."""
        return self.array[begin:end]

    def take(self, items: Array) -> Any:
        """Chosen rows as an array or as CSR."""
        return self.array[items]

    @property
    def column_mass(self) -> NDArray[np.float64]:
        """Sums of the columns, found without a transpose."""
        return np.asarray(self.array.sum(axis=0, dtype=np.float64))

    @cached_property
    def unevenness(self) -> float:
        """n Σ_i v_i² / (Σ_i v_i)² of an item's n terms, averaged over the items by their mass.

        1 where all terms are alike, n where one term has all of the mass: so many times as large a
        batch of random terms has the same variance. Of sparse data the nonzeros are taken as alike.
        """
        items, n = self.shape
        if not self.dense:
            return items * n / max(self.nnz, 1)
        squares = 0.0  # Σ_j c_j Σ_i (v_ij/c_j)²
        for begin, end in pairwise(self.bounds):
            mass = self.mass[begin:end]
            shares = self.array[begin:end] / np.where(mass > 0, mass, 1.0)[:, None]
            squares += float(mass @ np.einsum("ij,ij->i", shares, shares))
        return max(n * squares / self.total, 1.0) if self.total > 0 else 1.0

    def row(self, item: int) -> NDArray[np.float64]:
        """One row, dense, in float64."""
        part: Any = self.rows(item, item + 1)
        return np.asarray((part if self.dense else part.toarray())[0], np.float64)

    def draw_elements(self, share: float, draw: Draw, replace: bool) -> NDArray[np.int64]:
        """Return s sorted positions of all nonzeros."""
        if self.nnz == 0:
            return np.zeros(0, np.int64)
        if self.nnz >= 2**31:
            raise ValueError("More than 2^31 nonzeros cannot be drawn at once: use 'stratified'.")
        s = kernels.batch_size(share, self.nnz)
        return np.sort(draw.batch(self.nnz, s, replace=replace)).astype(np.int64)


class Columns:
    """The columns of a matrix that holds only its rows, as items reached by sums."""

    def __init__(self, rows: Matrix) -> None:
        self.rows = rows
        self.shape = rows.shape[::-1]
        self.dtype, self.dense, self.nnz, self.total = rows.dtype, rows.dense, rows.nnz, rows.total
        self.mass = rows.column_mass
        self.unevenness = self.shape[0] * self.shape[1] / max(self.nnz, 1)

    def sample(self, scheme: Scheme, share: float, draw: Draw, *, replace: bool = False) -> Batch:
        """Draw whole rows; see `Matrix.sample`."""
        if scheme != "vectors":
            raise ValueError(
                f"A matrix that holds only its rows is sampled by vectors, not by {scheme}."
            )
        n = self.rows.shape[0]
        s = kernels.batch_size(share, n)
        drawn = draw.batch(n, s, replace=replace)
        part = _scaled(self.rows.take(drawn), n / s, self.dtype)
        return Batch(Columns(Matrix(part, self.dtype, self.rows.threads)), drawn)


def name_array(names: Sequence[str] | None) -> Array | None:
    """Names as `row_names` and `column_names` hold them, each as long as it is."""
    return None if names is None else np.array(names, object)


def _remade(array: Any, dtype: Any, threads: int, transposable: bool) -> Matrix:
    return Matrix(read_only(array), dtype, threads, transposable=transposable)


def _scaled(part: Any, factor: float, dtype: np.dtype[Any]) -> Any:
    product = part * factor
    return product.astype(dtype) if sp.issparse(part) else np.ascontiguousarray(product, dtype)


def cut_by_work(work: Array, most: int | None = None) -> list[int]:
    """Bounds of at most so many blocks of about equal work."""
    upto = np.append(0, np.cumsum(work))
    most = max(MOST_BLOCKS, upto[-1] // LARGEST_BLOCK) if most is None else most
    blocks = int(min(max(upto[-1] // LEAST_BLOCK, 1), most, len(work)))
    cuts = np.searchsorted(upto, upto[-1] * np.arange(1, blocks) / blocks)
    return [int(b) for b in np.unique(np.concatenate([[0], cuts, [len(work)]]))]


def read_only(data: Any) -> Any:
    """Guard an array, or the three arrays of a CSR one, against later writing."""
    for part in (data,) if isinstance(data, np.ndarray) else (data.data, data.indices, data.indptr):
        part.flags.writeable = False
    return data
