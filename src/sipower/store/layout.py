# SPDX-License-Identifier: BSD-3-Clause
"""The files of a store and the content of its store.json, both validated on opening.

==================  ============================================================================
store.json          shape, nonzeros, total, working type, fingerprint; written last
names.json          names of the samples and features and ids of these, where the data have them
rows/indptr.npy     int64: where the entries of each row begin
rows/indices.npy    int32: columns, strictly increasing in a row
rows/values.npy     uint8, uint16, float32 or float64: finite and positive
rows/mass.npy       float64: sums of the rows
columns/            the same for the transpose, or only mass.npy
==================  ============================================================================
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from sys import float_info
from typing import Any

import numpy as np

from sipower._files import check_regular, read_header
from sipower.data.formats import STORE, NewerFormatError
from sipower.kernels import Array

SIDES = ("rows", "columns")
CONTENT = ("store.json", "names.json", *SIDES)
# Each of these types holds every number of the types before it.
VALUE_TYPES = tuple(np.dtype(kind) for kind in ("u1", "<u2", "<f4", "<f8"))
PARTS: dict[str, tuple[np.dtype[Any], ...]] = {
    "indptr": (np.dtype("<i8"),),
    "indices": (np.dtype("<i4"),),
    "values": VALUE_TYPES,
    "mass": (np.dtype("<f8"),),
}
Names = tuple[str, ...]
_READ_AT_ONCE = 1 << 30  # bytes; macOS refuses to read 2 GB or more at once
_CHECKED_AT_ONCE = 1 << 20  # entries; limits the memory of the comparisons


class DamagedStoreError(ValueError):
    """An error for a store that is damaged, incomplete or of another version."""


class OpenArray:
    """An array in a .npy file that stays open; several threads and processes may read it."""

    def __init__(self, path: Path, length: int, dtypes: Sequence[np.dtype[Any]]) -> None:
        self.path, self.length, self.lock = path, length, threading.Lock()
        check_regular(path)
        self.file = path.open("rb", buffering=0)
        shape, _, self.dtype = read_header(self.file)
        self.offset = self.file.tell()
        size = self.offset + length * self.dtype.itemsize
        if shape != (length,) or self.dtype not in dtypes or path.stat().st_size != size:
            raise ValueError(f"{path} does not hold {length} numbers.")

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

    def read(self, first: int, array: Array) -> None:
        """Fill an array with the numbers from position `first` on."""
        view, at = array.view(np.uint8).data, self.offset + first * self.dtype.itemsize
        while len(view):
            count = self._read(view[:_READ_AT_ONCE], at)
            if not count:
                raise ValueError(f"{self.path} has become shorter: convert the data again.")
            view, at = view[count:], at + count

    def _read(self, view: memoryview, at: int) -> int:
        if hasattr(os, "preadv"):  # does not move the file position, which forked processes share
            return os.preadv(self.file.fileno(), [view], at)
        with self.lock:
            self.file.seek(at)
            return self.file.readinto(view) or 0


@dataclass(frozen=True)
class Layout:
    """The content of store.json.

    Parameters
    ----------
    path
        Folder of the store.
    shape
        Numbers of rows (samples) and of columns (features).
    nonzeros, total
        Number of nonzeros, and their sum.
    dtype
        Working type for the data, "float32" or "float64".
    sha256
        Fingerprint of the data.
    smallest, largest
        Smallest and largest nonzero; 0 if there are none.
    orientations
        ("rows", "columns"), or ("rows",) if only the rows are stored.
    """

    path: Path
    shape: tuple[int, int]
    nonzeros: int
    total: float
    dtype: str
    sha256: str
    smallest: float
    largest: float
    orientations: tuple[str, ...]

    def open(self, side: str, name: str) -> OpenArray:
        """Open one of the arrays: `side` is "rows" or "columns", `name` is a key of `PARTS`."""
        items = self.shape[SIDES.index(side)]
        length = {"indptr": items + 1, "mass": items}.get(name, self.nonzeros)
        try:
            return OpenArray(self.path / side / f"{name}.npy", length, PARTS[name])
        except (OSError, ValueError):
            raise _damage(self.path, f"{side}/{name}.npy does not hold {length} numbers") from None


def is_store(path: str | PathLike[str]) -> bool:
    """Return whether `path` is a complete store: it has store.json, which is written last.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from sipower.store import is_store, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(np.eye(2, 3), f"{folder}/tiny.sipower")
    ...     is_store(f"{folder}/tiny.sipower"), is_store(folder)
    (True, False)
    """
    return (Path(path) / "store.json").is_file()


def read_layout(path: str | PathLike[str]) -> Layout:
    """Read store.json and check that every array of the store exists and is complete.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from sipower.store import read_layout, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_store(np.eye(2, 3), f"{folder}/tiny.sipower")
    ...     layout = read_layout(f"{folder}/tiny.sipower")
    >>> layout.shape, layout.nonzeros, layout.total
    ((2, 3), 2, 2.0)
    """
    folder = Path(path)
    if not is_store(folder):
        raise DamagedStoreError(
            f"{folder} is not a store of sipower: it has no store.json; create a store with "
            "sipower convert."
        )
    facts = _read_json(folder, "store.json")
    try:
        STORE.check(facts, folder)
    except NewerFormatError as newer:
        raise DamagedStoreError(str(newer)) from None
    except ValueError as damage:
        raise _damage(folder, str(damage)) from None
    for key, is_valid in _CHECKS.items():
        if key not in facts or not is_valid(facts[key]):
            problem = f"is {facts[key]!r:.60}" if key in facts else "is missing"
            raise _damage(folder, f"{key} of store.json {problem}")
    fields: dict[str, Any] = {key: facts[key] for key in _CHECKS}
    fields |= {key: tuple(fields[key]) for key in ("shape", "orientations")}
    layout = Layout(folder, **fields)
    for side in SIDES:
        for name in PARTS if side in layout.orientations else ("mass",):
            layout.open(side, name)
    return layout


def write_layout(layout: Layout, names: Mapping[str, Sequence[str] | None]) -> None:
    """Write names.json, with names of samples and features and ids of these, and store.json."""
    texts = {
        side: None if values is None else list(map(str, values)) for side, values in names.items()
    }
    (layout.path / "names.json").write_text(json.dumps(texts), encoding="utf-8")
    facts = {**STORE.stamp(), **asdict(layout)}
    del facts["path"]
    text = json.dumps(facts, indent=2, allow_nan=False) + "\n"
    (layout.path / "store.json").write_text(text, encoding="utf-8")


def read_names(layout: Layout) -> tuple[Names | None, Names | None]:
    """Read the names of the samples and of the features; None where the store has none."""
    samples, features = layout.shape
    return _read_list(layout, "samples", samples), _read_list(layout, "features", features)


def read_feature_ids(layout: Layout) -> Names | None:
    """Read the ids of the features, or return None if the store has none."""
    return _read_list(layout, "feature_ids", layout.shape[1])


def _read_list(layout: Layout, kind: str, size: int) -> Names | None:
    values = _read_json(layout.path, "names.json").get(kind)
    if values is not None and not (isinstance(values, list) and len(values) == size):
        raise _damage(layout.path, f"names.json does not name {size} {kind}")
    return None if values is None else tuple(map(str, values))


# ---- checks --------------------------------------------------------------------------------------


def check_entries(indptr: Array, indices: Array, values: Array) -> None:
    """Raise ValueError unless values are positive and finite and columns increase in each row."""
    for first in range(0, len(indices), _CHECKED_AT_ONCE):
        part = values[first : first + _CHECKED_AT_ONCE]
        if not (part.min() > 0 and part.max() < np.inf):
            raise ValueError("a value is not positive and finite")
        columns = indices[max(first - 1, 0) : first + _CHECKED_AT_ONCE]
        falls = max(first, 1) + np.flatnonzero(columns[1:] <= columns[:-1])
        if not (indptr[np.searchsorted(indptr, falls)] == falls).all():
            raise ValueError("the columns of a row are not in order")


def _damage(folder: Path, what: str) -> DamagedStoreError:
    return DamagedStoreError(f"The store {folder} is damaged: {what}; convert the data again.")


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise _damage(folder, f"{name} cannot be read") from None
    if not isinstance(content, dict):
        raise _damage(folder, f"{name} is not a JSON object")
    return content


def _is_count(x: Any) -> bool:
    return type(x) is int and x >= 0


def _is_shape(x: Any) -> bool:
    return isinstance(x, list) and len(x) == 2 and all(_is_count(n) and 1 <= n < 2**31 for n in x)


def _is_number(x: Any) -> bool:
    # An integer of 400 digits cannot be converted to a float.
    return type(x) in (int, float) and 0 <= x <= float_info.max


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "shape": _is_shape,
    "nonzeros": _is_count,
    "total": _is_number,
    "dtype": lambda x: x in ("float32", "float64"),
    "sha256": lambda x: isinstance(x, str) and len(x) == 64,
    "smallest": _is_number,
    "largest": _is_number,
    "orientations": lambda x: x in (list(SIDES), ["rows"]),
}
