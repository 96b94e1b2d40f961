# SPDX-License-Identifier: BSD-3-Clause
"""Entries in any order, brought into the order of rows through files: buckets of rows.

Entries that came are spooled to disk, the entries of every row counted, and the rows cut into
ranges of which each fits into memory. A second pass appends every entry to the bucket of its range,
unless the spool is in the order of rows already; a third reads bucket after bucket, sorts it and
hands out its rows as CSR.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.store.growing import NumberFile
from sipower.store.layout import PARTS, VALUE_TYPES

__all__ = [
    "Bucket",
    "Csr",
    "Entries",
    "Progress",
    "RepeatedError",
    "Room",
    "Scratch",
    "blocks_of",
    "distribute",
    "from_coordinates",
    "in_row_order",
    "ranges",
    "repeated",
]

# Quoted: an older SciPy cannot index its arrays' types.
Csr: TypeAlias = "sparse.csr_array[Any, tuple[int, int]]"
Progress = Callable[[str, int, int], None]
# Memory for an entry on its way: read, sorted, made CSR, checked, hashed and written.
_BYTES_PER_ENTRY = 80
_CACHED = 1 << 19  # entries that are fast to sort, being near the processor
_INDEX = PARTS["indices"]


class Entries(NamedTuple):
    """Values and where they stand."""

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[Any]

    def turned(self) -> Entries:
        """Exchange rows and columns."""
        return Entries(self.columns, self.rows, self.values)


class RepeatedError(ValueError):
    """Two entries have the same place, counted from 0."""

    def __init__(self, row: int, column: int) -> None:
        super().__init__(f"There are two entries for row {row}, column {column}: add them up.")
        self.row, self.column = row, column


@dataclass(frozen=True)
class Room:
    """Where temporary files may be made, how much memory may be taken, and who hears of progress.

    `beside` is the path of a store: temporary folders are made beside it. `told` is called with
    what is counted ("entries", "rows" or "columns"), how many there were and their nonzeros.
    """

    beside: Path
    memory: int
    told: Progress | None = None

    @property
    def most(self) -> int:
        """Entries that may be worked on at a time."""
        return max(self.memory // _BYTES_PER_ENTRY, 1)

    @property
    def few(self) -> int:
        """Entries that are best moved at a time."""
        return min(self.most, _CACHED)

    @contextmanager
    def scratch(self) -> Iterator[Scratch]:
        """Make a temporary folder beside the store, which does not outlive the work in it."""
        place, prefix = self.beside.parent, f".{self.beside.name}."
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=prefix) as folder, ExitStack() as files:
            yield Scratch(Path(folder), files)

    def tell(self, what: str, items: int, nonzeros: int) -> None:
        """Report progress."""
        if self.told is not None:
            self.told(what, items, nonzeros)


@dataclass(frozen=True)
class Scratch:
    """A temporary folder and the files that are open in it."""

    folder: Path
    files: ExitStack

    def numbers(self, path: Path, types: Sequence[np.dtype[Any]]) -> NumberFile:
        """Make a file that is closed before the folder goes."""
        file = NumberFile(path, types)
        self.files.callback(file.abandon)
        return file


class Bucket:
    """Entries in files: rows, columns and values."""

    def __init__(self, scratch: Scratch, name: str, types: tuple[np.dtype[Any], ...]) -> None:
        kinds = {"rows": _INDEX, "columns": _INDEX, "values": types}
        paths = (scratch.folder / f"{name}.{part}" for part in kinds)
        self.files = list(map(scratch.numbers, paths, kinds.values()))

    def __len__(self) -> int:
        return self.files[0].length

    @property
    def value_type(self) -> np.dtype[Any]:
        """Type of the values so far."""
        return self.files[2].dtype

    def append(self, entries: Entries) -> None:
        """Write entries behind the last one."""
        for file, part in zip(self.files, entries, strict=True):
            file.append(part)

    def put(self, start: int, entries: Entries) -> None:
        """Write entries from a position on."""
        for file, part in zip(self.files, entries, strict=True):
            file.put(start, part)

    def read(self, start: int, stop: int) -> Entries:
        """Read the entries of a range."""
        return Entries(*(file.read(start, stop) for file in self.files))

    def pieces(self, most: int) -> Iterator[Entries]:
        """Read all entries, so many at a time."""
        for start in range(0, len(self), most):
            yield self.read(start, min(start + most, len(self)))

    def remove(self) -> None:
        """Delete the files."""
        for file in self.files:
            file.abandon()
            file.path.unlink()


def in_row_order(
    pieces: Iterable[Entries], shape: tuple[int, int], room: Room
) -> Generator[Csr, None, None]:
    """Blocks of rows, in order, of entries in any order.

    The values are float32 where all entries are, else float64. Zeros are left out; two entries of
    one place raise `RepeatedError`.
    """
    with room.scratch() as scratch:
        spool = Bucket(scratch, "spool", VALUE_TYPES)
        kinds = set()
        for entries in pieces:
            spool.append(entries)
            kinds.add(entries.values.dtype)
            room.tell("entries", len(spool), len(spool))
        starts, ordered = _starts(spool, shape[0], room.most)
        bucket = spool
        if not ordered:
            bucket = Bucket(scratch, "bucket", (spool.value_type,))
            distribute(spool.pieces(room.few), starts, bucket, room.most)
            spool.remove()  # for the disk's sake
        working = np.float32 if kinds == {np.dtype(np.float32)} else np.float64
        for block in blocks_of(bucket, starts, shape[1], room.most):
            yield block.astype(working)


def _starts(spool: Bucket, size: int, most: int) -> tuple[NDArray[np.int64], bool]:
    """Where each row begins in the order of rows, and whether the entries are in that order."""
    starts, ordered, last = np.zeros(size + 1, np.int64), True, 0
    step = max(most, size)  # the counts take that much at each step
    for begin in range(0, len(spool), step):
        rows = spool.files[0].read(begin, min(begin + step, len(spool)))
        ordered = ordered and last <= rows[0] and bool((rows[1:] >= rows[:-1]).all())
        last = rows[-1]
        starts[1:] += np.bincount(rows, minlength=size)
    return np.cumsum(starts, out=starts), ordered


def distribute(
    pieces: Iterable[Entries], starts: NDArray[np.int64], bucket: Bucket, most: int
) -> None:
    """Write every entry to the place of its range of rows; within a range the order stays."""
    cuts = list(ranges(starts, most))
    free = [int(starts[begin]) for begin, _ in cuts]
    number = np.min_scalar_type(len(cuts))  # the smaller the type, the faster the sort
    range_of = np.repeat(np.arange(len(cuts), dtype=number), [end - begin for begin, end in cuts])
    for entries in pieces:
        where = range_of[entries.rows]
        order = np.argsort(where, kind="stable")
        moved = Entries(*(part[order] for part in entries))
        sizes = np.bincount(where, minlength=len(cuts))
        ends = np.cumsum(sizes)
        for k in np.flatnonzero(sizes):
            part = slice(ends[k] - sizes[k], ends[k])
            bucket.put(free[k], Entries(*(numbers[part] for numbers in moved)))
            free[k] += int(sizes[k])


def blocks_of(bucket: Bucket, starts: NDArray[np.int64], columns: int, most: int) -> Iterator[Csr]:
    """Blocks of rows, in order, of entries that lie range after range."""
    for begin, end in ranges(starts, most):
        rows, others, values = bucket.read(int(starts[begin]), int(starts[end]))
        here = Entries(rows - np.int32(begin), others, values)
        block = from_coordinates(here, (end - begin, columns))
        if block is None:
            again = repeated(rows, others)[1]
            raise RepeatedError(int(rows[again]), int(others[again]))
        yield block


def ranges(starts: NDArray[Any], most: int) -> Iterator[tuple[int, int]]:
    """Cut rows, whose entries begin at `starts`, into ranges of at most so many entries and rows.

    A row with more entries than that is a range of its own.
    """
    work = starts + np.arange(len(starts))
    begin = 0
    while begin < len(starts) - 1:
        end = int(np.searchsorted(work, work[begin] + most, side="right")) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def from_coordinates(entries: Entries, shape: tuple[int, int]) -> Csr | None:
    """Make a CSR array of checked entries, or nothing if two of them have the same place."""
    rows, columns, values = entries
    matrix = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=shape))
    if matrix.nnz < len(values):
        return None
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


def repeated(rows: NDArray[Any], columns: NDArray[Any]) -> tuple[int, int]:
    """Positions of the first entry that has the place of an earlier one: (earlier, it)."""
    order = np.lexsort((columns, rows))
    same = np.flatnonzero((np.diff(rows[order]) == 0) & (np.diff(columns[order]) == 0))
    at = same[np.argmin(order[same + 1])]
    return int(order[at]), int(order[at + 1])
