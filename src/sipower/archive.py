# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in .npy files and archives of them (.npz), made sure of before memory is taken for them.

Nothing here unpickles. Where an archive lies about its sizes or is damaged, there is one error,
whose text goes behind the name of the file.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

__all__ = ["Archive", "DamagedError", "Head", "believable", "read_array", "read_head", "shown"]

# Memory that any file may ask for, and how far deflate can compress at most.
_SMALL = 1 << 28
_DEFLATE = 1032
_LONGEST_HEAD = 10_000
# Python 2 wrote an L behind a size. Space is what Python takes for it between brackets.
_SPACE = r"[ \t\n]*"
_FACTS = {
    "descr": r"'[<>|=]?[biufcSUVOmM]\d*(?:\[\w+\])?'",
    "fortran_order": r"True|False",
    "shape": rf"\({_SPACE}(?:(?:\d+L?{_SPACE},{_SPACE})+(?:\d+L?{_SPACE})?)?\)",
}
_FACT = re.compile(
    "|".join(f"'{name}'{_SPACE}:{_SPACE}(?P<{name}>{form})" for name, form in _FACTS.items()),
    re.ASCII,
)
_THREE = re.compile(
    f"{{{_SPACE}" + f"{_SPACE},{_SPACE}".join(["fact"] * 3) + f"{_SPACE},?{_SPACE}}}{_SPACE}"
)


class DamagedError(ValueError):
    """What is wrong with a file of arrays: "is damaged: ...", "holds ..."."""


class Head(NamedTuple):
    """What a .npy file says of the numbers below."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


class Archive(Mapping[str, NDArray[Any]]):
    """Arrays of an .npz file by name, each read and checked when it is asked for."""

    def __init__(self, path: str | PathLike[str]) -> None:
        with _sound(".npz file"):
            self._file = zipfile.ZipFile(path)
        self._size = Path(path).stat().st_size
        entries = (entry for entry in self._file.infolist() if entry.filename.endswith(".npy"))
        self._entries = {entry.filename.removesuffix(".npy"): entry for entry in entries}

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry = self._entries[name]
        if not believable(entry.file_size, self._size):
            raise DamagedError(
                f"promises {entry.file_size} bytes for the array {shown(name)} and stores "
                f"{self._size}: it is damaged, write it again"
            )
        with _sound(".npz file"), self._file.open(entry) as stream:
            return read_array(stream, entry.file_size)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def read_head(stream: IO[bytes]) -> Head:
    """Read the head of a .npy file.

    It is Python source, but of three facts in any order only: no parser of Python is needed, which
    would raise and warn of nearly anything where a head is damaged.
    """
    with _sound("NumPy array"):
        version = npy.read_magic(stream)
        size = int.from_bytes(stream.read(2 if version == (1, 0) else 4), "little")
        text = stream.read(min(size, _LONGEST_HEAD)).decode("latin-1")
        groups = [found.groupdict() for found in _FACT.finditer(text)]
        facts = {name: fact for group in groups for name, fact in group.items() if fact}
        if len(facts) < len(_FACTS) or not _THREE.fullmatch(_FACT.sub("fact", text)):
            raise ValueError(text)
        shape = tuple(map(int, re.findall(r"\d+", facts["shape"])))
        return Head(shape, facts["fortran_order"] == "True", np.dtype(facts["descr"].strip("'")))


def read_array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from a stream of so many bytes, which its head must agree with."""
    shape, by_columns, dtype = read_head(stream)
    if dtype.hasobject:
        raise DamagedError("holds Python objects, expected numbers")
    promised = math.prod(shape) * dtype.itemsize
    there = size - stream.tell()
    content = np.empty(promised if promised == there else 0, np.uint8)
    # Zip archives check their sums when read to the end, which a byte more than promised does.
    if promised != there or stream.readinto(content) != promised or stream.read(1):  # type: ignore[attr-defined]
        raise DamagedError(
            f"promises an array of {promised} bytes and has {there}: it is torn, or its head is "
            "wrong"
        )
    with _sound("NumPy array"):  # sizes below zero, or types of no size
        return content.view(dtype).reshape(shape, order="F" if by_columns else "C")


def believable(promised: int, stored: int) -> bool:
    """Whether stored bytes can be as many as they promise to become."""
    return promised <= max(_SMALL, _DEFLATE * stored)


def shown(what: object) -> str:
    """Short form of anything for a sentence: one line, at most 60 characters."""
    text = " ".join(str(what).split())
    if not text and isinstance(what, Exception):
        text = type(what).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"


@contextmanager
def _sound(kind: str) -> Iterator[None]:
    """Say what is damaged."""
    try:
        yield
    except (DamagedError, OSError, MemoryError):
        raise
    # Damage makes the libraries of packing raise nearly anything.
    except Exception as problem:
        raise DamagedError(f"is damaged or no {kind}: {shown(problem)}") from None
