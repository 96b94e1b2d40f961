# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in .npy files and .npz archives, whose sizes are checked before memory is allocated.

NumPy reads the headers, never with pickle. A file that is damaged or lies about its sizes raises
one error, whose message follows the name of the file.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

__all__ = ["Archive", "DamagedError", "Header", "is_plausible_size", "read_array", "read_header",
           "shorten"]  # fmt: skip

ALWAYS_ALLOWED = 1 << 28  # bytes that a file of any size may declare
MAX_DEFLATE_RATIO = 1032
MAX_HEADER_SIZE = 2000  # bytes; 64 dimensions of 20 digits fit


class DamagedError(ValueError):
    """What is wrong with a file of arrays: "is damaged: ...", "holds ..."."""


class Header(NamedTuple):
    """Shape, order and type of the array in a .npy file."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]


class Archive(Mapping[str, NDArray[Any]]):
    """The arrays of an .npz file by name, each read when it is asked for."""

    def __init__(self, path: str | PathLike[str]) -> None:
        with _report_damage("an .npz file"):
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
        if not is_plausible_size(entry.file_size, self._size):
            raise DamagedError(
                f"declares {entry.file_size} bytes for the array {shorten(name)} and stores "
                f"{self._size}: it is damaged, write it again"
            )
        with _report_damage("an .npz file"), self._file.open(entry) as stream:
            return read_array(stream, entry.file_size)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def read_header(stream: IO[bytes]) -> Header:
    """Read the header of a .npy file."""
    # NumPy warns of headers that Python 2 wrote, Python of strange strings in damaged ones.
    with _report_damage("a NumPy array"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = npy.read_magic(stream) == (1, 0)
        read = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
        header = Header(*read(stream, max_header_size=MAX_HEADER_SIZE))
        if min(header.shape, default=0) < 0 or header.dtype.fields is not None:
            raise ValueError(f"its shape is {header.shape}, its type {header.dtype}")
        return header


def read_array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from a stream of `size` bytes, with which its header must agree."""
    shape, fortran_order, dtype = read_header(stream)
    if dtype.hasobject:
        raise DamagedError("holds Python objects, expected numbers")
    promised = math.prod(shape) * dtype.itemsize
    available = size - stream.tell()
    content = np.empty(promised if promised == available else 0, np.uint8)
    # Reading one byte beyond the end makes zipfile compare the checksum.
    if promised != available or stream.readinto(content) != promised or stream.read(1):  # type: ignore[attr-defined]
        raise DamagedError(
            f"declares {promised} bytes and has {available}: it is incomplete, or its header "
            "is wrong"
        )
    with _report_damage("a NumPy array"):  # types without a size
        return content.view(dtype).reshape(shape, order="F" if fortran_order else "C")


def is_plausible_size(promised: int, stored: int) -> bool:
    """Return whether `stored` bytes can decompress to the declared number of bytes."""
    return promised <= max(ALWAYS_ALLOWED, MAX_DEFLATE_RATIO * stored)


def shorten(value: object) -> str:
    """Return a value as text for a message: one line, at most 60 characters."""
    text = " ".join(str(value).split())
    if not text and isinstance(value, Exception):
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"


@contextmanager
def _report_damage(kind: str) -> Iterator[None]:
    """Raise `DamagedError` for anything that a damaged file makes its readers raise."""
    try:
        yield
    except (DamagedError, OSError, MemoryError):
        raise
    except Exception as error:
        raise DamagedError(f"is damaged or not {kind}: {shorten(error)}") from None
