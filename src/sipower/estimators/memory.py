# SPDX-License-Identifier: BSD-3-Clause
"""The memory that fits need, and how many of them it has room for."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from pathlib import Path

from sipower.data.row_blocks import RowBlocks
from sipower.nmf.row_sample import is_tall, sample_rows

__all__ = ["factor_bytes", "fit_bytes", "fits_at_once", "free_memory"]

# Copies of W and H while "auto" takes second-order steps: those of the state, with the extrapolated
# W and the H before it, those being computed, and one for the step. Other solvers have those of one
# round and of the next.
AUTO_COPIES, OTHER_COPIES = 5, 2
ITEM_BYTES = 24  # of a row or column: its sum, and where it begins, in 32 and in 64 bits
# Memory that the C library keeps when it is freed: up to a third, but not more than this.
PROCESS_BYTES = 32_000_000
MEMORY_SHARE = 0.5  # share of the free memory for the factors of fits that run at a time


def fit_bytes(V: RowBlocks, rank: int, solver: str = "auto") -> int:
    """Return the bytes that a fit adds to the process: data, factors and what else it holds.

    Of data on disk they count as far as the buffers hold them. Arrays of the caller that V does not
    share come on top.
    """
    factors = factor_bytes(V, rank, solver)
    if solver == "auto" and is_tall(V) and V.has_columns:
        factors = max(factors, _sample_bytes(V, rank))
    held = _data_bytes(V) + ITEM_BYTES * sum(V.shape) + factors
    return held + min(held // 3, PROCESS_BYTES)


def _data_bytes(V: RowBlocks) -> int:
    """Return the bytes of the entries in memory, by rows and by columns."""
    sides = 2 if V.has_columns else 1
    if V.is_in_memory:
        return sides * int(V.array.nbytes if V.dense else V.nnz * (V.dtype.itemsize + 4))
    stored = V.nnz * (getattr(V, "source").value_type.itemsize + 4)  # noqa: B009 - data on disk
    return min(sides * int(stored), int(getattr(V, "buffers").limit))  # noqa: B009


def factor_bytes(V: RowBlocks, rank: int, solver: str = "auto") -> int:
    """Return the bytes of the factors of one fit, with the copies that a solver makes.

    At the end, the gap is evaluated in float64: if the factors are float32, W is converted, and the
    kernels copy it.
    """
    size, itemsize = sum(V.shape) * rank, V.dtype.itemsize
    copies = AUTO_COPIES if solver == "auto" else OTHER_COPIES
    rounds = copies * size * itemsize + _basis_bytes(V, max(V.shape), rank, itemsize)
    converted = size * 8 if itemsize < 8 else 0
    end = 2 * size * itemsize + converted + _basis_bytes(V, max(V.shape), rank, 8)
    return max(rounds, end)


def _basis_bytes(V: RowBlocks, items: int, rank: int, itemsize: int) -> int:
    """Return the bytes of the factor that the kernels copy, with its rows padded to a fixed width.

    For dense data they hold a second copy.
    """
    lanes = 32 // itemsize
    step = lanes if rank <= 24 else 32 if rank <= 32 else 16 if rank <= 64 else 32
    width = -(-rank // step) * step
    return items * (width + rank * V.dense) * itemsize


def _sample_bytes(V: RowBlocks, rank: int) -> int:
    """Return the bytes while a sample of tall data is fitted, which is in memory."""
    rows, itemsize = sample_rows(V), V.dtype.itemsize
    entries = V.shape[1] * itemsize if V.dense else V.nnz / V.shape[0] * (itemsize + 4)
    size = AUTO_COPIES * (rows + V.shape[1]) + sum(V.shape)  # numbers for each component
    basis = _basis_bytes(V, max(rows, V.shape[1]), rank, itemsize)
    return int(2 * rows * entries) + size * rank * itemsize + basis


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
