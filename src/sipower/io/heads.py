# SPDX-License-Identifier: BSD-3-Clause
"""Heads of texts with one entry to a line, and what they promise of the lines below."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.io.table import ReadError, shown
from sipower.io.text import Lines, complaint

__all__ = ["Head", "bag_head", "market_head"]

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

    def values(self, part: NDArray[Any]) -> NDArray[Any]:
        """Values of parsed lines; an entry that has none is a 1."""
        return part["value"] if "value" in self.fields else np.ones(len(part), np.int64)

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


def market_head(lines: Lines) -> Head:
    """Read the head of a Matrix Market file."""
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
            f"{lines.path}, line 1, announces {shown(' '.join(words[2:]).lower())!r}, which holds "
            "no counts that sipower reads: write the matrix as 'coordinate integer general'."
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


def bag_head(lines: Lines) -> Head:
    """Read the head of a bag of words: three lines of one number, D, W and NNZ."""
    documents, words, entries = (_size(lines, 1, _BAG)[0] for _ in range(3))
    return Head(lines.path, _BAG, _FIELDS, (documents, words), entries, line=3)


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
