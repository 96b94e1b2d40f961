# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of NumPy (.npy) and sparse matrices of SciPy (.npz)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sipower._files import Archive, DamagedError, read_array
from sipower.io.base import ReadError, shorten
from sipower.io.sources import (
    Compressed,
    Dense,
    OpenCounts,
    Source,
    check_shape,
    duplicate_entry,
    sparse_source,
)
from sipower.store.external_sort import Entries, first_duplicate

__all__ = ["open_npy", "open_npz"]

_COMPRESSED = ("data", "indices", "indptr")
_PARTS = {"csr": _COMPRESSED, "csc": _COMPRESSED, "coo": ("data", "row", "col")}


def open_npy(path: Path) -> OpenCounts:
    """Open an array as `numpy.save` writes it."""
    with _report_damage(path), path.open("rb") as stream:
        return OpenCounts(Dense(path, read_array(stream, path.stat().st_size)))


def open_npz(path: Path) -> OpenCounts:
    """Open a sparse matrix as `scipy.sparse.save_npz` writes it."""
    with _report_damage(path), Archive(path) as archive:
        return OpenCounts(_open_sparse(path, archive))


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    """Name the file that is damaged."""
    try:
        yield
    except DamagedError as problem:
        raise ReadError(f"{path} {problem}.") from None


def _open_sparse(path: Path, archive: Archive) -> Source:
    if not {"format", "shape", "data"} <= set(archive):
        raise ReadError(
            f"{path} holds the arrays {shorten(', '.join(sorted(archive)))}, expected a sparse "
            "matrix as scipy.sparse.save_npz writes it."
        )
    layout, shape = _text(archive["format"]), archive["shape"]
    if layout not in _PARTS or not set(archive).issuperset(_PARTS[layout]):
        raise ReadError(
            f"{path} holds a sparse matrix of the format {shorten(layout)!r}, or parts of one: "
            "save it as CSR."
        )
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ReadError(f"{path} is damaged: the shape of its matrix is {shorten(shape)}.")
    size = int(shape[0]), int(shape[1])
    parts = [archive[name] for name in _PARTS[layout]]
    if any(part.ndim != 1 for part in parts):
        raise ReadError(f"{path} is damaged: a part of its matrix is not a list of numbers.")
    if layout == "coo":
        return _from_coordinates(path, Entries(parts[1], parts[2], parts[0]), size)
    return Compressed(path, parts[0], parts[1], parts[2], size, by_columns=layout == "csc")


def _text(array: NDArray[Any]) -> str:
    """Return the text in an array that holds a single text."""
    found = array.item() if array.ndim == 0 else ""
    return found.decode("latin-1") if isinstance(found, bytes) else str(found)


def _from_coordinates(path: Path, entries: Entries, size: tuple[int, int]) -> Source:
    rows, columns, values = entries
    check_shape(path, size, len(values))
    if not len(values) == len(rows) == len(columns):
        raise ReadError(f"{path} is damaged: the numbers of its rows, columns and values differ.")
    for part, limit in ((rows, size[0]), (columns, size[1])):
        if part.dtype.kind not in "iu" or (len(part) and not 0 <= part.min() <= part.max() < limit):
            raise ReadError(f"{path} is damaged: an index is outside {size[0]} x {size[1]}.")
    source = sparse_source(path, entries, size)
    if source is None:
        at = first_duplicate(rows, columns)[1]
        raise duplicate_entry(path, rows[at], columns[at])
    return source
