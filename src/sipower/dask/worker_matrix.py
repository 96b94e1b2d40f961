# SPDX-License-Identifier: BSD-3-Clause
"""`WorkerMatrix`: data whose rows and columns are on Dask workers, for kernels of single items.

The factors are on the client. A kernel is one task for each group of items: the task gets the
fixed factor and its items of the other one, and returns their new values. An item is computed as in
one process, whichever worker has it, so all solvers have the same bits as there. A round sends W to
every worker and H too; `dask.plan` estimates whether that is faster than rounds that leave W on the
workers.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from distributed import get_worker
from numpy.typing import NDArray

from sipower import kernels
from sipower.dask.collective import broadcast
from sipower.dask.loaded_chunk import LoadedChunk
from sipower.dask.task_names import task_key
from sipower.dask.waiting import gather_results
from sipower.dask.worker_rows import WorkerRows, large_graphs
from sipower.data.memory import Matrix
from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array
from sipower.kernels.doors import ARGUMENTS, Role, term_role
from sipower.nmf.rule import MeasuredKernel

__all__ = ["Group", "WorkerMatrix"]


class Group(NamedTuple):
    """Chunks of items that one worker holds, and the range of items of each chunk."""

    holder: str
    chunks: list[Any]
    ranges: list[tuple[int, int]]


class SentBasis:
    """The fixed factor and the other terms of the objective, from which workers make a basis."""

    def __init__(self, factor: Array, dense: bool, terms: dict[str, Any]) -> None:
        self.factor, self.dense, self.terms = factor, dense, terms

    @cached_property
    def column_sums(self) -> NDArray[np.float64]:
        """The column sums of the factor, as the kernels compute them."""
        return kernels.basis(self.factor, dense=self.dense).column_sums


class WorkerMatrix(RowBlocks):
    """Data on workers in both orientations.

    Parameters
    ----------
    rows
        The rows, as the workers hold them.
    sides
        The groups of rows and the groups of columns.
    """

    has_items = True
    has_columns = True
    combines_kernels = True
    layout = "workers"

    def __init__(self, rows: WorkerRows, sides: tuple[list[Group], list[Group]]) -> None:
        self._rows, self.client, self.sides = rows, rows.client, sides
        self.shape, self.nnz = rows.shape, rows.nnz
        self.dtype, self.threads, self.dense = rows.dtype, rows.threads, rows.dense
        self.mass, self.column_names = rows.mass, rows.column_names
        self.total = float(self.mass.sum())  # as in memory, to the last bit
        self.side_names = "rows", "columns"

    @property
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the columns."""
        return self.T.mass

    @cached_property
    def T(self) -> WorkerMatrix:  # noqa: N802
        """The transpose: the same workers, with the columns as items."""
        return self._copy(
            T=self, shape=self.shape[::-1], sides=self.sides[::-1], mass=self._column_sums(),
            side_names=self.side_names[::-1], row_names=self.column_names,
            column_names=self.row_names,
        )  # fmt: skip

    def _column_sums(self) -> NDArray[np.float64]:
        mass = np.zeros(self.shape[1])
        parts = self._submit("sums", 1, _mass, [() for _ in self.sides[1]])
        for group, found in zip(self.sides[1], parts, strict=True):
            for (begin, end), sums in zip(group.ranges, found, strict=True):
                mass[begin:end] = sums
        return mass

    # ---- kernels -----------------------------------------------------------------------------

    def basis(self, factor: Array, **terms: Any) -> Any:
        """Return the factor and other terms, to be sent to the workers."""
        return SentBasis(factor, self.dense, terms)

    def for_items(self, kernel: Any, basis: Any, h: Array, out: Array, *extra: Any) -> Array:
        """Run a kernel on all items, on the workers that hold them, and return `out`.

        What is cut by items, and what the kernel writes, is declared in `kernels.doors.ARGUMENTS`.
        """
        is_measured = isinstance(kernel, MeasuredKernel)
        name = kernel.kernel.__name__ if is_measured else kernel.__name__
        arguments = list(zip((out, *extra), ARGUMENTS[name].values(), strict=True))
        terms = [(key, x, term_role(key, x)) for key, x in basis.terms.items()]
        written = [x for x, role in arguments if role is Role.WRITTEN]
        if is_measured:
            written.append(kernel.divergences)
        holders = [group.holder for group in self.sides[0]]
        factors, tasks = broadcast(self.client, _compact(basis.factor), holders), []
        for group, factor in zip(self.sides[0], factors, strict=True):
            parts = [
                _Part(
                    _compact(h[begin:end]),
                    {key: _cut(x, role, begin, end) for key, x, role in terms},
                    [_cut(x, role, begin, end) for x, role in arguments],
                    [(x.shape[1:], x.dtype) for x in written],
                )
                for begin, end in group.ranges
            ]
            tasks.append((name, is_measured, factor, basis.factor.dtype, h.dtype, parts))
        results = self._submit(name, 0, _run_kernel, tasks)
        for group, found in zip(self.sides[0], results, strict=True):
            for (begin, end), arrays in zip(group.ranges, found, strict=True):
                for target, values in zip(written, arrays, strict=True):
                    target[begin:end] = values
        return out

    def _submit(self, name: str, side: int, function: Any, tasks: list[Any]) -> list[Any]:
        """Run function(chunks, *task) for every group of a side, on its worker."""
        with large_graphs():
            futures = [
                self.client.submit(
                    function, group.chunks, *task,
                    key=task_key(f"{name}-{self.side_names[side]}", number),
                    workers=[group.holder], allow_other_workers=True, pure=False,
                )
                for number, (group, task) in enumerate(zip(self.sides[side], tasks, strict=True))
            ]  # fmt: skip
        return gather_results(self.client, futures)

    # ---- other forms of the data -------------------------------------------------------------

    def take(self, items: Array) -> Any:
        """Load the rows with the numbers `items` to the client, as an array or in CSR."""
        return self._rows.take(items)

    def with_data(self, data: Any, *, rows_only: bool = False) -> Matrix:
        """Return `data`, an array or CSR, as a matrix in the memory of the client."""
        return self._rows.with_data(data, rows_only=rows_only)

    def with_settings(
        self, dtype: np.dtype[Any] | None = None, threads: int | None = None
    ) -> WorkerMatrix:
        """Return the data for `threads` threads of the client; the dtype cannot change."""
        rows = self._rows.with_settings(dtype, threads)
        return self if rows is self._rows else self._copy(_rows=rows, threads=rows.threads)

    @property
    def sha256(self) -> str:
        """A hash of the fingerprints of all chunks, in their order."""
        return self._rows.sha256


class _ToWrite(NamedTuple):
    """The place of an array that a kernel writes: the worker makes it, and sends it back."""


def _cut(x: Any, role: Role, begin: int, end: int) -> Any:
    """Return the part of an argument that concerns some items: all of it if it is shared."""
    if role is Role.WRITTEN:
        return _ToWrite()
    return x if role is Role.SHARED else x[begin:end]


def _compact(x: Array) -> Array:
    """Return float64 values in float32 if that changes none of them, to send half the bytes."""
    if x.dtype != np.float64:
        return x
    with np.errstate(over="ignore"):
        small = x.astype(np.float32)
    return small if np.array_equal(small, x) else x


# ---- on the workers --------------------------------------------------------------------------


class _Part(NamedTuple):
    """The arguments of a kernel for the items of one chunk."""

    h: Array
    terms: dict[str, Any]
    arguments: list[Any]  # all after the range of items, with `_ToWrite` for what is written
    written: list[tuple[tuple[int, ...], Any]]  # shape of an item and type of each result


def _run_kernel(
    chunks: list[LoadedChunk],
    name: str,
    is_measured: bool,
    factor: Array,
    factor_type: Any,
    h_type: Any,
    parts: list[_Part],
) -> list[list[Array]]:
    """Return what a kernel writes for the items of every chunk."""
    factor, results = kernels.as_contiguous(factor, factor_type), []
    for V, part in zip(_matrices(chunks), parts, strict=True):
        h = kernels.as_contiguous(part.h, h_type)
        written = [np.zeros((len(h), *shape), dtype) for shape, dtype in part.written]
        rest = iter(written)
        arguments = [next(rest) if isinstance(x, _ToWrite) else x for x in part.arguments]
        arguments = [
            kernels.as_contiguous(x) if isinstance(x, np.ndarray) else x for x in arguments
        ]
        kernel = getattr(kernels, name)
        if is_measured:
            kernel = MeasuredKernel(kernel, next(rest))
        V.for_items(kernel, V.basis(factor, **part.terms), h, *arguments)
        results.append(written)
    return results


def _mass(chunks: list[LoadedChunk]) -> list[Array]:
    return [V.mass for V in _matrices(chunks)]


def _matrices(chunks: list[LoadedChunk]) -> list[RowBlocks]:
    """Return the weighted items of every chunk, for all threads of this worker."""
    threads = get_worker().state.nthreads
    prepared = [chunk.prepared(threads) for chunk in chunks]
    return [part.V for part in prepared if part is not None]
