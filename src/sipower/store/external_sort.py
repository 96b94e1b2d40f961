# SPDX-License-Identifier: BSD-3-Clause
"""External sort: brings entries that come in any order into the order of rows, through files.

Entries are spilled to disk and the entries of every row counted. The rows are cut into ranges that
fit into memory, a second pass writes every entry to the place of its range (unless the entries came
in the order of rows), and a third reads range after range, sorts it and returns it as CSR.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.store.append_only import AppendOnlyArray

__all__ = [
    "Csr",
    "DuplicateError",
    "Entries",
    "ExternalSort",
    "Progress",
    "Workspace",
    "csr_from_entries",
    "first_duplicate",
    "ranges",
    "sort_by_rows",
    "spill_file",
]

# Quoted: an older SciPy cannot index its arrays' types.
Csr: TypeAlias = "sparse.csr_array[Any, tuple[int, int]]"
Progress = Callable[[str, int, int], None]
# Memory for an entry while it is read, sorted, converted to CSR, checked, hashed and written.
_BYTES_PER_ENTRY = 80
_CACHED_ENTRIES = 1 << 19  # so many sort fast: the processor's cache holds them
RECORD = np.dtype([("row", np.int32), ("column", np.int32), ("value", np.float64)])


class Entries(NamedTuple):
    """Values with their rows and columns, counted from 0."""

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[Any]

    def transpose(self) -> Entries:
        """Exchange rows and columns."""
        return Entries(self.columns, self.rows, self.values)

    def pack(self) -> NDArray[Any]:
        """Return the entries as records."""
        records = np.empty(len(self.rows), RECORD)
        for name, part in zip(("row", "column", "value"), self, strict=True):
            records[name] = part
        return records

    @classmethod
    def unpack(cls, records: NDArray[Any]) -> Entries:
        """Return the entries that records hold."""
        return cls(*(records[name].copy() for name in ("row", "column", "value")))


class DuplicateError(ValueError):
    """Two entries have the same row and column, counted from 0."""

    def __init__(self, row: int, column: int) -> None:
        super().__init__(f"There are two entries for row {row}, column {column}: add them up.")
        self.row, self.column = row, column


@dataclass(frozen=True)
class Workspace:
    """The memory limit, the place of temporary files and the progress callback of a conversion.

    Temporary folders are made beside `target`, the path of the store. `on_progress` is called with
    what is counted ("entries", "rows" or "columns"), how many there were and their nonzeros.
    """

    target: Path
    memory: int
    on_progress: Progress | None = None

    @property
    def max_entries(self) -> int:
        """The number of entries that may be in memory at a time."""
        return max(self.memory // _BYTES_PER_ENTRY, 1)

    @property
    def cached_entries(self) -> int:
        """The number of entries that is fastest to move at a time."""
        return min(self.max_entries, _CACHED_ENTRIES)

    @contextmanager
    def temporary_folder(self) -> Iterator[Path]:
        """Make a folder beside the store that is removed when the block ends."""
        place, prefix = self.target.parent, f".{self.target.name}."
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=prefix) as folder:
            yield Path(folder)

    def report(self, what: str, items: int, nonzeros: int) -> None:
        """Call the progress callback."""
        if self.on_progress is not None:
            self.on_progress(what, items, nonzeros)


class ExternalSort:
    """Entries sorted by row through a file, where it is known how many each row has.

    Parameters
    ----------
    file
        Holds the entries as records, range after range.
    starts
        Where each row begins in the order of rows, and the number of entries.
    max_entries
        The largest number of entries and rows in a range; a longer row is a range of its own.
    """

    def __init__(self, file: AppendOnlyArray, starts: NDArray[np.int64], max_entries: int) -> None:
        self._file, self._starts = file, starts
        self._ranges = list(ranges(starts, max_entries))
        number = np.min_scalar_type(len(self._ranges))  # the smaller the type, the faster the sort
        lengths = [end - begin for begin, end in self._ranges]
        self._range_numbers = np.repeat(np.arange(len(lengths), dtype=number), lengths)
        self._next = [int(starts[begin]) for begin, _ in self._ranges]

    def add(self, records: NDArray[Any]) -> None:
        """Append each entry to the part of the file that belongs to its range of rows."""
        numbers = self._range_numbers[records["row"]]
        records = records[np.argsort(numbers, kind="stable")]
        sizes = np.bincount(numbers, minlength=len(self._ranges))
        ends = np.cumsum(sizes)
        for k in np.flatnonzero(sizes):
            self._file.write(self._next[k], records[ends[k] - sizes[k] : ends[k]])
            self._next[k] += int(sizes[k])

    def blocks(self, columns: int) -> Iterator[Csr]:
        """Return the sorted entries as blocks of rows; zeros are left out."""
        for begin, end in self._ranges:
            records = self._file.read(int(self._starts[begin]), int(self._starts[end]))
            found = Entries.unpack(records)
            within = found._replace(rows=found.rows - np.int32(begin))
            block = csr_from_entries(within, (end - begin, columns))
            if block is None:
                at = first_duplicate(found.rows, found.columns)[1]
                raise DuplicateError(int(found.rows[at]), int(found.columns[at]))
            yield block


def sort_by_rows(
    pieces: Iterable[Entries], shape: tuple[int, int], workspace: Workspace
) -> Generator[Csr, None, None]:
    """Return entries that come in any order as CSR blocks of rows, in order.

    The values are float32 where all entries are, else float64. Zeros are left out; two entries of
    one place raise `DuplicateError`.
    """
    with workspace.temporary_folder() as folder, ExitStack() as stack:
        file = stack.enter_context(spill_file(folder / "unsorted"))
        dtypes = set()
        for entries in pieces:
            file.append(entries.pack())
            dtypes.add(entries.values.dtype)
            workspace.report("entries", file.length, file.length)
        starts, in_order = _row_starts(file, shape[0], workspace.max_entries)
        sort = ExternalSort(file, starts, workspace.max_entries)
        if not in_order:
            sorted_file = stack.enter_context(spill_file(folder / "sorted"))
            sort = ExternalSort(sorted_file, starts, workspace.max_entries)
            for records in file.pieces(workspace.cached_entries):
                sort.add(records)
            file.close()
            file.path.unlink()  # frees its space on the disk
        dtype = np.float32 if dtypes == {np.dtype(np.float32)} else np.float64
        for block in sort.blocks(shape[1]):
            yield block.astype(dtype, copy=False)


def spill_file(path: Path) -> closing[AppendOnlyArray]:
    """Open a temporary file of entries that is closed when the block ends."""
    return closing(AppendOnlyArray(path, [RECORD]))


def _row_starts(file: AppendOnlyArray, size: int, step: int) -> tuple[NDArray[np.int64], bool]:
    """Return where each row begins in the order of rows, and if the entries are in that order."""
    starts, in_order, last = np.zeros(size + 1, np.int64), True, 0
    for records in file.pieces(max(step, size)):  # `bincount` visits all rows at each step
        rows = records["row"]
        in_order = in_order and last <= rows[0] and bool((rows[1:] >= rows[:-1]).all())
        last = rows[-1]
        starts[1:] += np.bincount(rows, minlength=size)
    return np.cumsum(starts, out=starts), in_order


def ranges(starts: NDArray[Any], max_entries: int) -> Iterator[tuple[int, int]]:
    """Cut rows, whose entries begin at `starts`, into ranges of so many entries and rows.

    A row with more entries than that is a range of its own.
    """
    work = starts + np.arange(len(starts))
    begin = 0
    while begin < len(starts) - 1:
        end = int(np.searchsorted(work, work[begin] + max_entries, side="right")) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def csr_from_entries(entries: Entries, shape: tuple[int, int]) -> Csr | None:
    """Return entries as CSR without zeros, or None if two of them have the same place."""
    rows, columns, values = entries
    matrix = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=shape))
    if matrix.nnz < len(values):
        return None
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


def first_duplicate(rows: NDArray[Any], columns: NDArray[Any]) -> tuple[int, int]:
    """Return the positions of the first two entries with the same row and column, in order."""
    order = np.lexsort((columns, rows))
    same = np.flatnonzero((np.diff(rows[order]) == 0) & (np.diff(columns[order]) == 0))
    at = same[np.argmin(order[same + 1])]
    return int(order[at]), int(order[at + 1])
