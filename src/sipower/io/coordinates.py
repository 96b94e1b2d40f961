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

from sipower._files import shorten
from sipower.io.base import Counts, ReadError
from sipower.io.sources import Blocks, check_shape
from sipower.io.text import NEGATIVE, Lines, count_problem
from sipower.store.external_sort import DuplicateError, Entries, csr_from_entries, sort_by_rows
from sipower.store.workspace import Workspace

FIELDS = ("row", "column", "value")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


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
        with self._report_duplicates():
            pieces = [Entries(*(np.empty(0, np.int32),) * 3), *self._pieces()]
            rows, columns, values = map(np.concatenate, zip(*pieces, strict=True))
            matrix = csr_from_entries(Entries(rows, columns, narrow(values)), self.shape)
        return matrix if "row" in self.fields else matrix.toarray()

    def blocks(self, workspace: Workspace, *, transpose: bool) -> Blocks:
        """Read blocks of rows in order, of the transpose if `transpose`."""
        pieces, shape = self._pieces(), self.shape
        if transpose:
            pieces, shape = (piece.transpose() for piece in pieces), shape[::-1]
        with self._report_duplicates(transpose):
            yield from sort_by_rows(pieces, shape, workspace)

    def _body(self) -> Iterator[tuple[int, list[bytes]]]:
        """Read the lines below the header in blocks, each with the number of its first line."""
        with Lines(self.path) as lines:
            for _ in range(self.line):
                lines.one()
            while block := lines.block():
                yield lines.number - len(block) + 1, block
            if lines.unfinished:
                self.remarks = (
                    f"The last line of {self.path.name} does not end with a newline: if the file "
                    "is truncated there, digits of its last count are missing.",
                )

    def _pieces(self) -> Iterator[Entries]:
        """Read all entries of the matrix, counted from 0, block after block."""
        done, last, header = 0, self.line, f"{self.path}, line {self.line}, declares {self.entries}"
        for first, block in self._body():
            part = self._parse(block, first)
            if done + len(part) > self.entries:
                numbers = [number for number, line in enumerate(block, first) if line.strip()]
                raise ReadError(
                    f"{header} counts and has more, from line {numbers[self.entries - done]} on: "
                    "the header is wrong, or two files were joined."
                )
            yield self._entries(part, done)
            done, last = done + len(part), first + len(block) - 1
        if done != self.entries:
            raise ReadError(
                f"{header} counts and has {done} up to its end at line {last}: the file is "
                "incomplete, or the header is wrong."
            )
        if "row" in self.fields:
            check_shape(f"{self.path}, line {self.line},", self.shape, done)

    def _entries(self, part: NDArray[Any], done: int) -> Entries:
        """Convert parsed lines to entries; `done` is the number of lines parsed before them."""
        values = part["value"] if "value" in self.fields else np.ones(len(part), np.int64)
        if "row" not in self.fields:  # the file lists all counts, column by column
            (at,) = np.nonzero(values)
            columns, rows = np.divmod(at + done, self.shape[0])
            return Entries(rows.astype(np.int32), columns.astype(np.int32), values[at])
        entries = Entries(part["row"] - 1, part["column"] - 1, values)
        if self.symmetric:  # the file has only one half of the matrix
            off = entries.rows != entries.columns
            mirrored = (part[off] for part in entries.transpose())
            entries = Entries(*map(np.append, entries, mirrored))
        return entries

    # ---- lines -----------------------------------------------------------------------------------

    def _parse(self, block: list[bytes], first: int) -> NDArray[Any]:
        """Parse a block of lines; `first` is the line number of its first line, for messages."""
        value = np.int64 if self.whole else np.float64
        dtype = np.dtype([(name, value if name == "value" else np.int32) for name in self.fields])
        if not any(line.strip() for line in block):
            return np.empty(0, dtype)
        limits = {"row": (1, self.shape[0]), "column": (1, self.shape[1])}
        limits["value"] = (0, np.finfo(float).max)  # type: ignore[assignment]
        try:
            part = np.loadtxt(block, dtype, comments=None, ndmin=1, encoding="latin-1")
            bounds = ((part[name].min(), part[name].max(), limits[name]) for name in self.fields)
            if all(low <= small and large <= high for small, large, (low, high) in bounds):
                return part
        except ValueError:
            pass  # the search below finds the line
        for number, line in enumerate(block, first):
            problem = self._line_problem(line.decode("latin-1").split())
            if problem:
                is_valid = problem.endswith(NEGATIVE)  # for the format, but not for a fit
                reason = f"this is not a {self.kind}, or it is damaged"
                reason = "KL-NMF needs non-negative data" if is_valid else reason
                raise ReadError(f"{self.path}, line {number}: {problem}; {reason}.")
        last = first + len(block) - 1
        raise ReadError(f"{self.path}, lines {first} to {last}, hold a number that is too large.")

    def _line_problem(self, texts: list[str]) -> str | None:
        """Return what is wrong with the fields of a line, or None."""
        if not texts:
            return None
        if len(texts) != len(self.fields):
            fields = ", ".join(self.fields)
            return f"{len(texts)} numbers in a line, expected {len(self.fields)} ({fields})"
        cells = dict(zip(self.fields, texts, strict=True))
        for name, size in zip(("row", "column"), self.shape, strict=True):
            text = cells.get(name, "1")
            if not _INTEGER.fullmatch(text):
                return f"the {name} {shorten(text)!r} is not a whole number"
            if not 1 <= int(text) <= size:
                return f"the {name} {text} is outside {self.shape[0]} x {self.shape[1]}"
        value = cells.get("value", "1")
        if self.whole and count_problem(value) is None and not _INTEGER.fullmatch(value):
            return f"{shorten(value)!r} is not a whole number of at most 18 digits"
        return count_problem(value)

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
        for first, block in self._body():
            for number, line in enumerate(block, first):
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
        content = "the end of the file" if line is None else repr(shorten(line.decode("latin-1")))
        raise ReadError(
            f"{lines.path}, line {max(lines.number, 1)}, is {content}, expected {count} whole "
            f"number{'s' if count > 1 else ''} for the size: this is not a {kind}."
        )
    return [int(text) for text in texts]
