# SPDX-License-Identifier: BSD-3-Clause
"""Reading and checking of ranges of the arrays of a store."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import read_header
from sipower.kernels import Array

_CHECKED_AT_ONCE = 1 << 20  # terms: the comparisons take memory too


class OpenArray:
    """An array in a .npy file that stays open; several threads and processes may read it."""

    def __init__(self, path: Path, length: int, dtypes: Sequence[np.dtype[Any]]) -> None:
        self.path, self.length, self.lock = path, length, threading.Lock()
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
            count = self._read(view, at)
            if not count:
                raise ValueError(f"{self.path} has become shorter: convert the data again.")
            view, at = view[count:], at + count

    def _read(self, view: memoryview, at: int) -> int:
        if hasattr(os, "preadv"):  # leaves the position alone, which forked processes share
            return os.preadv(self.file.fileno(), [view], at)
        with self.lock:
            self.file.seek(at)
            return self.file.readinto(view) or 0


def check_terms(indptr: Array, indices: Array, values: Array) -> None:
    """Raise ValueError unless values are positive and finite and columns rise within a row."""
    for first in range(0, len(indices), _CHECKED_AT_ONCE):
        part = values[first : first + _CHECKED_AT_ONCE]
        if not (part.min() > 0 and part.max() < np.inf):
            raise ValueError("a value is not positive and finite")
        here = indices[max(first - 1, 0) : first + _CHECKED_AT_ONCE]
        falls = max(first, 1) + np.flatnonzero(here[1:] <= here[:-1])
        if not (indptr[np.searchsorted(indptr, falls)] == falls).all():
            raise ValueError("the columns of a row are not in order")
