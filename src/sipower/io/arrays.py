# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of NumPy (.npy) and sparse matrices of SciPy (.npz), checked before they are used."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sipower.io.counts import (
    Compressed,
    affordable,
    dense,
    numbers,
    plausible,
)
from sipower.io.table import Counts, ReadError, Table, shown
from sipower.store.buckets import Entries, from_coordinates, repeated

__all__ = ["read_npy", "read_npz"]

_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
}


def read_npy(path: Path) -> Table:
    """Read an array as `numpy.save` writes it."""
    with path.open("rb") as stream:
        return Table(dense(path, _array(path, stream, path.stat().st_size)))


def read_npz(path: Path) -> Table:
    """Read a sparse matrix as `scipy.sparse.save_npz` writes it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return Table(_sparse(path, archive))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as problem:
        raise ReadError(f"{path} is damaged or no .npz file: {shown(problem)}.") from None


def _sparse(path: Path, archive: zipfile.ZipFile) -> Counts:
    names = {name.removesuffix(".npy") for name in archive.namelist()}
    if not {"format", "shape", "data"} <= names:
        raise ReadError(
            f"{path} holds the arrays {shown(', '.join(sorted(names)))}, expected a sparse matrix "
            "as scipy.sparse.save_npz writes it."
        )
    layout = _member(path, archive, "format")
    word = shown(layout.astype(str)) if layout.ndim == 0 and layout.dtype.kind in "SU" else ""
    shape = _member(path, archive, "shape")
    if word not in _PARTS or not names.issuperset(_PARTS[word]):
        raise ReadError(
            f"{path} holds a sparse matrix of the format {word!r} or a part of one: save it as CSR."
        )
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ReadError(f"{path} is damaged: the shape of its matrix is {shown(shape)}.")
    size = int(shape[0]), int(shape[1])
    data, first, second = (_member(path, archive, name) for name in _PARTS[word])
    if any(part.ndim != 1 for part in (data, first, second)):
        raise ReadError(f"{path} is damaged: a part of its matrix is no list of numbers.")
    if word == "coo":
        return _from_coo(path, data, first, second, size)
    return Compressed(path, data, first, second, size, by_columns=word == "csc").counts()


def _from_coo(
    path: Path, data: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], size: tuple[int, int]
) -> Counts:
    plausible(path, size, len(data))
    if not len(data) == len(rows) == len(columns):
        raise ReadError(f"{path} is damaged: it has not as many rows and columns as values.")
    for part, limit in ((rows, size[0]), (columns, size[1])):
        if part.dtype.kind not in "iu" or (len(part) and not 0 <= part.min() <= part.max() < limit):
            raise ReadError(f"{path} is damaged: an index lies outside {size[0]} x {size[1]}.")
    rows, columns = rows.astype(np.int32), columns.astype(np.int32)
    values = dense(path, numbers(path, data).reshape(1, -1))[0]
    matrix = from_coordinates(Entries(rows, columns, values), size)
    if matrix is None:
        again = repeated(rows, columns)[1]
        raise ReadError(
            f"{path} holds two counts for row {rows[again] + 1}, column {columns[again] + 1}: add "
            "them up before saving."
        )
    return matrix


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    entry = archive.getinfo(f"{name}.npy")
    affordable(f"{path}, array {name},", entry.file_size, path.stat().st_size)
    with archive.open(entry) as stream:
        return _array(path, stream, entry.file_size)


def _array(path: Path, stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from a stream of so many bytes, which its head must agree with."""
    try:
        version = npy.read_magic(stream)
        head = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = head(stream)
    # A damaged head, which is Python source, makes Python's own parser raise nearly anything.
    except Exception as problem:
        raise ReadError(f"{path} is damaged or no NumPy array: {shown(problem)}.") from None
    if dtype.hasobject:
        raise ReadError(f"{path} holds Python objects, expected numbers.")
    promised = math.prod(shape) * dtype.itemsize
    there = size - stream.tell()
    content = np.empty(promised if promised == there else 0, np.uint8)
    # Zip archives check their sums when read to the end, which a byte more than promised does.
    if promised != there or stream.readinto(content) != promised or stream.read(1):  # type: ignore[attr-defined]
        raise ReadError(
            f"{path} promises an array of {promised} bytes and has {there}: it is torn, or its "
            "head is wrong."
        )
    return content.view(dtype).reshape(shape, order="F" if by_columns else "C")
