# SPDX-License-Identifier: BSD-3-Clause
"""Matrix Market files: the header; `Coordinates` reads the lines below it."""

from __future__ import annotations

from pathlib import Path

from sipower._files import quote, shorten
from sipower.io.base import ReadError
from sipower.io.coordinates import FIELDS, Coordinates, read_size
from sipower.io.text import Lines

_BANNER = "%%MatrixMarket"
_KIND = "Matrix Market file"


def open_matrix(path: Path) -> Coordinates:
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
    return Coordinates(
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
            f"{lines.path}, line 1, is {quote(first)}: a Matrix Market file begins with "
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
