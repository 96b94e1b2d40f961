# SPDX-License-Identifier: BSD-3-Clause
"""The memory that fits need, and how many of them it has room for."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from pathlib import Path

from sipower.data.row_blocks import RowBlocks

__all__ = ["factor_bytes", "fits_at_once", "free_memory"]

FACTOR_COPIES = 6  # numbers for each entry of W and H
MEMORY_SHARE = 0.5  # share of the free memory for the factors of fits that run at a time


def factor_bytes(V: RowBlocks, rank: int) -> int:
    """Return the bytes of the factors of one fit, with the copies that a solver makes."""
    return FACTOR_COPIES * sum(V.shape) * rank * V.dtype.itemsize


def fits_at_once(V: RowBlocks, rank: int, fits: int, processes: int = 1) -> int:
    """Return how many of `fits` run at a time: half of the free memory holds their factors.

    `processes` is the number of processes that may share the memory.
    """
    free = MEMORY_SHARE * free_memory() / processes
    return int(max(min(fits, free // factor_bytes(V, rank)), 1))


def free_memory() -> float:
    """Return the bytes of memory that are free, half of all memory if only that is known.

    On systems that tell neither, return infinity.
    """
    info = Path("/proc/meminfo")
    if not info.is_file():
        return _installed_memory() / 2
    lines = info.read_text(encoding="utf-8").splitlines()
    sizes = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return 1024.0 * float(next(sizes, math.inf))


def _installed_memory() -> float:
    """Return the bytes of memory of this machine, or infinity if that is not known."""
    if sys.platform == "win32":
        kilobytes = ctypes.c_ulonglong()
        known = ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
        return 1024.0 * kilobytes.value if known else math.inf
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return math.inf
