# SPDX-License-Identifier: BSD-3-Clause
"""Matrix Market files. SciPy reads the regular ones; all others are read line by line."""

from __future__ import annotations

from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io

from sipower._files import shorten
from sipower.io.base import Counts, ReadError
from sipower.io.coordinates import FIELDS, Coordinates, narrow, read_size
from sipower.io.sources import check_shape
from sipower.io.text import Lines, open_text
from sipower.store.external_sort import Entries, csr_from_entries

_BANNER = "%%MatrixMarket"
_KIND = "Matrix Market file"
_CHUNK = 1 << 18  # bytes; few enough for the processor's cache
_ZERO, _NINE = b"09"


class MatrixMarket(Coordinates):
    """The entries of a Matrix Market file."""

    def counts(self) -> Counts:
        """Read all entries."""
        with suppress(Exception):  # reading line by line then finds the problem
            if self._is_regular():
                return self._read_by_scipy()
        return super().counts()

    def _read_by_scipy(self) -> Counts:
        """Read the file with SciPy; any error means that the file is not regular."""
        check_shape(self.path, self.shape, self.entries)
        stream: Any
        with open_text(self.path) as stream:
            # SciPy is fastest when given a path, but detects compression only by the ending of the
            # name.
            plain = isinstance(stream, BufferedReader)
            source = self.path if plain else BufferedReader(stream, 4 * _CHUNK)
            matrix: Any = io.mmread(source, spmatrix=False)
        values = narrow(matrix if isinstance(matrix, np.ndarray) else matrix.data)
        if matrix.shape != self.shape or not 0 <= values.min() <= values.max() < np.inf:
            raise ValueError
        if isinstance(matrix, np.ndarray):
            return values
        values = values if "value" in self.fields else np.ones(len(values), np.int32)
        return csr_from_entries(Entries(matrix.row, matrix.col, values), self.shape)

    def _is_regular(self) -> bool:
        """Return whether each line holds only numbers, each followed by a single separator.

        SciPy ignores what follows the numbers of a line, reads 1.5 as 1 if integers are declared,
        and reads out of bounds at a NUL or if the last line has no newline. If the file has exactly
        one separator per expected number, and otherwise only digits, SciPy ignores nothing. The
        characters ".eE+-" are removed first unless the header declares integers.
        """
        separators, last = 0, b""
        with open_text(self.path) as stream:
            for _ in range(self.line):
                if b"\0" in stream.readline():
                    return False
            while chunk := stream.read(_CHUNK):
                last = chunk[-1:]
                text = chunk if self.whole else chunk.translate(None, b".eE+-")
                codes = np.frombuffer(text, np.uint8)
                if codes.min(initial=_NINE) == 0 or codes.max(initial=_ZERO) > _NINE:
                    return False
                separators += int(np.count_nonzero(codes < _ZERO))
        return last == b"\n" and separators == len(self.fields) * self.entries


def open_matrix(path: Path) -> MatrixMarket:
    """Read the header of a Matrix Market file."""
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
    """Return the layout, the kind of values and the symmetry that the first line declares."""
    first = (lines.one() or b"").decode("latin-1")
    words = first.split()
    if len(words) != 5 or words[0] != _BANNER or words[1].lower() != "matrix":
        raise ReadError(
            f"{lines.path}, line 1, is {shorten(first)!r}: a Matrix Market file begins with "
            f"'{_BANNER} matrix coordinate integer general' or the like."
        )
    layout, kind, symmetry = (word.lower() for word in words[2:])
    is_supported = (
        layout in ("coordinate", "array")
        and kind in ("integer", "unsigned-integer", "real", "double", "pattern")
        and symmetry in ("general", "symmetric")
        and not (layout == "array" and (kind == "pattern" or symmetry != "general"))
    )
    if not is_supported:
        kind = shorten(" ".join(words[2:]).lower())
        raise ReadError(
            f"{lines.path}, line 1, declares {kind!r}, which sipower does not read: "
            "write the matrix as 'coordinate integer general'."
        )
    return layout, kind, symmetry
