# SPDX-License-Identifier: BSD-3-Clause
"""Numbers from a file, made sure of before anything relies on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.io.table import Counts, ReadError

__all__ = [
    "Compressed",
    "affordable",
    "dense",
    "from_coordinates",
    "narrow",
    "numbers",
    "plausible",
    "repeated",
]

# A matrix may have this many rows or columns even if nearly all of them are empty.
_MOST_EMPTY = 20_000_000
# Memory that any file may ask for, and how far deflate can compress at most.
_SMALL = 1 << 28
_DEFLATE = 1032


@dataclass(frozen=True, eq=False)
class Compressed:
    """A sparse matrix as files hold it: row after row, or column after column if `by_columns`."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    shape: tuple[int, int]
    by_columns: bool = False

    def counts(self, path: Path) -> Counts:
        """Check every number, then make a CSR array of it."""
        plausible(path, self.shape, len(self.data))
        major, minor = self.shape[::-1] if self.by_columns else self.shape
        self._check_layout(path, major, minor)
        data = numbers(path, self.data)
        bad = _first_bad(data)
        if bad is not None:
            row = int(np.searchsorted(self.indptr, bad, side="right")) - 1
            raise ReadError(_cell(path, self._place(row, self.indices[bad]), data[bad]))
        parts = data, self.indices.astype(np.int32), self.indptr.astype(np.int64)
        matrix = sparse.csr_array(parts, shape=(major, minor))
        matrix.sort_indices()
        if not matrix.has_canonical_format:
            rows = np.repeat(np.arange(major), np.diff(matrix.indptr))
            again = repeated(rows, matrix.indices)[1]
            place = self._place(rows[again], matrix.indices[again])
            raise ReadError(f"{path} holds two counts for {place}: add them up before saving.")
        return _without_zeros(sparse.csr_array(matrix.T) if self.by_columns else matrix)

    def _check_layout(self, path: Path, major: int, minor: int) -> None:
        """Refuse what would make compiled code read outside the arrays."""
        for part in (self.indices, self.indptr):
            if part.dtype.kind not in "iu":
                raise ReadError(f"{path} has indices of type {part.dtype}, expected integers.")
        entries, starts = len(self.data), self.indptr
        if len(starts) != major + 1 or len(self.indices) != entries:
            raise ReadError(
                f"{path} is damaged: a sparse matrix of {self.shape[0]} x {self.shape[1]} cannot "
                f"have {entries} values, {len(self.indices)} indices and {len(starts)} starts."
            )
        if starts[0] != 0 or starts[-1] != entries or (starts[1:] < starts[:-1]).any():
            raise ReadError(f"{path} is damaged: the starts of its rows are out of order.")
        if entries and not 0 <= self.indices.min() <= self.indices.max() < minor:
            raise ReadError(
                f"{path} is damaged: an index lies outside {self.shape[0]} x {self.shape[1]}."
            )

    def _place(self, major: Any, minor: Any) -> str:
        row, column = (minor, major) if self.by_columns else (major, minor)
        return f"row {int(row) + 1}, column {int(column) + 1}"


def dense(path: Path, array: NDArray[Any]) -> NDArray[Any]:
    """Check a two-dimensional array of counts."""
    if array.ndim != 2:
        raise ReadError(f"{path} has {array.ndim} dimensions, expected rows and columns.")
    array = numbers(path, array)
    bad = _first_bad(array)
    if bad is not None:
        row, column = np.unravel_index(bad, array.shape)
        place = f"row {int(row) + 1}, column {int(column) + 1}"
        raise ReadError(_cell(path, place, array[row, column]))
    return array


def numbers(path: Path, array: NDArray[Any]) -> NDArray[Any]:
    """Give real numbers in this machine's byte order; a truth value counts as 0 or 1."""
    if array.dtype.kind not in "biuf":
        raise ReadError(f"{path} has values of type {array.dtype}, expected numbers.")
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in 32 bits if all of them fit."""
    if values.dtype.kind != "i" or (values.size and values.max() > np.iinfo(np.int32).max):
        return values
    return values.astype(np.int32)


def plausible(place: Path | str, shape: tuple[int, int], entries: int) -> None:
    """Refuse sizes that would cost memory for which there is no content."""
    if min(shape) < 0 or max(shape) > max(_MOST_EMPTY, entries) or max(shape) >= 2**31:
        raise ReadError(
            f"{place} promises {shape[0]} x {shape[1]} with {entries} counts, more rows or columns "
            "than sipower holds: the size is damaged, or leave out empty ones."
        )


def affordable(place: Path | str, promised: int, stored: int) -> None:
    """Refuse content that claims to be far larger than its stored bytes can be."""
    if promised > max(_SMALL, _DEFLATE * stored):
        raise ReadError(
            f"{place} promises {promised} bytes and stores {stored}: it is damaged, write it again."
        )


def repeated(rows: NDArray[Any], columns: NDArray[Any]) -> tuple[int, int]:
    """Positions of the first entry that has the place of an earlier one: (earlier, it)."""
    order = np.lexsort((columns, rows))
    same = np.flatnonzero((np.diff(rows[order]) == 0) & (np.diff(columns[order]) == 0))
    at = same[np.argmin(order[same + 1])]
    return int(order[at]), int(order[at + 1])


def from_coordinates(
    values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]
) -> sparse.csr_array[Any, tuple[int, int]] | None:
    """Make a CSR array of checked entries, or nothing if two of them have the same place."""
    matrix = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=shape))
    return _without_zeros(matrix) if matrix.nnz == len(values) else None


def _without_zeros(matrix: Any) -> sparse.csr_array[Any, tuple[int, int]]:
    matrix.sort_indices()
    matrix.eliminate_zeros()
    found: sparse.csr_array[Any, tuple[int, int]] = matrix
    return found


def _first_bad(values: NDArray[Any]) -> int | None:
    """Position, row by row, of the first value that is negative or not finite."""
    if values.size == 0 or (values.min() >= 0 and values.max() < np.inf):
        return None
    return int(np.argmax(~((values >= 0) & (values < np.inf))))


def _cell(path: Path, place: str, value: Any) -> str:
    return f"{path}, {place}, holds {value}: a count is finite and not negative."
