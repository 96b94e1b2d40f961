# SPDX-License-Identifier: BSD-3-Clause
"""`Buffers`: two reusable areas of memory that windows of a store are read into."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import Window
from sipower.kernels import Array

INDEX = np.dtype(np.int32)


class LoadedWindow(NamedTuple):
    """A window of data, the number of the buffer that holds it, and a key that identifies it."""

    key: Any
    buffer: int
    window: Window


class Buffers:
    """Two reusable buffers that hold windows of the data.

    Parameters
    ----------
    limit
        Total size of both buffers in bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.Lock()
        self.shared: Any = None  # `SharedReads` while a group of fits uses the buffers
        self.weighting = threading.Lock()
        self.weighted: WeakValueDictionary[Any, Any] = WeakValueDictionary()  # weighted sources
        self.loaded: list[LoadedWindow | None] = [None, None]
        self._memory: list[NDArray[np.uint8] | None] = [None, None]
        self._last = 1

    def capacity(self, value_type: np.dtype[Any]) -> int:
        """Return the number of nonzeros that fit into one buffer."""
        return (self.limit // 2 - 8) // (INDEX.itemsize + value_type.itemsize)

    def claim(self, busy: int) -> int:
        """Return the number of the buffer to overwrite.

        `busy` is the number of the buffer in use. If it is −1, neither is in use, and the buffer
        that was claimed longer ago is overwritten.
        """
        self._last = 1 - (self._last if busy < 0 else busy)
        self.loaded[self._last] = None
        return self._last

    def arrays(self, buffer: int, nnz: int, value_type: np.dtype[Any]) -> tuple[Array, Array]:
        """Return views into a buffer for the indices and values of `nnz` nonzeros."""
        middle = (INDEX.itemsize * nnz + 7) // 8 * 8
        size = middle + nnz * value_type.itemsize
        memory = self._memory[buffer]
        if memory is None or len(memory) < size:
            self._memory[buffer] = memory = None  # frees the old memory before more is allocated
            self._memory[buffer] = memory = np.empty(size, np.uint8)
        return memory[: INDEX.itemsize * nnz].view(INDEX), memory[middle:size].view(value_type)

    def register(self, loaded: LoadedWindow) -> LoadedWindow:
        """Record which window a buffer holds."""
        self.loaded[loaded.buffer] = loaded
        return loaded
