# SPDX-License-Identifier: BSD-3-Clause
"""The memory that windows of a store are read into: two buffers, used in turns."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import Window
from sipower.kernels import Array

__all__ = ["INDEX", "Buffers", "Held"]

INDEX = np.dtype(np.int32)


class Held(NamedTuple):
    """A window and the buffer that it lies in."""

    key: Any
    place: int
    window: Window


class Buffers:
    """Two pieces of memory, together as large as the limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.Lock()
        self.held: list[Held | None] = [None, None]
        self._memory: list[NDArray[np.uint8] | None] = [None, None]
        self._last = 1

    def terms(self, value_type: np.dtype[Any]) -> int:
        """Terms that one buffer has room for."""
        return (self.limit // 2 - 8) // (INDEX.itemsize + value_type.itemsize)

    def free(self, busy: int) -> int:
        """The buffer that is not worked on; of two, that which was filled longer ago."""
        self._last = 1 - (self._last if busy < 0 else busy)
        self.held[self._last] = None
        return self._last

    def arrays(self, place: int, terms: int, value_type: np.dtype[Any]) -> tuple[Array, Array]:
        """Room for indices and values."""
        middle = (INDEX.itemsize * terms + 7) // 8 * 8
        size = middle + terms * value_type.itemsize
        memory = self._memory[place]
        if memory is None or len(memory) < size:
            self._memory[place] = memory = None  # given back before more is asked for
            self._memory[place] = memory = np.empty(size, np.uint8)
        return memory[: INDEX.itemsize * terms].view(INDEX), memory[middle:size].view(value_type)

    def keep(self, held: Held) -> Held:
        """Remember what a buffer holds."""
        self.held[held.place] = held
        return held
