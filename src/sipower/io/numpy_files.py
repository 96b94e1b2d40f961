# SPDX-License-Identifier: BSD-3-Clause
"""Readers of NumPy arrays (.npy, .npz) and SciPy sparse matrices (.npz)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sipower._files import check_regular, open_regular, quote, read_archive, read_array, shorten
from sipower.io.base import ReadError, report_damage
from sipower.io.sources import (
    Compressed,
    Dense,
    OpenCounts,
    check_shape,
    index_error,
    numbers,
    report_duplicates,
)
from sipower.store.external_sort import Entries, csr_from_entries

_COMPRESSED = ("data", "indices", "indptr")
_PARTS = {"csr": _COMPRESSED, "csc": _COMPRESSED, "coo": ("data", "row", "col")}
_NAMES = {"format", "shape"}.union(*_PARTS.values())


def open_npy(path: Path) -> OpenCounts:
    """Open an array that `numpy.save` wrote."""
    with open_regular(path) as stream, report_damage(path, "a NumPy array"):
        return OpenCounts(Dense(path, read_array(stream, path.stat().st_size)))


def open_npz(path: Path) -> OpenCounts:
    """Open a sparse matrix of `scipy.sparse.save_npz`, or the only array of `numpy.savez`."""
    check_regular(path)
    with report_damage(path, "an .npz file"):
        arrays = read_archive(path, _NAMES)
        if len(arrays) == 1:
            return OpenCounts(Dense(path, *read_archive(path).values()))
    if not {"format", "shape", "data"} <= set(arrays):
        raise ReadError(
            f"{path} holds the arrays {shorten(', '.join(sorted(arrays)) or 'none')}, expected a "
            "sparse matrix as scipy.sparse.save_npz writes it, or a single array: save the counts "
            "alone, with numpy.save for an .npy file."
        )
    layout, shape = _text(arrays["format"]), arrays["shape"]
    if layout not in _PARTS or not set(arrays).issuperset(_PARTS[layout]):
        raise ReadError(
            f"{path} holds a sparse matrix of the format {quote(layout)} that is incomplete or "
            "unsupported: save it as CSR."
        )
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ReadError(f"{path} is damaged: the shape of its matrix is {shorten(shape)}.")
    size = int(shape[0]), int(shape[1])
    parts = [arrays[name] for name in _PARTS[layout]]
    if layout == "coo":
        parts = _compress(path, parts, size)
    data, indices, starts = parts
    return OpenCounts(Compressed(path, data, indices, starts, size, by_columns=layout == "csc"))


def _text(array: NDArray[Any]) -> str:
    """Return the string in an array that contains a single string."""
    item = array.item() if array.ndim == 0 else ""
    return item.decode("latin-1") if isinstance(item, bytes) else str(item)


def _compress(path: Path, parts: list[NDArray[Any]], size: tuple[int, int]) -> list[NDArray[Any]]:
    """Convert COO arrays (values, rows, columns) to CSR arrays (values, columns, row starts)."""
    values, rows, columns = parts
    check_shape(path, size, values.size)
    for part, limit in ((rows, size[0]), (columns, size[1])):
        if part.ndim != 1 or part.shape != values.shape or part.dtype.kind not in "iu":
            raise ReadError(f"{path} is damaged: its rows, columns and values do not match.")
        if len(part) and not 0 <= part.min() <= part.max() < limit:
            raise index_error(path, size)
    with report_duplicates(path):
        matrix = csr_from_entries(Entries(rows, columns, numbers(path, values)), size)
    return [matrix.data, matrix.indices, matrix.indptr]
