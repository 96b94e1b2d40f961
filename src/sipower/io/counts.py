# SPDX-License-Identifier: BSD-3-Clause
"""Numbers from a file, made sure of before anything relies on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower._files import is_plausible_size as believable
from sipower.io.streams import Blocks, entries_of
from sipower.io.table import Counts, ReadError
from sipower.store.buckets import Csr, Room, in_row_order, ranges, repeated

__all__ = [
    "Compressed",
    "Dense",
    "affordable",
    "dense",
    "narrow",
    "numbers",
    "plausible",
]

# A matrix may have this many rows or columns even if nearly all of them are empty.
_MOST_EMPTY = 20_000_000


@dataclass(frozen=True, eq=False)
class Compressed:
    """A sparse matrix as files hold it: row after row, or column after column if `by_columns`.

    `data` and `indices` are arrays, or still in their file and read in parts.
    """

    path: Path
    data: Any
    indices: Any
    indptr: NDArray[Any]
    shape: tuple[int, int]
    by_columns: bool = False

    def __post_init__(self) -> None:
        """Refuse what would make compiled code read outside the arrays."""
        entries, starts, path = len(self.data), self.indptr, self.path
        plausible(path, self.shape, entries)
        for part in (self.indices, self.indptr):
            if part.dtype.kind not in "iu":
                raise ReadError(f"{path} has indices of type {part.dtype}, expected integers.")
        if len(starts) != self._sizes[0] + 1 or len(self.indices) != entries:
            raise ReadError(
                f"{path} is damaged: a sparse matrix of {self.shape[0]} x {self.shape[1]} cannot "
                f"have {entries} values, {len(self.indices)} indices and {len(starts)} starts."
            )
        if starts[0] != 0 or starts[-1] != entries or (starts[1:] < starts[:-1]).any():
            raise ReadError(f"{path} is damaged: the starts of its rows are out of order.")

    def counts(self) -> Counts:
        """Check every number, then make a CSR array of it."""
        matrix = self.part(0, self._sizes[0])
        return sparse.csr_array(matrix.T) if self.by_columns else matrix

    def blocks(self, room: Room, *, turned: bool) -> Blocks:
        """Read blocks of rows, of the transpose if `turned`: straight where the order fits."""
        cuts = ranges(self.indptr.astype(np.int64), room.most)
        if turned == self.by_columns:
            return (self.part(begin, end) for begin, end in cuts)
        parts = (entries_of(self.part(begin, end), begin) for begin, end in cuts)
        return in_row_order((part.turned() for part in parts), self._sizes[::-1], room)

    def remarks(self) -> tuple[str, ...]:
        """Nothing to say."""
        return ()

    @property
    def _sizes(self) -> tuple[int, int]:
        """How many lists of entries there are, and how long they can be."""
        rows, columns = self.shape
        return (columns, rows) if self.by_columns else (rows, columns)

    def part(self, begin: int, end: int) -> Csr:
        """Check and sort the entries of a range of rows, or of columns if `by_columns`."""
        starts = self.indptr[begin : end + 1].astype(np.int64)
        indices = np.asarray(self.indices[starts[0] : starts[-1]])
        if len(indices) and not 0 <= indices.min() <= indices.max() < self._sizes[1]:
            raise ReadError(
                f"{self.path} is damaged: an index lies outside {self.shape[0]} x {self.shape[1]}."
            )
        data = numbers(self.path, np.asarray(self.data[starts[0] : starts[-1]]))
        starts -= starts[0]
        bad = _first_bad(data)
        if bad is not None:
            at = begin + int(np.searchsorted(starts, bad, side="right")) - 1
            raise ReadError(_cell(self.path, self._place(at, indices[bad]), data[bad]))
        parts = data, indices.astype(np.int32), starts
        matrix = sparse.csr_array(parts, shape=(end - begin, self._sizes[1]))
        matrix.sort_indices()
        if not matrix.has_canonical_format:
            rows = np.repeat(np.arange(begin, end), np.diff(starts))
            again = repeated(rows, matrix.indices)[1]
            place = self._place(rows[again], matrix.indices[again])
            raise ReadError(f"{self.path} holds two counts for {place}: add them up before saving.")
        matrix.eliminate_zeros()
        return matrix

    def _place(self, major: Any, minor: Any) -> str:
        row, column = (minor, major) if self.by_columns else (major, minor)
        return f"row {int(row) + 1}, column {int(column) + 1}"


@dataclass(frozen=True, eq=False)
class Dense:
    """A two-dimensional array that is still in its file and read in parts."""

    path: Path
    array: Any

    def __post_init__(self) -> None:
        """Refuse what is no table."""
        _check_dimensions(self.path, self.array)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.array.shape
        return rows, columns

    def counts(self) -> Counts:
        """Read and check all rows."""
        return dense(self.path, np.asarray(self.array[()]))

    def blocks(self, room: Room, *, turned: bool) -> Blocks:
        """Read blocks of rows, of the transpose if `turned`."""
        rows, columns = self.shape
        cuts = ranges(np.arange(rows + 1) * columns, room.most)
        parts = ((dense(self.path, self.array[begin:end], begin), begin) for begin, end in cuts)
        if not turned:
            return (part for part, _ in parts)
        turned_parts = (entries_of(part, begin).turned() for part, begin in parts)
        return in_row_order(turned_parts, (columns, rows), room)

    def remarks(self) -> tuple[str, ...]:
        """Nothing to say."""
        return ()


def dense(path: Path, array: NDArray[Any], first: int = 0) -> NDArray[Any]:
    """Check a two-dimensional array of counts, whose first row has the given number."""
    _check_dimensions(path, array)
    array = numbers(path, array)
    bad = _first_bad(array)
    if bad is not None:
        row, column = np.unravel_index(bad, array.shape)
        place = f"row {first + int(row) + 1}, column {int(column) + 1}"
        raise ReadError(_cell(path, place, array[row, column]))
    return array


def _check_dimensions(path: Path, array: Any) -> None:
    if len(array.shape) != 2:
        raise ReadError(f"{path} has {len(array.shape)} dimensions, expected rows and columns.")


def numbers(path: Path, array: NDArray[Any]) -> NDArray[Any]:
    """Give real numbers in this machine's byte order; a truth value counts as 0 or 1."""
    if array.dtype.kind not in "biuf":
        raise ReadError(f"{path} has values of type {array.dtype}, expected numbers.")
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore"):  # what is infinite then is refused with its place
            found = array.astype(np.float64)
        if ((found == 0) & (array != 0)).any():
            raise ReadError(f"{path} has values that are too small for float64: rescale them.")
        return found
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
    if not believable(promised, stored):
        raise ReadError(
            f"{place} promises {promised} bytes and stores {stored}: it is damaged, write it again."
        )


def _first_bad(values: NDArray[Any]) -> int | None:
    """Position, row by row, of the first value that is negative or not finite."""
    if values.size == 0 or (values.min() >= 0 and values.max() < np.inf):
        return None
    return int(np.argmax(~((values >= 0) & (values < np.inf))))


def _cell(path: Path, place: str, value: Any) -> str:
    return f"{path}, {place}, holds {value}: a count is finite and not negative."
