# SPDX-License-Identifier: BSD-3-Clause
"""Texts with one entry to a line: Matrix Market files and UCI's bags of words, read in blocks.

Memory grows with the entries that are there, never with those that the head of a file promises.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.io.counts import narrow, plausible
from sipower.io.heads import Head, bag_head, market_head
from sipower.io.streams import Blocks, Stream
from sipower.io.table import Counts, ReadError, Table
from sipower.io.text import Lines, lines_of
from sipower.store.external_sort import (
    DuplicateError,
    Entries,
    Workspace,
    csr_from_entries,
    first_duplicate,
    sort_by_rows,
)

__all__ = ["Coordinates", "is_docword", "open_coordinates", "open_docword", "read_docword"]


class Coordinates:
    """Entries of a text, one to a line below its head."""

    def __init__(self, head: Head) -> None:
        self.head, self.shape = head, head.shape
        self._unfinished = False

    def counts(self) -> Counts:
        """Read all of them."""
        head, whole = self.head, np.concatenate([np.empty(0, self.head.dtype), *self._parts()])
        values = narrow(np.ascontiguousarray(head.values(whole)))
        if "row" not in head.fields:
            return values.reshape(head.shape, order="F")
        rows, columns = places = whole["row"] - 1, whole["column"] - 1
        if head.symmetric:
            places = np.maximum(rows, columns), np.minimum(rows, columns)
        matrix = csr_from_entries(_mirrored(head, Entries(rows, columns, values)), head.shape)
        if matrix is None:
            raise self._repetition(*first_duplicate(*places))
        return matrix

    def blocks(self, workspace: Workspace, *, turned: bool) -> Blocks:
        """Read blocks of rows in order, of the transpose if `turned`."""
        pieces, shape = self._entries(), self.shape
        if turned:
            pieces, shape = (piece.transpose() for piece in pieces), (shape[1], shape[0])
        try:
            yield from sort_by_rows(pieces, shape, workspace)
        except DuplicateError as found:
            place = (found.column, found.row) if turned else (found.row, found.column)
            raise self._repetition(*islice(self._at(*place), 2)) from None

    def remarks(self) -> tuple[str, ...]:
        """Whether the text stopped within a line."""
        if not self._unfinished:
            return ()
        return (
            f"The last line of {self.head.path.name} does not end: if the file was cut there, "
            "digits of its last count are missing.",
        )

    def _parts(self) -> Iterator[NDArray[Any]]:
        """Read the checked fields of all lines, block after block."""
        head, found = self.head, 0
        with Lines(head.path) as lines:
            for _ in range(head.line):
                lines.one()
            while block := lines.block():
                part = _parsed(block, lines.number - len(block) + 1, head)
                found += len(part)
                if found > head.entries:
                    raise ReadError(
                        f"{head.path}, line {head.line}, promises {head.entries} counts and has "
                        f"more, from line {_line_of(head, head.entries)} on: the head is wrong, or "
                        "two files were joined."
                    )
                yield part
            self._unfinished = lines.unfinished
            if found != head.entries:
                raise ReadError(
                    f"{head.path}, line {head.line}, promises {head.entries} counts and has "
                    f"{found} up to its end at line {lines.number}: the file is torn, or the head "
                    "is wrong."
                )
        if "row" in head.fields:
            plausible(f"{head.path}, line {head.line},", head.shape, found)

    def _entries(self) -> Iterator[Entries]:
        """All entries of the matrix, counted from 0, block after block."""
        head, done = self.head, 0
        for part in self._parts():
            values = head.values(part)
            if "row" in head.fields:
                yield _mirrored(head, Entries(part["row"] - 1, part["column"] - 1, values))
            else:  # all counts, column after column
                (at,) = np.nonzero(values)
                columns, rows = np.divmod(at + done, head.shape[0])
                yield Entries(rows.astype(np.int32), columns.astype(np.int32), values[at])
            done += len(part)

    def _at(self, row: int, column: int) -> Iterator[int]:
        """Numbers of the entries at a place, which a symmetric matrix has on both sides."""
        done = 0
        for part in self._parts():
            rows, columns = part["row"] - 1, part["column"] - 1
            there = (rows == row) & (columns == column)
            if self.head.symmetric:
                there |= (rows == column) & (columns == row)
            yield from (np.flatnonzero(there) + done).tolist()
            done += len(part)

    def _repetition(self, first: int, second: int) -> ReadError:
        earlier, later = _line_of(self.head, first), _line_of(self.head, second)
        return ReadError(
            f"{self.head.path}, line {later}, has the same row and column as line {earlier}: add "
            "up the two counts, or drop one."
        )


def open_coordinates(path: Path) -> Coordinates:
    """Open a Matrix Market file as it is written; names are the business of what lies beside it."""
    with Lines(path) as lines:
        return Coordinates(market_head(lines))


def open_docword(path: Path) -> Stream:
    """Open a bag of words: lines D, W and NNZ, then `document word count`, counted from 1.

    Beside ``docword.name.txt`` the lines of ``vocab.name.txt`` are the words.
    """
    with Lines(path) as lines:
        source = Coordinates(bag_head(lines))
    name = path.name.removesuffix(".gz")
    vocabulary = path.with_name(name.replace("docword", "vocab", 1))
    if vocabulary.name == name or not vocabulary.is_file():
        return Stream(source)
    names = lines_of(vocabulary)
    words = source.shape[1]
    if len(names) != words:
        raise ReadError(f"{vocabulary} has {len(names)} words, but {path} has {words} columns.")
    return Stream(source, features=tuple(names))


def read_docword(path: Path) -> Table:
    """Read a bag of words whole."""
    return open_docword(path).table()


def is_docword(path: Path) -> bool:
    """Whether a text is named or begins as a bag of words does: with three lines of one number."""
    if path.name.startswith("docword"):
        return True
    with Lines(path) as lines:
        first = [lines.one() for _ in range(3)]
    return all(line is not None and line.strip().isdigit() for line in first)


# ---- lines ---------------------------------------------------------------------------------------


def _mirrored(head: Head, entries: Entries) -> Entries:
    """Add the mirror image, if only one half of the matrix is written."""
    if not head.symmetric:
        return entries
    off = entries.rows != entries.columns
    pairs = zip(entries, entries.transpose(), strict=True)
    return Entries(*(np.append(part, other[off]) for part, other in pairs))


def _parsed(block: list[bytes], first: int, head: Head) -> NDArray[Any]:
    """Numbers of a block whose first line has the given number."""
    if not any(line.strip() for line in block):
        return np.empty(0, head.dtype)
    try:
        part = np.loadtxt(block, head.dtype, comments=None, ndmin=1, encoding="latin-1")
        if _in_range(part, head):
            return part
    except ValueError:
        pass  # the search below says which line it is
    for number, line in enumerate(block, first):
        problem = head.complaint(line.decode("latin-1")) if line.strip() else None
        if problem:
            raise ReadError(
                f"{head.path}, line {number}: {problem}; this is no {head.kind}, or it is damaged."
            )
    last = first + len(block) - 1
    raise ReadError(f"{head.path}, lines {first} to {last}, hold a number that is too large.")


def _in_range(part: NDArray[Any], head: Head) -> bool:
    least = {"row": 1, "column": 1, "value": 0}
    most = {"row": head.shape[0], "column": head.shape[1], "value": np.finfo(float).max}
    return all(
        least[name] <= part[name].min() and part[name].max() <= most[name] for name in head.fields
    )


# ---- where ---------------------------------------------------------------------------------------


def _line_of(head: Head, entry: int) -> int:
    """Read the file again for the number of the line that holds an entry."""
    return next(islice(_filled(head), entry, None))


def _filled(head: Head) -> Iterator[int]:
    """Yield the numbers of the lines below the head that are not empty."""
    with Lines(head.path) as lines:
        while block := lines.block():
            for number, line in enumerate(block, lines.number - len(block) + 1):
                if number > head.line and line.strip():
                    yield number
