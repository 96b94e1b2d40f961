# SPDX-License-Identifier: BSD-3-Clause
"""What lies in a store on disk, checked before anything relies on it.

==================  ============================================================================
store.json          shape, nonzeros, total, working type, fingerprint; written last
names.json          names of the samples and features, where the data have them
rows/indptr.npy     int64: where each row begins
rows/indices.npy    int32: columns, strictly increasing in a row
rows/values.npy     uint8, uint16, float32 or float64: finite and positive
rows/mass.npy       float64: sums of the rows
columns/            the same of the transpose, or mass.npy alone
==================  ============================================================================
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from sys import float_info
from typing import Any

import numpy as np

from sipower._files import read_header as read_head
from sipower._files import shorten as shown

__all__ = [
    "CONTENT",
    "FORMAT",
    "PARTS",
    "SIDES",
    "VALUE_TYPES",
    "Layout",
    "Names",
    "Part",
    "read_layout",
    "read_names",
    "write_layout",
    "write_names",
]

FORMAT = 1
SIDES = ("rows", "columns")
CONTENT = ("store.json", "names.json", *SIDES)
# Each of these types holds every number of those before it.
VALUE_TYPES: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(kind) for kind in ("u1", "<u2", "<f4", "<f8")
)
PARTS: dict[str, tuple[np.dtype[Any], ...]] = {
    "indptr": (np.dtype("<i8"),),
    "indices": (np.dtype("<i4"),),
    "values": VALUE_TYPES,
    "mass": (np.dtype("<f8"),),
}
Names = tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A list of numbers in a .npy file, which begins at a byte of it."""

    file: Path
    dtype: np.dtype[Any]
    length: int
    offset: int


@dataclass(frozen=True)
class Layout:
    """What store.json says of a store.

    Parameters
    ----------
    path
        Folder of the store.
    shape
        Rows (samples) and columns (features).
    nonzeros, total
        How many entries there are, and their sum.
    dtype
        Working type for these numbers, "float32" or "float64".
    sha256
        Fingerprint of the data.
    smallest, largest
        Of the entries; 0 where there are none.
    orientations
        ("rows", "columns"), or ("rows",) where only the rows are held.
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

    def part(self, side: str, name: str) -> Part:
        """One of the files: `side` is "rows" or "columns", `name` one of `PARTS`."""
        file = self.path / side / f"{name}.npy"
        items = self.shape[SIDES.index(side)]
        length = {"indptr": items + 1, "mass": items}.get(name, self.nonzeros)
        part = _part(file, self.path)
        fits = part.length == length and part.dtype in PARTS[name]
        if not fits or file.stat().st_size != part.offset + length * part.dtype.itemsize:
            raise _damaged(self.path, f"{side}/{name}.npy does not hold {length} numbers")
        return part


def read_layout(path: str | PathLike[str]) -> Layout:
    """Read store.json and check that every file it speaks of is there in its full size."""
    folder = Path(path)
    if not (folder / "store.json").is_file():
        raise ValueError(
            f"{folder} is no store of sipower: it has no store.json; make one with sipower convert."
        )
    layout = _checked(folder, _json(folder, "store.json"))
    for side in SIDES:
        for name in PARTS if side in layout.orientations else ("mass",):
            layout.part(side, name)
    return layout


def write_layout(layout: Layout) -> None:
    """Write store.json."""
    facts = {"format": FORMAT, **asdict(layout)}
    del facts["path"]
    text = json.dumps(facts, indent=2, allow_nan=False) + "\n"
    (layout.path / "store.json").write_text(text, encoding="utf-8")


def read_names(layout: Layout) -> tuple[Names | None, Names | None]:
    """Names of the samples and of the features, where the store has them."""
    found = _json(layout.path, "names.json")
    samples, features = (
        _names(layout.path, found.get(side), side, size)
        for side, size in zip(("samples", "features"), layout.shape, strict=True)
    )
    return samples, features


def write_names(folder: Path, samples: Names | None, features: Names | None) -> None:
    """Write names.json."""
    text = json.dumps({"samples": samples, "features": features})
    (folder / "names.json").write_text(text, encoding="utf-8")


# ---- checks --------------------------------------------------------------------------------------


def _damaged(folder: Path, what: str) -> ValueError:
    return ValueError(f"The store {folder} is damaged: {what}; convert the data again.")


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise _damaged(folder, f"{name} cannot be read") from None
    if not isinstance(found, dict):
        raise _damaged(folder, f"{name} holds no facts")
    return found


def _checked(folder: Path, facts: dict[str, Any]) -> Layout:
    if facts.get("format") != FORMAT:
        raise ValueError(
            f"The store {folder} is of format {shown(repr(facts.get('format')))}, this version "
            f"reads {FORMAT}: convert the data again."
        )
    right = {
        "shape": _sizes(facts.get("shape")),
        "nonzeros": _whole(facts.get("nonzeros")),
        "total": _number(facts.get("total")),
        "dtype": facts.get("dtype") in ("float32", "float64"),
        "sha256": isinstance(facts.get("sha256"), str) and len(facts["sha256"]) == 64,
        "smallest": _number(facts.get("smallest")),
        "largest": _number(facts.get("largest")),
        "orientations": facts.get("orientations") in (list(SIDES), ["rows"]),
    }
    for key, good in right.items():
        if not good:
            said = f"is {facts[key]!r:.60}" if key in facts else "is missing"
            raise _damaged(folder, f"{key} of store.json {said}")
    known: dict[str, Any] = {
        key: tuple(x) if isinstance(x := facts[key], list) else x for key in right
    }
    return Layout(folder, **known)


def _whole(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


def _sizes(x: Any) -> bool:
    return isinstance(x, list) and len(x) == 2 and all(_whole(n) and 1 <= n < 2**31 for n in x)


def _number(x: Any) -> bool:
    # A whole number of 400 digits is no float.
    return isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x <= float_info.max


def _part(file: Path, folder: Path) -> Part:
    try:
        with file.open("rb") as stream:
            head = read_head(stream)
            (length,) = head.shape
            return Part(file, head.dtype, length, stream.tell())
    except (OSError, ValueError):
        raise _damaged(folder, f"{file.parent.name}/{file.name} cannot be read") from None


def _names(folder: Path, found: Any, side: str, size: int) -> Names | None:
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != size:
        raise _damaged(folder, f"names.json does not name {size} {side}")
    return tuple(map(str, found))
