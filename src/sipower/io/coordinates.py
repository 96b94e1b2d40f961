# SPDX-License-Identifier: BSD-3-Clause
"""Text files with a header and one entry per line: Matrix Market files and bags of words.

They are read in blocks of lines. Memory grows with the entries that the file contains, never with
the number that the header declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import quote
from sipower._kernels import parse_entries
from sipower.io.base import Counts, ReadError
from sipower.io.sources import Blocks, check_shape
from sipower.io.text import NEGATIVE, TINY, Lines, count_problem
from sipower.store.external_sort import DuplicateError, Entries, csr_from_entries, sort_by_rows
from sipower.store.workspace import Workspace

FIELDS = ("row", "column", "value")
# The numbers that `parse_entries` accepts.
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ADVICE = {
    NEGATIVE: "KL-NMF needs non-negative data",
    TINY: "write 0, or multiply all counts by the same number",
}


@dataclass(eq=False)
class Coordinates:
    """The entries of a text file, one per line, and what the header declares about them.

    Parameters
    ----------
    path, kind
        The file, and the name of its format in error messages.
    fields
        What each line holds: some of row, column and value, rows and columns counted from 1.
    shape, entries, line
        Numbers of rows and columns, number of entries, and the header line that declares them.
    whole
        Whether values are integers.
    symmetric
        Whether an entry also stands for its mirror image.
    """

    path: Path
    kind: str
    fields: tuple[str, ...]
    shape: tuple[int, int]
    entries: int
    line: int
    whole: bool = True
    symmetric: bool = False
    remarks: tuple[str, ...] = field(default=(), init=False)

    def counts(self) -> Counts:
        """Read all entries."""
        if "row" not in self.fields:  # the file lists all counts, column by column
            parts = [np.empty(0, np.int32), *(part.values for part in self._parts())]
            return np.ascontiguousarray(np.concatenate(parts).reshape(self.shape, order="F"))
        with self._report_duplicates():
            pieces = [Entries(*(np.empty(0, np.int32),) * 3), *self._pieces()]
            rows, columns, values = map(np.concatenate, zip(*pieces, strict=True))
            return csr_from_entries(Entries(rows, columns, values), self.shape)

    def blocks(self, workspace: Workspace, *, transpose: bool) -> Blocks:
        """Read blocks of rows in order, of the transpose if `transpose`."""
        pieces, shape = self._pieces(), self.shape
        if transpose:
            pieces, shape = (piece.transpose() for piece in pieces), shape[::-1]
        with self._report_duplicates(transpose):
            yield from sort_by_rows(pieces, shape, workspace)

    def _body(self) -> Iterator[tuple[range, bytes]]:
        """Read the lines below the header in blocks, each with the numbers of its lines."""
        with Lines(self.path) as lines:
            for _ in range(self.line):
                lines.one()
            first = lines.number + 1
            while text := lines.text():
                yield range(first, lines.number + 1), text
                first = lines.number + 1
            if lines.unfinished:
                self.remarks = (
                    f"The last line of {self.path.name} does not end with a newline: if the file "
                    "is truncated there, digits of its last count are missing.",
                )

    def _parts(self) -> Iterator[Entries]:
        """Parse block after block; the parts hold what the fields say and nothing else."""
        place = f"{self.path}, line {self.line},"
        if "row" in self.fields:
            check_shape(place, self.shape, self.entries)
        done, last = 0, self.line
        for numbers, text in self._body():
            part = self._parse(text, numbers[0])
            if done + len(part.values) > self.entries:
                lines = zip(numbers, text.split(b"\n"), strict=False)
                filled = [number for number, line in lines if line.strip()]
                raise ReadError(
                    f"{place} declares {self.entries} counts and has more, from line "
                    f"{filled[self.entries - done]} on: the header is wrong, or two files were "
                    "joined."
                )
            yield part
            done, last = done + len(part.values), numbers[-1]
        if done != self.entries:
            raise ReadError(
                f"{place} declares {self.entries} counts and has {done} up to its end at line "
                f"{last}: the file is incomplete, or the header is wrong."
            )

    def _pieces(self) -> Iterator[Entries]:
        """Read all entries of the matrix, counted from 0, block after block."""
        done = 0
        for part in self._parts():
            yield self._entries(part, done)
            done += len(part.values)

    def _entries(self, part: Entries, done: int) -> Entries:
        """Return the entries of the matrix that a part declares, of which `done` lines precede."""
        if "row" not in self.fields:  # the file lists all counts, column by column
            (at,) = np.nonzero(part.values)
            columns, rows = np.divmod(at + done, self.shape[0])
            return Entries(rows.astype(np.int32), columns.astype(np.int32), part.values[at])
        if not self.symmetric:
            return part
        off = part.rows != part.columns  # the file has only one half of the matrix
        mirrored = (numbers[off] for numbers in part.transpose())
        return Entries(*map(np.append, part, mirrored))

    # ---- lines -----------------------------------------------------------------------------------

    def _parse(self, text: bytes, first: int) -> Entries:
        """Parse a block of lines; `first` is the number of its first line, for messages."""
        has_indices, has_values = "row" in self.fields, "value" in self.fields
        rows, columns, values, bad = parse_entries(
            text, has_indices, has_values, self.whole, *self.shape
        )
        if bad >= 0:
            line = text.split(b"\n", bad + 1)[bad]
            problem = self._line_problem([cell.decode("latin-1") for cell in line.split()])
            damage = f"this is not a {self.kind}, or it is damaged"
            advice = next((_ADVICE[end] for end in _ADVICE if problem.endswith(end)), damage)
            raise ReadError(f"{self.path}, line {first + bad}: {problem}; {advice}.")
        return Entries(
            rows, columns, narrow(values) if has_values else np.ones(len(rows), np.int32)
        )

    def _line_problem(self, texts: list[str]) -> str:
        """Return what is wrong with the fields of a line that is not valid."""
        if len(texts) != len(self.fields):
            fields = ", ".join(self.fields)
            return f"{len(texts)} numbers in a line, expected {len(self.fields)} ({fields})"
        cells = dict(zip(self.fields, texts, strict=True))
        for name, size in zip(("row", "column"), self.shape, strict=True):
            text = cells.get(name, "1")
            if not _INTEGER.fullmatch(text):
                return f"the {name} {quote(text)} is not a whole number"
            if not 1 <= int(text) <= size:
                return f"the {name} {text} is outside {self.shape[0]} x {self.shape[1]}"
        value = cells["value"]
        if not _DECIMAL.fullmatch(value):
            return f"{quote(value)} is not a finite number"
        problem = count_problem(value)
        return problem or f"{quote(value)} is not a whole number of at most 18 digits"

    @contextmanager
    def _report_duplicates(self, transpose: bool = False) -> Iterator[None]:
        """Report the lines of two entries with the same row and column.

        In a symmetric matrix, (row, column) and (column, row) are the same entry.
        """
        try:
            yield
        except DuplicateError as duplicate:
            place = duplicate.row + 1, duplicate.column + 1
            mirrored = duplicate.column + 1, duplicate.row + 1
            places = {place, mirrored} if self.symmetric else {mirrored if transpose else place}
            earlier, later = islice(self._lines_at(places), 2)
            raise ReadError(
                f"{self.path}, line {later}, has the same row and column as line {earlier}: add up "
                "the two counts, or drop one."
            ) from None

    def _lines_at(self, places: set[tuple[int, int]]) -> Iterator[int]:
        """Yield the line numbers of the entries at the given (row, column) pairs."""
        for numbers, text in self._body():
            for number, line in zip(numbers, text.split(b"\n"), strict=False):
                if tuple(map(int, line.split()[:2])) in places:
                    yield number


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers as int32 if all of them fit, and other values unchanged."""
    if values.dtype.kind not in "iu" or values.max(initial=0) > np.iinfo(np.int32).max:
        return values
    return values.astype(np.int32)


def read_size(lines: Lines, count: int, kind: str, *, comments: bool = False) -> list[int]:
    """Read the line of whole numbers that gives the size of the matrix."""
    line = lines.one()
    while comments and line is not None and (line.startswith(b"%") or not line.strip()):
        line = lines.one()
    texts = (line or b"").split()
    if len(texts) != count or not all(text.isdigit() and len(text) < 19 for text in texts):
        content = "the end of the file" if line is None else quote(line.decode("latin-1"))
        raise ReadError(
            f"{lines.path}, line {max(lines.number, 1)}, is {content}, expected {count} whole "
            f"number{'s' if count > 1 else ''} for the size: this is not a {kind}."
        )
    return [int(text) for text in texts]
