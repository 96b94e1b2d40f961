# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of NumPy (.npy) and sparse matrices of SciPy (.npz), checked before they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import Archive, DamagedError, read_array
from sipower.io.counts import Compressed, dense, numbers, plausible
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
    with _named(path), path.open("rb") as stream:
        return Table(dense(path, read_array(stream, path.stat().st_size)))


def read_npz(path: Path) -> Table:
    """Read a sparse matrix as `scipy.sparse.save_npz` writes it."""
    with _named(path), Archive(path) as archive:
        return Table(_sparse(path, archive))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say which file is damaged."""
    try:
        yield
    except DamagedError as problem:
        raise ReadError(f"{path} {problem}.") from None


def _sparse(path: Path, archive: Archive) -> Counts:
    if not {"format", "shape", "data"} <= set(archive):
        raise ReadError(
            f"{path} holds the arrays {shown(', '.join(sorted(archive)))}, expected a sparse "
            "matrix as scipy.sparse.save_npz writes it."
        )
    layout, shape = archive["format"], archive["shape"]
    word = _word(layout)
    if word not in _PARTS or not set(archive).issuperset(_PARTS[word]):
        raise ReadError(
            f"{path} holds a sparse matrix of the format {shown(word)!r} or a part of one: save it "
            "as CSR."
        )
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ReadError(f"{path} is damaged: the shape of its matrix is {shown(shape)}.")
    size = int(shape[0]), int(shape[1])
    data, first, second = (archive[name] for name in _PARTS[word])
    if any(part.ndim != 1 for part in (data, first, second)):
        raise ReadError(f"{path} is damaged: a part of its matrix is no list of numbers.")
    if word == "coo":
        return _from_coo(path, data, first, second, size)
    return Compressed(path, data, first, second, size, by_columns=word == "csc").counts()


def _word(array: NDArray[Any]) -> str:
    """Text of an array that holds nothing else."""
    found = array.item() if array.ndim == 0 else ""
    return found.decode("latin-1") if isinstance(found, bytes) else str(found)


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
