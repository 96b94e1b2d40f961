# SPDX-License-Identifier: BSD-3-Clause
"""`OpenCounts`: an open file of counts, to be read whole or in blocks; every reader returns one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower._files import printable
from sipower.data.plausibility import ValueOrigin, count_remark, total_remarks
from sipower.data.validate import EntryError
from sipower.io.base import Counts, Names, ReadError, Table, unique_names
from sipower.store.external_sort import (
    Csr,
    DuplicateError,
    Entries,
    csr_from_entries,
    ranges,
    sort_by_rows,
)
from sipower.store.workspace import Workspace

# A matrix may have this many rows or columns even if nearly all of them are empty.
_MAX_EMPTY = 20_000_000
Blocks = Generator[Counts, None, None]


class Source(Protocol):
    """The counts as the file stores them."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    def counts(self) -> Counts:
        """Read all counts."""

    def blocks(self, workspace: Workspace, *, transpose: bool) -> Blocks:
        """Read blocks of rows in order, or of columns if `transpose`, within the memory limit."""


@dataclass(frozen=True, eq=False)
class OpenCounts:
    """Counts of samples by features that are not read from their file yet.

    Parameters
    ----------
    source
        The counts as the file stores them.
    samples, features
        Names, or None if the file has none. Those of the features are made unique.
    notes
        Sentences for the user.
    transposed
        Whether the source holds features by samples.
    feature_ids
        Ids of the features, or None if the file has none beside the names.
    origin
        What the file says about its values; None if its format says nothing.
    text_options
        The settings that words were counted with, if the file holds texts.
    """

    source: Source
    samples: Names | None = None
    features: Names | None = None
    notes: tuple[str, ...] = ()
    transposed: bool = False
    feature_ids: Names | None = None
    origin: ValueOrigin | None = None
    text_options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.features is not None:
            unique = unique_names(self.features, self.feature_ids)
            object.__setattr__(self, "features", unique)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of samples and features."""
        rows, columns = self.source.shape
        return (columns, rows) if self.transposed else (rows, columns)

    def transpose(self) -> OpenCounts:
        """Exchange samples and features."""
        names: dict[str, Any] = {"samples": self.features, "features": self.samples}
        return replace(self, transposed=not self.transposed, feature_ids=None, **names)

    def read(self, path: Path) -> Table:
        """Read all counts, and check that they are finite and non-negative."""
        counts = self.source.counts()
        if self.transposed:
            counts = counts.T if isinstance(counts, np.ndarray) else sparse.csr_array(counts.T)
        values = counts if isinstance(counts, np.ndarray) else counts.data
        if values.size and not (values.min() >= 0 and values.max() < np.inf):
            entries = sparse.coo_array(counts)
            at = np.argmax(~((entries.data >= 0) & (entries.data < np.inf)))
            rows, columns = entries.coords
            problem = bad_entry(path, int(rows[at]), int(columns[at]), entries.data[at])
            raise self.add_advice(problem)
        names = self.samples, self.features
        remarks = self.remarks() + self.value_remark(counts) + total_remarks(counts, *names)
        return Table(counts, *names, remarks, self.feature_ids, self.text_options)

    def blocks(self, workspace: Workspace) -> Blocks:
        """Read blocks of samples in order."""
        return self.source.blocks(workspace, transpose=self.transposed)

    def remarks(self) -> tuple[str, ...]:
        """Return sentences for the user, once the counts are read."""
        return tuple(map(printable, (*getattr(self.source, "remarks", ()), *self.notes)))

    def value_remark(self, counts: Counts) -> tuple[str, ...]:
        """Return a remark if these counts of the file look like other values."""
        is_dense = True if isinstance(self.source, Dense) else None  # a block of it may be sparse
        remark = count_remark(counts, self.origin, dense=is_dense)
        return () if remark is None else (remark,)

    def add_advice(self, problem: ValueError) -> ValueError:
        """Return the error about a value with the advice where else the file has counts."""
        if self.origin is None or self.origin.counts is None:
            return problem
        return ReadError(f"{problem} {self.origin.advice()}")


@dataclass(frozen=True, eq=False)
class Compressed:
    """A sparse matrix compressed by row (CSR), or by column (CSC) if `by_columns`.

    `data` and `indices` are arrays in memory, or datasets of a file that are read in parts.
    """

    path: Path
    data: Any
    indices: Any
    indptr: NDArray[Any]
    shape: tuple[int, int]
    by_columns: bool = False

    def __post_init__(self) -> None:
        """Reject indices that would make compiled code read outside the arrays."""
        parts = self.data, self.indices, self.indptr
        if any(len(part.shape) != 1 for part in parts):
            raise ReadError(
                f"{self.path} is damaged: a part of its matrix is not a list of numbers."
            )
        entries, indices, starts = map(len, parts)
        check_shape(self.path, self.shape, entries)
        for part in parts[1:]:
            if part.dtype.kind not in "iu":
                raise ReadError(f"{self.path} has indices of type {part.dtype}, expected integers.")
        if starts != self._sizes[0] + 1 or indices != entries:
            raise ReadError(
                f"{self.path} is damaged: a sparse matrix of {self.shape[0]} x {self.shape[1]} "
                f"cannot have {entries} values, {indices} indices and {starts} starts."
            )
        ends = self.indptr[0], self.indptr[-1]
        if ends != (0, entries) or (self.indptr[1:] < self.indptr[:-1]).any():
            raise ReadError(f"{self.path} is damaged: the starts of its rows are out of order.")

    @property
    def _sizes(self) -> tuple[int, int]:
        """The numbers of rows and columns, exchanged if `by_columns`."""
        return self.shape[::-1] if self.by_columns else self.shape

    def counts(self) -> Counts:
        """Read all counts."""
        matrix = self.part(0, self._sizes[0])
        return sparse.csr_array(matrix.T) if self.by_columns else matrix

    def blocks(self, workspace: Workspace, *, transpose: bool) -> Blocks:
        """Read blocks of rows, or of columns if `transpose`; sort the entries if necessary."""
        starts, in_order = self.indptr.astype(np.int64), transpose == self.by_columns
        return _read_blocks(self.part, starts, self._sizes, workspace, in_order)

    def part(self, begin: int, end: int) -> Csr:
        """Read and sort the entries of a range of rows, or of columns if `by_columns`."""
        starts = self.indptr[begin : end + 1].astype(np.int64)
        indices = np.asarray(self.indices[starts[0] : starts[-1]])
        if len(indices) and not 0 <= indices.min() <= indices.max() < self._sizes[1]:
            raise index_error(self.path, self.shape)
        lists = np.repeat(np.arange(begin, end, dtype=np.int32), np.diff(starts))
        data = numbers(self.path, np.asarray(self.data[starts[0] : starts[-1]]))
        entries = Entries(lists, indices.astype(np.int32), data)
        with report_duplicates(self.path, self.by_columns):
            return csr_from_entries(entries, (end - begin, self._sizes[1]), begin)


class Dense:
    """A two-dimensional array in memory, or a dataset of a file that is read in parts."""

    def __init__(self, path: Path, array: Any) -> None:
        if len(array.shape) != 2:
            raise ReadError(f"{path} has {len(array.shape)} dimensions, expected rows and columns.")
        self.path, self.array, self.shape = path, array, array.shape

    def counts(self) -> Counts:
        """Read all counts."""
        return self.part(0, self.shape[0])

    def blocks(self, workspace: Workspace, *, transpose: bool) -> Blocks:
        """Read blocks of rows, or of columns if `transpose`."""
        starts = np.arange(self.shape[0] + 1) * self.shape[1]
        return _read_blocks(self.part, starts, self.shape, workspace, not transpose)

    def part(self, begin: int, end: int) -> Counts:
        """Read a range of rows."""
        return numbers(self.path, self.array[begin:end])


def _read_blocks(
    part: Callable[[int, int], Counts],
    starts: NDArray[np.int64],
    shape: tuple[int, int],
    workspace: Workspace,
    in_order: bool,
) -> Blocks:
    """Read blocks of rows, whose entries begin at `starts`, or of columns unless `in_order`."""
    cuts = ranges(starts, workspace.max_entries)
    if in_order:
        return (part(begin, end) for begin, end in cuts)
    pieces = (_entries(part(begin, end), begin).transpose() for begin, end in cuts)
    return sort_by_rows(pieces, shape[::-1], workspace)


def _entries(block: Counts, first_row: int) -> Entries:
    """Return the entries of a block of the rows from `first_row` on."""
    matrix = sparse.coo_array(block)
    rows, columns = (part.astype(np.int32, copy=False) for part in matrix.coords)
    return Entries(rows + np.int32(first_row), columns, matrix.data)


def numbers(path: Path, array: NDArray[Any]) -> NDArray[Any]:
    """Return real numbers in types that SciPy supports; booleans become 0 or 1."""
    if array.dtype.kind not in "biuf":
        raise ReadError(f"{path} has values of type {array.dtype}, expected numbers.")
    if array.dtype == np.float16:
        return array.astype(np.float32)
    kind = np.uint8 if array.dtype.kind == "b" else array.dtype.newbyteorder("=")
    return array.astype(kind, copy=False)


# ---- errors --------------------------------------------------------------------------------------


def check_shape(place: Path | str, shape: tuple[int, int], entries: int) -> None:
    """Reject sizes that need far more memory than the content of the file."""
    if min(shape) < 0 or max(shape) > max(_MAX_EMPTY, entries) or max(shape) >= 2**31:
        raise ReadError(
            f"{place} declares {shape[0]} x {shape[1]} with {entries} counts, a size that sipower "
            "does not support: remove empty rows and columns, or write the file again."
        )


def index_error(path: Path, shape: tuple[int, int]) -> ReadError:
    """Return the error about a row or column that the matrix does not have."""
    return ReadError(f"{path} is damaged: an index is outside {shape[0]} x {shape[1]}.")


def entry_error(path: Path, problem: EntryError, first_row: int = 0) -> ValueError:
    """Return the error about an entry that `as_matrix` rejects in rows from `first_row` on."""
    _, (row, column), value, _ = problem.args
    if 0 <= value < np.inf:  # a valid count that the working type cannot hold
        return ReadError(f"{path}: {problem.shift_rows(first_row)}")
    return bad_entry(path, first_row + row, column, value)


def bad_entry(path: Path, row: int, column: int, value: Any) -> ReadError:
    """Return the error about a value that is negative or not finite."""
    return ReadError(
        f"{path}, row {row + 1}, column {column + 1}, holds {value}: counts must be finite and "
        "non-negative."
    )


@contextmanager
def report_duplicates(path: Path, by_columns: bool = False) -> Iterator[None]:
    """Raise `ReadError` with the row and column of an entry that occurs twice."""
    try:
        yield
    except DuplicateError as duplicate:
        row, column = duplicate.row, duplicate.column
        if by_columns:
            row, column = column, row
        raise ReadError(
            f"{path} holds two counts for row {row + 1}, column {column + 1}: add them up before "
            "saving."
        ) from None
