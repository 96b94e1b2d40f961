# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on disk that grow, widen their dtype when needed, and become .npy files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

__all__ = ["AppendOnlyArray"]

_HEADER_BYTES = 128  # as NumPy pads the header of a one-dimensional array of any length
_COPY_LENGTH = 1 << 16  # numbers copied at a time when an array is widened


class AppendOnlyArray:
    """A one-dimensional array on disk, in the first of `dtypes` that holds its numbers exactly.

    Each dtype holds every number of those before it; numbers that even the last one does not hold
    are rounded to it. The file becomes a .npy file when the array is closed.
    """

    def __init__(self, path: Path, dtypes: Sequence[np.dtype[Any]]) -> None:
        self.path, self.dtypes, self.length = path, list(dtypes), 0
        self._file: BinaryIO = path.open("w+b")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the numbers so far."""
        return self.dtypes[0]

    def append(self, numbers: NDArray[Any]) -> None:
        """Write numbers after the last one."""
        while len(self.dtypes) > 1 and not _is_exact(numbers, self.dtype):
            self._widen()
        self.write(self.length, numbers)

    def write(self, start: int, numbers: NDArray[Any]) -> None:
        """Write numbers from a position on, in the dtype so far."""
        self._write(start, numbers, self.dtype)
        self.length = max(self.length, start + len(numbers))

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Read the numbers of a range, all of them by default."""
        numbers = np.empty((self.length if stop is None else stop) - start, self.dtype)
        self._file.seek(_HEADER_BYTES + start * self.dtype.itemsize)
        content = numbers.view(np.uint8).data
        if self._file.readinto(content) != numbers.nbytes:  # type: ignore[attr-defined]
            raise OSError(f"{self.path} has become shorter.")
        return numbers

    def pieces(self, size: int) -> Iterator[NDArray[Any]]:
        """Yield all numbers, `size` at a time."""
        for start in range(0, self.length, size):
            yield self.read(start, min(start + size, self.length))

    def finish(self) -> None:
        """Write the header and close the file."""
        self._file.seek(0)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self._file, header)
        if self._file.tell() != _HEADER_BYTES:
            raise AssertionError("NumPy writes headers of another size.")
        self._file.close()

    def close(self) -> None:
        """Close the file without writing a header."""
        self._file.close()

    def _widen(self) -> None:
        """Rewrite all numbers in the next dtype, the last ones first: none is lost that way."""
        for start in reversed(range(0, self.length, _COPY_LENGTH)):
            numbers = self.read(start, min(start + _COPY_LENGTH, self.length))
            self._write(start, numbers, self.dtypes[1])
        del self.dtypes[0]

    def _write(self, start: int, numbers: NDArray[Any], dtype: np.dtype[Any]) -> None:
        self._file.seek(_HEADER_BYTES + start * dtype.itemsize)
        self._file.write(np.ascontiguousarray(numbers, dtype).view(np.uint8).data)


def _is_exact(numbers: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype holds non-negative numbers exactly."""
    if numbers.dtype == dtype or numbers.size == 0:
        return True
    if dtype.kind == "u" and numbers.max() > np.iinfo(dtype).max:
        return False
    with np.errstate(over="ignore"):
        return bool((numbers.astype(dtype) == numbers).all())
