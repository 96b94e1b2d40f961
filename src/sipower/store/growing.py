# SPDX-License-Identifier: BSD-3-Clause
"""Lists of numbers in .npy files that grow, whose type widens when a number asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

__all__ = ["NumberFile"]

_HEAD = 128  # bytes of the head of a list of any length, as NumPy pads it
_PIECE = 1 << 16  # numbers copied at a time when a file is widened


class NumberFile:
    """A list of numbers on disk in the first of `types` that holds all of them exactly.

    Each type holds every number of those before it; numbers that even the last one does not hold
    are rounded to it, as a working type rounds them. The file is read and written at any place
    until it is closed, and is a .npy file from then on.
    """

    def __init__(self, path: Path, types: Sequence[np.dtype[Any]]) -> None:
        self.path, self.types, self.length = path, list(types), 0
        self._stream: BinaryIO = path.open("w+b")

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers so far."""
        return self.types[0]

    def append(self, numbers: NDArray[Any]) -> None:
        """Write numbers behind the last one."""
        types = self.types
        while len(types) > 1 and not _held(numbers, types[0]):
            types = types[1:]
        if types != self.types:
            self._widen(types)
        self.put(self.length, numbers)

    def put(self, start: int, numbers: NDArray[Any]) -> None:
        """Write numbers from a position on."""
        self._write(start, numbers, self.dtype)
        self.length = max(self.length, start + len(numbers))

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the numbers of a range."""
        numbers = np.empty(stop - start, self.dtype)
        self._stream.seek(_HEAD + start * self.dtype.itemsize)
        if self._stream.readinto(numbers.data) != numbers.nbytes:  # type: ignore[attr-defined]
            raise OSError(f"{self.path} has become shorter.")
        return numbers

    def close(self) -> None:
        """Write the head."""
        self._stream.seek(0)
        head = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self._stream, head)
        if self._stream.tell() != _HEAD:
            raise AssertionError("NumPy writes heads of another size.")
        self._stream.close()

    def abandon(self) -> None:
        """Close the file as it is, unless that is done."""
        self._stream.close()

    def _widen(self, types: list[np.dtype[Any]]) -> None:
        """Write all numbers again, the last ones first: none is overwritten before it is read."""
        for start in reversed(range(0, self.length, _PIECE)):
            numbers = self.read(start, min(start + _PIECE, self.length))
            self._write(start, numbers, types[0])
        self.types = types

    def _write(self, start: int, numbers: NDArray[Any], dtype: np.dtype[Any]) -> None:
        self._stream.seek(_HEAD + start * dtype.itemsize)
        self._stream.write(np.ascontiguousarray(numbers, dtype).data)


def _held(numbers: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether a type holds non-negative numbers exactly."""
    if numbers.dtype == dtype or numbers.size == 0:
        return True
    if dtype.kind == "u" and numbers.max() > np.iinfo(dtype).max:
        return False
    with np.errstate(over="ignore"):
        return bool((numbers.astype(dtype) == numbers).all())
