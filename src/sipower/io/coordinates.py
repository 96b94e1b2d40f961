# SPDX-License-Identifier: BSD-3-Clause
"""Texts with one entry to a line below a head, as Matrix Market files and bags of words have them.

They are read in blocks of lines, and memory grows with the entries that are there, never with those
that the header declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.io.base import Counts, ReadError, shorten
from sipower.io.sources import Blocks, check_shape
from sipower.io.text import Lines, count_problem
from sipower.store.external_sort import (
    DuplicateError,
    Entries,
    Workspace,
    csr_from_entries,
    first_duplicate,
    sort_by_rows,
)

__all__ = ["FIELDS", "Coordinates", "narrow", "read_size"]

FIELDS = ("row", "column", "value")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(eq=False)
class Coordinates:
    """Entries of a text, one to a line, and what the header declares about them.

    Parameters
    ----------
    path, kind
        The file, and what it is called in an error.
    fields
        What each line holds: some of row, column and value, rows and columns counted from 1.
    shape, entries, line
        Rows and columns, the number of lines, and the line in which the head says so.
    whole
        Whether values are integers.
    symmetric
        Whether an entry stands for its mirror image too.
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
        if "row" not in self.fields:
            parts = [np.empty(0, self._dtype), *self._parts()]
            return narrow(np.concatenate(parts)["value"]).reshape(self.shape, order="F")
        pieces = [Entries(*(np.empty(0, np.int32),) * 3), *self._pieces()]
        rows, columns, values = map(np.concatenate, zip(*pieces, strict=True))
        matrix = csr_from_entries(Entries(rows, columns, narrow(values)), self.shape)
        if matrix is None:
            at = first_duplicate(rows, columns)[1]
            raise self._duplicate(rows[at], columns[at])
        return matrix

    def blocks(self, workspace: Workspace, *, transpose: bool) -> Blocks:
        """Read blocks of rows in order, of the transpose if asked."""
        pieces, shape = self._pieces(), self.shape
        if transpose:
            pieces, shape = (piece.transpose() for piece in pieces), shape[::-1]
        try:
            yield from sort_by_rows(pieces, shape, workspace)
        except DuplicateError as found:
            place = (found.column, found.row) if transpose else (found.row, found.column)
            raise self._duplicate(*place) from None

    @property
    def _dtype(self) -> np.dtype[Any]:
        value = np.int64 if self.whole else np.float64
        return np.dtype([(name, value if name == "value" else np.int32) for name in self.fields])

    def _values(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return the values of parsed lines; an entry that has none is a 1."""
        return part["value"] if "value" in self.fields else np.ones(len(part), np.int64)

    def _mirror(self, entries: Entries) -> Entries:
        """Add the mirror image, if only one half of the matrix is written."""
        if not self.symmetric:
            return entries
        off = entries.rows != entries.columns
        mirrored = (part[off] for part in entries.transpose())
        return Entries(*map(np.append, entries, mirrored))

    def _parts(self) -> Iterator[NDArray[Any]]:
        """Read the checked fields of all lines, block after block."""
        found = 0
        with Lines(self.path) as lines:
            for _ in range(self.line):
                lines.one()
            while block := lines.block():
                part = self._parse(block, lines.number - len(block) + 1)
                found += len(part)
                if found > self.entries:
                    raise ReadError(
                        f"{self.path}, line {self.line}, declares {self.entries} counts and has "
                        f"more, from line {self._line_number(self.entries)} on: the header is "
                        "wrong, or two files were joined."
                    )
                yield part
            if lines.unfinished:
                self.remarks = (
                    f"The last line of {self.path.name} does not end: if the file was cut there, "
                    "digits of its last count are missing.",
                )
            if found != self.entries:
                raise ReadError(
                    f"{self.path}, line {self.line}, declares {self.entries} counts and has "
                    f"{found} up to its end at line {lines.number}: the file is "
                    "incomplete, or the header is wrong."
                )
        if "row" in self.fields:
            check_shape(f"{self.path}, line {self.line},", self.shape, found)

    def _parse(self, block: list[bytes], first: int) -> NDArray[Any]:
        """Parse a block of lines; `first` is the line number of its first line, for messages."""
        if not any(line.strip() for line in block):
            return np.empty(0, self._dtype)
        limits = {"row": (1, self.shape[0]), "column": (1, self.shape[1])}
        limits["value"] = (0, np.finfo(float).max)  # type: ignore[assignment]
        try:
            part = np.loadtxt(block, self._dtype, comments=None, ndmin=1, encoding="latin-1")
            bounds = ((part[name].min(), part[name].max(), limits[name]) for name in self.fields)
            if all(low <= least and most <= high for least, most, (low, high) in bounds):
                return part
        except ValueError:
            pass  # the search below says which line it is
        for number, line in enumerate(block, first):
            problem = self._line_problem(line.decode("latin-1").split())
            if problem:
                raise ReadError(
                    f"{self.path}, line {number}: {problem}; this is not a {self.kind}, or it is "
                    "damaged."
                )
        last = first + len(block) - 1
        raise ReadError(f"{self.path}, lines {first} to {last}, hold a number that is too large.")

    def _line_problem(self, texts: list[str]) -> str | None:
        """Return what is wrong with the fields of a line, if anything is."""
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

    def _pieces(self) -> Iterator[Entries]:
        """Read all entries of the matrix, counted from 0, block after block."""
        done = 0
        for part in self._parts():
            values = self._values(part)
            if "row" in self.fields:
                yield self._mirror(Entries(part["row"] - 1, part["column"] - 1, values))
            else:  # all counts, column after column
                (at,) = np.nonzero(values)
                columns, rows = np.divmod(at + done, self.shape[0])
                yield Entries(rows.astype(np.int32), columns.astype(np.int32), values[at])
            done += len(part)

    # ---- where -----------------------------------------------------------------------------------

    def _positions(self, row: int, column: int) -> Iterator[int]:
        """Find the entries at a place, which a symmetric matrix has on both sides."""
        done = 0
        for part in self._parts():
            rows, columns = part["row"] - 1, part["column"] - 1
            there = (rows == row) & (columns == column)
            if self.symmetric:
                there |= (rows == column) & (columns == row)
            yield from (np.flatnonzero(there) + done).tolist()
            done += len(part)

    def _duplicate(self, row: int, column: int) -> ReadError:
        """Return the error about a place that two lines have, counted from 0."""
        earlier, later = map(self._line_number, islice(self._positions(row, column), 2))
        return ReadError(
            f"{self.path}, line {later}, has the same row and column as line {earlier}: add up "
            "the two counts, or drop one."
        )

    def _line_number(self, entry: int) -> int:
        """Read the file again for the number of the line that holds an entry."""
        with Lines(self.path) as lines:
            while block := lines.block():
                for number, line in enumerate(block, lines.number - len(block) + 1):
                    if number > self.line and line.strip():
                        if entry == 0:
                            return number
                        entry -= 1
        raise AssertionError(entry)


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in 32 bits if all of them fit."""
    if values.dtype.kind != "i" or (values.size and values.max() > np.iinfo(np.int32).max):
        return values
    return values.astype(np.int32)


def read_size(lines: Lines, count: int, kind: str, *, comments: bool = False) -> list[int]:
    """Read the line of whole numbers that gives the size of the matrix."""
    line = lines.one()
    while comments and line is not None and (line.startswith(b"%") or not line.strip()):
        line = lines.one()
    texts = (line or b"").split()
    if len(texts) != count or not all(text.isdigit() and len(text) < 19 for text in texts):
        said = "the end of the file" if line is None else repr(shorten(line.decode("latin-1")))
        raise ReadError(
            f"{lines.path}, line {max(lines.number, 1)}, is {said}, expected {count} whole "
            f"number{'s' if count > 1 else ''} for the size: this is not a {kind}."
        )
    return [int(text) for text in texts]
