# SPDX-License-Identifier: BSD-3-Clause
"""Matrix Market files: SciPy reads the regular ones whole, all others are read line by line."""

from __future__ import annotations

from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io

from sipower.io.base import Counts, ReadError, shorten
from sipower.io.coordinates import FIELDS, Coordinates, narrow, read_size
from sipower.io.sources import check_shape
from sipower.io.text import Lines, open_text
from sipower.store.external_sort import Entries, csr_from_entries

__all__ = ["MatrixMarket", "open_matrix"]

_BANNER = "%%MatrixMarket"
_KIND = "Matrix Market file"
_CHUNK = 1 << 20
_SPACE, _LINE_FEED, _RETURN = 32, 10, 13


class MatrixMarket(Coordinates):
    """The entries of a Matrix Market file."""

    def counts(self) -> Counts:
        """Read all entries."""
        counts = self._read_by_scipy()
        return super().counts() if counts is None else counts

    def _read_by_scipy(self) -> Counts | None:
        """Read the file by SciPy, or return None if anything about it is irregular."""
        try:
            if not self._is_regular():
                return None
            stream: Any
            with open_text(self.path) as stream:
                # SciPy is fastest when given a path, but detects compression only by the ending of
                # the name.
                plain = isinstance(stream, BufferedReader)
                found: Any = io.mmread(self.path if plain else BufferedReader(stream, _CHUNK))
        except Exception:  # the lines, read one after another, show what is wrong
            return None
        if found.shape != self.shape:
            return None
        values = narrow(found if isinstance(found, np.ndarray) else found.data)
        if values.min(initial=0) < 0 or not values.max(initial=0) < np.inf:
            return None
        if isinstance(found, np.ndarray):
            return values
        check_shape(f"{self.path}, line {self.line},", self.shape, self.entries)
        values = values if "value" in self.fields else np.ones(len(values), np.int32)
        return csr_from_entries(Entries(found.row, found.col, values), self.shape)

    def _is_regular(self) -> bool:
        """Return whether there are as many lines as declared, of numbers between single spaces.

        SciPy ignores what follows the numbers of a line, reads 1.5 as 1 where integers are
        declared, and reads beyond its memory at a NUL or where the last line does not end.
        """
        digits = b"0123456789" if self.whole else b"0123456789.eE+-"
        spaces = lines = 0
        last = b""
        with open_text(self.path) as stream:
            for _ in range(self.line):
                if b"\0" in stream.readline():
                    return False
            while chunk := stream.read(_CHUNK):
                last = chunk[-1:]
                others = np.frombuffer(chunk.translate(None, digits), np.uint8)
                counts = [int(np.count_nonzero(others == c)) for c in (_SPACE, _LINE_FEED, _RETURN)]
                if sum(counts) != len(others):
                    return False
                spaces, lines = spaces + counts[0], lines + counts[1]
        separators = (len(self.fields) - 1) * self.entries
        return last == b"\n" and spaces == separators and lines == self.entries


def open_matrix(path: Path) -> MatrixMarket:
    """Read the head of a Matrix Market file."""
    with Lines(path) as lines:
        layout, kind, symmetry = _read_banner(lines)
        coordinate = layout == "coordinate"
        size = read_size(lines, 3 if coordinate else 2, _KIND, comments=True)
    shape = size[0], size[1]
    if symmetry == "symmetric" and shape[0] != shape[1]:
        raise ReadError(
            f"{path}, line {lines.number}: a symmetric matrix cannot be {shape[0]} x {shape[1]}."
        )
    return MatrixMarket(
        path,
        _KIND,
        FIELDS[:2] if kind == "pattern" else FIELDS if coordinate else FIELDS[2:],
        shape,
        entries=size[2] if coordinate else shape[0] * shape[1],
        line=lines.number,
        whole=kind.endswith("integer"),
        symmetric=symmetry == "symmetric",
    )


def _read_banner(lines: Lines) -> tuple[str, str, str]:
    """Return the layout, the kind of values and the symmetry that the first line announces."""
    first = (lines.one() or b"").decode("latin-1")
    words = first.split()
    if len(words) != 5 or words[0] != _BANNER or words[1].lower() != "matrix":
        raise ReadError(
            f"{lines.path}, line 1, is {shorten(first)!r}: a Matrix Market file begins with "
            f"'{_BANNER} matrix coordinate integer general' or the like."
        )
    layout, kind, symmetry = (word.lower() for word in words[2:])
    known = (
        layout in ("coordinate", "array")
        and kind in ("integer", "unsigned-integer", "real", "double", "pattern")
        and symmetry in ("general", "symmetric")
        and not (layout == "array" and (kind == "pattern" or symmetry != "general"))
    )
    if not known:
        kind = shorten(" ".join(words[2:]).lower())
        raise ReadError(
            f"{lines.path}, line 1, announces {kind!r}, which holds no counts that sipower reads: "
            "write the matrix as 'coordinate integer general'."
        )
    return layout, kind, symmetry
