# SPDX-License-Identifier: BSD-3-Clause
"""`WeightedSource`: the rows of a file, multiplied by weights whenever they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower import kernels
from sipower.data.row_blocks import RowBlocks
from sipower.data.row_source import RowSource
from sipower.data.value_range import WeightedRange
from sipower.data.weights import Weights, drop_zeros
from sipower.kernels import Array, as_contiguous
from sipower.store.external_sort import ranges

ENTRIES_AT_ONCE = 2**17  # entries that are multiplied at a time; limits the temporary memory


class WeightedTotals(NamedTuple):
    """What one pass over the weighted rows yields; the names are those of `RowSource`."""

    indptr: NDArray[np.int64]
    mass: NDArray[np.float64]
    column_mass: NDArray[np.float64]
    smallest: float
    largest: float


class WeightedSource:
    """The rows of another source times their weights, as a `RowSource`.

    Entries that become 0 are left out, as in memory.

    Parameters
    ----------
    source
        Source of the rows without weights.
    weights
        Weights of the rows, columns and entries of this source.
    value_type
        Working type, float32 or float64.
    totals
        Result of `measure_weighted` for these weights.
    """

    sha256: str | None = None  # computed from the weighted entries when needed

    def __init__(
        self, source: RowSource, weights: Weights, value_type: np.dtype[Any], totals: WeightedTotals
    ) -> None:
        self.source, self.weights = source, weights
        self.value_type, self.totals = value_type, totals
        self.indptr, self.mass, self.column_mass, self.smallest, self.largest = totals
        self.width = source.width
        self.row_names, self.column_names = source.row_names, source.column_names
        self.feature_ids, self.origin = source.feature_ids, source.origin
        self.remedy = source.remedy

    @property
    def path(self) -> Path:
        """The path of the file, for messages."""
        return self.source.path

    def __str__(self) -> str:
        return str(self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        return WeightedSource, (self.source, self.weights, self.value_type, self.totals)

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with consecutive nonzeros, beginning with number `first`."""
        stop = first + len(indices)
        if stop == first:
            return
        begin = int(np.searchsorted(self.indptr, first, side="right")) - 1
        end = int(np.searchsorted(self.indptr, stop))
        for above, below in ranges(self.source.indptr[begin : end + 1], ENTRIES_AT_ONCE):
            rows = begin + above, begin + below
            start = int(self.indptr[rows[0]])
            wanted = slice(max(first, start), min(stop, int(self.indptr[rows[1]])))
            here = slice(wanted.start - first, wanted.stop - first)
            there = slice(wanted.start - start, wanted.stop - start)
            columns, products = self._read_rows(*rows)
            indices[here], values[here] = columns[there], products[there]

    def _read_rows(self, begin: int, end: int) -> tuple[Array, Array]:
        """Return columns and values of the weighted nonzeros of the rows `begin` to `end` − 1."""
        starts = self.source.indptr[begin : end + 1]
        length = int(starts[-1] - starts[0])
        columns, values = np.empty(length, np.int32), np.empty(length, self.source.value_type)
        self.source.read(int(starts[0]), columns, values)
        indptr = starts - starts[0]
        products = self.weights.for_nonzeros(begin, indptr, columns)
        products *= values.astype(self.value_type)  # rounded first, as in memory
        _, columns, products = drop_zeros(indptr, columns, products)
        if len(columns) != self.indptr[end] - self.indptr[begin]:
            raise ValueError(f"{self} has changed since its weights were applied: open it again.")
        return columns, products


def measure_weighted(V: RowBlocks, weights: Weights) -> WeightedTotals:
    """Return counts, sums and range of the weighted rows, in one pass over the rows of V."""
    (n, m), extremes = V.shape, WeightedRange()
    indptr, mass, column_mass = np.zeros(n + 1, np.int64), np.zeros(n), np.zeros(m)
    with np.errstate(over="ignore"):  # an overflow is an error at the end
        for begin, end in ranges(V.indptr, ENTRIES_AT_ONCE):
            part = V.rows(begin, end)
            products = weights.for_nonzeros(begin, part.indptr, part.indices)
            products *= part.data
            extremes.add(products)
            starts, columns, products = drop_zeros(part.indptr, part.indices, products)
            starts, values = as_contiguous(starts, np.int64), products.astype(V.dtype)
            rows = kernels.Csr(starts, as_contiguous(columns, np.int32), values, m)
            mass[begin:end] = rows.row_sums()
            np.add.at(column_mass, columns, values)  # in the order of the rows, as in memory
            indptr[begin + 1 : end + 1] = indptr[begin] + starts[1:]
    extremes.check(V.dtype)
    return WeightedTotals(indptr, mass, column_mass, extremes.smallest, extremes.largest)
