# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on disk that grow, widen their dtype when needed, and become .npy files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

__all__ = ["AppendOnlyArray", "append_numbers", "read_numbers"]

_HEADER_BYTES = 128  # NumPy pads the header of every one-dimensional array to this size
_COPY_LENGTH = 1 << 16  # numbers copied at a time when an array is widened


def append_numbers(path: Path, numbers: NDArray[Any]) -> None:
    """Append the bytes of `numbers` to the file `path`."""
    with path.open("ab") as file:
        file.write(np.ascontiguousarray(numbers).view(np.uint8).data)


def read_numbers(
    path: Path, dtype: np.dtype[Any], start: int, stop: int, offset: int = 0
) -> NDArray[Any]:
    """Read the numbers `start` to `stop` − 1 of a file; number 0 begins at byte `offset`."""
    numbers = np.fromfile(path, dtype, stop - start, offset=offset + start * dtype.itemsize)
    if len(numbers) < stop - start:
        raise OSError(f"{path} has become shorter.")
    return numbers


class AppendOnlyArray:
    """A one-dimensional array on disk, in the first of `dtypes` that holds its numbers exactly.

    Each dtype holds every number of the dtypes before it. Numbers that even the last one cannot
    hold are rounded to it. The file is a .npy file once `finish` has written its header.
    """

    def __init__(self, path: Path, dtypes: Sequence[np.dtype[Any]]) -> None:
        self.path, self.dtypes, self.length = path, list(dtypes), 0
        path.write_bytes(bytes(_HEADER_BYTES))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the numbers appended so far."""
        return self.dtypes[0]

    def append(self, numbers: NDArray[Any]) -> None:
        """Append numbers, and widen the dtype first if it cannot hold them exactly."""
        while len(self.dtypes) > 1 and not _is_exact(numbers, self.dtype):
            self._widen()
        append_numbers(self.path, numbers.astype(self.dtype, copy=False))
        self.length += len(numbers)

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Read the numbers `start` to `stop` − 1; by default, read all numbers."""
        stop = self.length if stop is None else stop
        return read_numbers(self.path, self.dtype, start, stop, _HEADER_BYTES)

    def finish(self) -> None:
        """Write the header of the .npy file."""
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.length,)}
        with self.path.open("r+b") as file:
            npy.write_array_header_1_0(file, header)
            if file.tell() != _HEADER_BYTES:
                raise AssertionError("NumPy wrote a header of an unexpected size.")

    def _widen(self) -> None:
        """Copy all numbers to a file of the next dtype."""
        wider = AppendOnlyArray(self.path.with_suffix(".wider"), self.dtypes[1:])
        for start in range(0, self.length, _COPY_LENGTH):
            wider.append(self.read(start, min(start + _COPY_LENGTH, self.length)))
        wider.path.replace(self.path)
        self.dtypes = wider.dtypes


def _is_exact(numbers: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype can hold all of these non-negative numbers exactly."""
    if numbers.dtype == dtype or numbers.size == 0:
        return True
    if dtype.kind == "u" and numbers.max() > np.iinfo(dtype).max:
        return False
    with np.errstate(over="ignore"):
        return bool((numbers.astype(dtype) == numbers).all())
