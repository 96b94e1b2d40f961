# SPDX-License-Identifier: BSD-3-Clause
"""Texts with one entry to a line: Matrix Market files and UCI's bags of words, read in blocks.

Memory grows with the entries that are there, never with those that the head of a file promises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.io.counts import from_coordinates, narrow, plausible, repeated
from sipower.io.table import Counts, ReadError, Table, shown
from sipower.io.text import Lines, complaint, lines_of

__all__ = ["is_docword", "read_coordinates", "read_docword"]

_BANNER = "%%MatrixMarket"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_BAG = "bag of words of UCI's format"
_MARKET = "Matrix Market file"
_FIELDS = ("row", "column", "value")


@dataclass(frozen=True)
class Head:
    """What the head of a file promises of its lines.

    Each line holds `fields`, some of row, column and value; `whole` says that values are integers,
    `line` where the size stands.
    """

    path: Path
    kind: str
    fields: tuple[str, ...]
    shape: tuple[int, int]
    entries: int
    line: int
    whole: bool = True
    symmetric: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Types of the fields."""
        value = np.int64 if self.whole else np.float64
        return np.dtype([(name, value if name == "value" else np.int32) for name in self.fields])

    def complaint(self, line: str) -> str | None:
        """What is wrong with a line, if anything is."""
        texts = line.split()
        if len(texts) != len(self.fields):
            fields = ", ".join(self.fields)
            return f"{len(texts)} numbers in a line, expected {len(self.fields)} ({fields})"
        cells = dict(zip(self.fields, texts, strict=True))
        for name, size in zip(("row", "column"), self.shape, strict=True):
            text = cells.get(name, "1")
            if not _INTEGER.fullmatch(text):
                return f"the {name} {shown(text)!r} is no whole number"
            if not 1 <= int(text) <= size:
                return f"the {name} {text} lies outside {self.shape[0]} x {self.shape[1]}"
        value = cells.get("value", "1")
        if complaint(value) is None and self.whole and not _INTEGER.fullmatch(value):
            return f"{shown(value)!r} is no whole number of at most 18 digits"
        return complaint(value)


def read_coordinates(path: Path) -> Table:
    """Read a Matrix Market file as it is written; names are the business of what lies beside it."""
    with Lines(path) as lines:
        head = _matrix_market_head(lines)
        return Table(_counts(lines, head), remarks=_remarks(lines))


def read_docword(path: Path) -> Table:
    """Read a bag of words: lines D, W and NNZ, then `document word count`, counted from 1.

    Beside ``docword.name.txt`` the lines of ``vocab.name.txt`` are the words.
    """
    with Lines(path) as lines:
        documents, words, entries = (_size(lines, 1, _BAG)[0] for _ in range(3))
        head = Head(path, _BAG, _FIELDS, (documents, words), entries, line=3)
        counts = _counts(lines, head)
        remarks = _remarks(lines)
    name = path.name.removesuffix(".gz")
    vocabulary = path.with_name(name.replace("docword", "vocab", 1))
    if vocabulary.name == name or not vocabulary.is_file():
        return Table(counts, remarks=remarks)
    names = lines_of(vocabulary)
    if len(names) != words:
        raise ReadError(f"{vocabulary} has {len(names)} words, but {path} has {words} columns.")
    return Table(counts, features=tuple(names), remarks=remarks)


def is_docword(path: Path) -> bool:
    """Whether a text is named or begins as a bag of words does: with three lines of one number."""
    if path.name.startswith("docword"):
        return True
    with Lines(path) as lines:
        first = [lines.one() for _ in range(3)]
    return all(line is not None and line.strip().isdigit() for line in first)


# ---- heads ---------------------------------------------------------------------------------------


def _matrix_market_head(lines: Lines) -> Head:
    first = (lines.one() or b"").decode("latin-1")
    words = first.split()
    if len(words) != 5 or words[0] != _BANNER or words[1].lower() != "matrix":
        raise ReadError(
            f"{lines.path}, line 1, is {shown(first)!r}: a Matrix Market file begins with "
            f"'{_BANNER} matrix coordinate integer general' or the like."
        )
    _, _, layout, kind, symmetry = (word.lower() for word in words)
    known = (
        layout in ("coordinate", "array")
        and kind in ("integer", "unsigned-integer", "real", "double", "pattern")
        and symmetry in ("general", "symmetric")
        and not (layout == "array" and (kind == "pattern" or symmetry != "general"))
    )
    if not known:
        raise ReadError(
            f"{lines.path}, line 1, announces '{layout} {kind} {symmetry}', which holds no counts "
            "that sipower reads: write the matrix as 'coordinate integer general'."
        )
    coordinate = layout == "coordinate"
    size = _size(lines, 3 if coordinate else 2, _MARKET, comments=True)
    shape = size[0], size[1]
    if symmetry == "symmetric" and shape[0] != shape[1]:
        raise ReadError(
            f"{lines.path}, line {lines.number}: a symmetric matrix cannot be {shape[0]} x "
            f"{shape[1]}."
        )
    return Head(
        lines.path,
        _MARKET,
        _FIELDS[:2] if kind == "pattern" else _FIELDS if coordinate else _FIELDS[2:],
        shape,
        entries=size[2] if coordinate else shape[0] * shape[1],
        line=lines.number,
        whole=kind.endswith("integer"),
        symmetric=symmetry == "symmetric",
    )


def _size(lines: Lines, count: int, kind: str, *, comments: bool = False) -> list[int]:
    """Read the line of so many whole numbers that says how large the matrix is."""
    line = lines.one()
    while comments and line is not None and (line.startswith(b"%") or not line.strip()):
        line = lines.one()
    texts = (line or b"").split()
    if len(texts) != count or not all(text.isdigit() and len(text) < 19 for text in texts):
        said = "the end of the file" if line is None else repr(shown(line.decode("latin-1")))
        raise ReadError(
            f"{lines.path}, line {max(lines.number, 1)}, is {said}, expected {count} whole "
            f"number{'s' if count > 1 else ''} for the size: this is no {kind}."
        )
    return [int(text) for text in texts]


# ---- lines ---------------------------------------------------------------------------------------


def _counts(lines: Lines, head: Head) -> Counts:
    positions, values = _entries(lines, head)
    if positions is None:
        return values.reshape(head.shape, order="F")
    plausible(f"{head.path}, line {head.line},", head.shape, len(values))
    rows, columns = places = positions
    if head.symmetric:  # half of the matrix is written, the other half is its mirror image
        places = np.maximum(rows, columns), np.minimum(rows, columns)
        off = rows != columns
        rows, columns = np.append(rows, columns[off]), np.append(columns, rows[off])
        values = np.append(values, values[off])
    matrix = from_coordinates(values, rows, columns, head.shape)
    if matrix is None:
        first, second = (_line_of(head, entry) for entry in repeated(*places))
        raise ReadError(
            f"{head.path}, line {second}, has the same row and column as line {first}: add up the "
            "two counts, or drop one."
        )
    return matrix


def _entries(
    lines: Lines, head: Head
) -> tuple[tuple[NDArray[Any], NDArray[Any]] | None, NDArray[Any]]:
    """Positions counted from 0, if lines have them, and values."""
    parts = [np.empty(0, head.dtype)]
    found = 0
    while block := lines.block():
        parts.append(_parsed(block, lines.number - len(block) + 1, head))
        found += len(parts[-1])
        if found > head.entries:
            raise ReadError(
                f"{head.path}, line {head.line}, promises {head.entries} counts and has more, from "
                f"line {_line_of(head, head.entries)} on: the head is wrong, or two files were "
                "joined."
            )
    if found != head.entries:
        raise ReadError(
            f"{head.path}, line {head.line}, promises {head.entries} counts and has {found} up to "
            f"its end at line {lines.number}: the file is torn, or the head is wrong."
        )
    whole = np.concatenate(parts)
    values = whole["value"] if "value" in head.fields else np.ones(found, np.int64)
    positions = (whole["row"] - 1, whole["column"] - 1) if "row" in head.fields else None
    return positions, narrow(np.ascontiguousarray(values))


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


def _remarks(lines: Lines) -> tuple[str, ...]:
    if not lines.unfinished:
        return ()
    return (
        f"The last line of {lines.path.name} does not end: if the file was cut there, digits of "
        "its last count are missing.",
    )
