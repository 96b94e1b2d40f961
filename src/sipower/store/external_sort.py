# SPDX-License-Identifier: BSD-3-Clause
"""External sort: sorts entries by row through temporary files.

Entries are first written to disk, and the entries of every row are counted. The rows are then cut
into ranges that fit into memory, and every entry is moved to the file of its range. This step is
left out if the entries are in the order of the rows already. Finally, each range is read, sorted
and returned as CSR.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.validate import check_exact
from sipower.store.append_only import append_numbers, read_numbers
from sipower.store.workspace import Workspace

# Quoted, because the array types of older SciPy versions cannot be subscripted.
Csr: TypeAlias = "sparse.csr_array[Any, tuple[int, int]]"
RECORD = np.dtype([("row", np.int32), ("column", np.int32), ("value", np.float64)])


class Entries(NamedTuple):
    """The values of entries, and the numbers of their rows and columns, which start at 0."""

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[Any]

    def transpose(self) -> Entries:
        """Return the entries of the transpose."""
        return Entries(self.columns, self.rows, self.values)

    def pack(self) -> NDArray[Any]:
        """Return the entries as a structured array of dtype `RECORD`, whose values are float64."""
        places = self.rows, self.columns
        check_exact(self.values, lambda at: [part[at] for part in places], RECORD["value"])
        records = np.empty(len(self.rows), RECORD)
        for name, part in zip(RECORD.fields or (), self, strict=True):
            records[name] = part
        return records


class DuplicateError(ValueError):
    """The error for two entries that have the same row and column.

    Row and column numbers start at 0. `positions` are the indices of the two entries in the arrays
    of an `Entries` object.
    """

    def __init__(self, row: int, column: int, positions: tuple[int, int]) -> None:
        super().__init__(f"There are two entries for row {row}, column {column}: add them up.")
        self.row, self.column, self.positions = row, column, positions


def sort_by_rows(
    pieces: Iterable[Entries], shape: tuple[int, int], workspace: Workspace
) -> Generator[Csr, None, None]:
    """Yield all entries of `pieces`, which may be in any order, as CSR blocks of consecutive rows.

    The blocks are float32 if the values of all pieces are, else float64. Zeros are left out. Two
    entries with the same row and column raise `DuplicateError`.
    """
    with workspace.temporary_folder() as folder:
        file, length, dtypes, in_order, last = folder / "entries", 0, set(), True, 0
        for entries in pieces:
            rows = np.append(last, entries.rows)
            in_order, last = in_order and bool((rows[1:] >= rows[:-1]).all()), rows[-1]
            append_numbers(file, entries.pack())
            dtypes.add(entries.values.dtype)
            length += len(entries.rows)
            workspace.report("entries", length, length)
        starts = np.zeros(shape[0] + 1, np.int64)  # only now has `pieces` checked the shape
        for records in _read_records(file, length, workspace.cached_entries):
            np.add.at(starts, records["row"] + 1, 1)
        starts = np.cumsum(starts)
        if in_order:
            cuts = ranges(starts, workspace.max_entries)
            blocks: Iterator[Csr] = (
                _read_block(file, starts, cut, shape[1], int(starts[cut[0]])) for cut in cuts
            )
        else:
            pieces_on_disk = _read_records(file, length, workspace.cached_entries, remove=True)
            blocks = sort_records(pieces_on_disk, starts, shape[1], workspace)
        dtype = np.float32 if dtypes == {np.dtype(np.float32)} else np.float64
        for block in blocks:
            yield block.astype(dtype, copy=False)


def sort_records(
    pieces: Iterable[NDArray[Any]], starts: NDArray[np.int64], columns: int, workspace: Workspace
) -> Iterator[Csr]:
    """Yield all records of `pieces` as CSR blocks of consecutive rows.

    Row i has starts[i + 1] − starts[i] records. `columns` is the number of columns.
    """
    cuts = list(ranges(starts, workspace.max_entries))
    dtype = np.min_scalar_type(len(cuts))  # the smaller the type, the faster the sort
    rows_per_range = [end - begin for begin, end in cuts]
    range_numbers = np.repeat(np.arange(len(cuts), dtype=dtype), rows_per_range)
    with workspace.temporary_folder() as folder:
        for records in pieces:
            numbers = range_numbers[records["row"]]
            order = np.argsort(numbers, kind="stable")
            present, first = np.unique(numbers[order], return_index=True)
            for number, part in zip(present, np.split(records[order], first[1:]), strict=False):
                append_numbers(folder / str(number), part)
        for number, cut in enumerate(cuts):
            yield _read_block(folder / str(number), starts, cut, columns)


def _read_records(
    file: Path, length: int, step: int, *, remove: bool = False
) -> Iterator[NDArray[Any]]:
    """Yield the records of a file, `step` at a time; then delete it if `remove` is true."""
    for start in range(0, length, step):
        yield read_numbers(file, RECORD, start, min(start + step, length))
    if remove:
        file.unlink()


def _read_block(
    file: Path, starts: NDArray[np.int64], rows: tuple[int, int], columns: int, first: int = 0
) -> Csr:
    """Return a range of rows as CSR; their entries begin at record `first` of the file."""
    begin, end = rows
    length = int(starts[end] - starts[begin])
    records = np.empty(0, RECORD)
    if length:  # without entries there may be no file
        records = read_numbers(file, RECORD, first, first + length)
    entries = Entries(*(records[name].copy() for name in RECORD.fields or ()))
    return csr_from_entries(entries, (end - begin, columns), begin)


def ranges(starts: NDArray[Any], max_entries: int) -> Iterator[tuple[int, int]]:
    """Cut all rows into ranges that fit into memory, and yield (begin, end) of each range.

    Row i has starts[i + 1] − starts[i] entries. The number of entries of a range plus its number
    of rows is at most `max_entries`, unless the range is a single row.
    """
    work = starts + np.arange(len(starts))
    begin = 0
    while begin < len(starts) - 1:
        end = int(np.searchsorted(work, work[begin] + max_entries, side="right")) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def csr_from_entries(entries: Entries, shape: tuple[int, int], first_row: int = 0) -> Csr:
    """Return `entries` as CSR without zeros; row 0 of the result is row `first_row` of the data."""
    rows, columns, values = entries
    if first_row:
        rows = rows - np.int32(first_row)
    rises_in_row = (rows[1:] == rows[:-1]) & (columns[1:] > columns[:-1])
    if (rises_in_row | (rows[1:] > rows[:-1])).all() and values.all():  # already in order
        starts = np.searchsorted(rows, np.arange(shape[0] + 1, dtype=rows.dtype))
        starts = starts.astype(np.int32 if len(values) < 2**31 else np.int64)
        return sparse.csr_array((values, columns, starts), shape=shape)
    matrix = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=shape))
    if matrix.nnz < len(values):
        order = np.lexsort((columns, rows))
        same = np.flatnonzero((np.diff(rows[order]) == 0) & (np.diff(columns[order]) == 0))
        at = same[np.argmin(order[same + 1])]
        earlier, later = int(order[at]), int(order[at + 1])
        raise DuplicateError(first_row + int(rows[later]), int(columns[later]), (earlier, later))
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix
