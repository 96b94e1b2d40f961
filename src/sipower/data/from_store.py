# SPDX-License-Identifier: BSD-3-Clause
"""`open_store`: open a store of .npy files as row blocks on disk."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sipower import kernels
from sipower.data.buffers import Buffers
from sipower.data.on_disk import DEFAULT_LIMIT, SUM_TOL, StoredMatrix
from sipower.data.part_source import PartSource
from sipower.data.plausibility import ValueOrigin
from sipower.data.row_blocks import ITEM_WORK
from sipower.data.validate import name_array, working_type
from sipower.kernels import Array
from sipower.store import byte_size
from sipower.store.layout import (
    SIDES,
    DamagedStoreError,
    Layout,
    read_feature_ids,
    read_layout,
    read_names,
)

REMEDY = "convert the data again"


class StoreSource:
    """One orientation of a store, its rows or its columns, as a `RowSource`."""

    origin: ValueOrigin | None = None

    def __init__(self, layout: Layout, side: str, remedy: str = REMEDY) -> None:
        self.layout, self.side, self.remedy = layout, side, remedy
        # The files stay open, so that the data stay the same if the store is replaced.
        self.indices, self.values = layout.open(side, "indices"), layout.open(side, "values")
        self.value_type = self.values.dtype
        self.indptr = _read_all(layout, side, "indptr")
        is_rising = self.indptr[0] == 0 and bool((np.diff(self.indptr) >= 0).all())
        if not is_rising or self.indptr[-1] != layout.nonzeros:
            raise DamagedStoreError(
                f"The store {layout.path} is damaged: {side}/indptr.npy is invalid; convert the "
                "data again."
            )
        self.smallest, self.largest = layout.smallest, layout.largest
        order = 1 - 2 * SIDES.index(side)  # −1 swaps rows and columns
        self.mass, self.column_mass = [_read_mass(layout, name) for name in SIDES][::order]
        self.width = len(self.column_mass)
        self.row_names, self.column_names = [name_array(n) for n in read_names(layout)][::order]
        self.feature_ids = read_feature_ids(layout) if side == "rows" else None

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self.layout.path

    @property
    def sha256(self) -> str | None:
        """The fingerprint of the data, or None for the transpose."""
        return self.layout.sha256 if self.side == "rows" else None

    def __str__(self) -> str:
        return f"The store {self.layout.path}"

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreSource, (self.layout, self.side, self.remedy)

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with consecutive nonzeros, beginning with number `first`."""
        self.indices.read(first, indices)
        self.values.read(first, values)


def _read_all(layout: Layout, side: str, name: str) -> Array:
    stored = layout.open(side, name)
    array = np.empty(stored.length, stored.dtype)
    stored.read(0, array)
    return array


def _read_mass(layout: Layout, side: str) -> Array:
    mass = _read_all(layout, side, "mass")
    if not (mass.min() >= 0 and abs(mass.sum() - layout.total) <= SUM_TOL * layout.total):
        raise DamagedStoreError(
            f"The store {layout.path} is damaged: {side}/mass.npy has wrong sums; convert the "
            "data again."
        )
    return mass


def open_store(
    path: str | PathLike[str],
    *,
    dtype: DTypeLike | None = None,
    n_jobs: int | None = None,
    memory_limit: int | str = DEFAULT_LIMIT,
    remedy: str = REMEDY,
) -> StoredMatrix:
    """Open a store that was written by `sipower convert` or `write_store`.

    Parameters
    ----------
    path
        Folder of the store.
    dtype, n_jobs, memory_limit
        As in `sipower.io.open_on_disk`.
    remedy
        What to do about a damaged store, for error messages.
    """
    layout, limit = read_layout(path), byte_size(memory_limit)
    sides = tuple(StoreSource(layout, side, remedy) for side in layout.orientations)
    working, threads = working_type(np.dtype(layout.dtype), dtype), kernels.count_threads(n_jobs)
    return StoredMatrix(sides, working, threads, Buffers(limit))


def open_part(V: StoredMatrix, number: int, count: int) -> StoredMatrix | None:
    """Return one of `count` ranges of the rows of a store, of about equal work; None: no rows.

    A range has rows alone and buffers of its own. Those of `V.T` hold the columns.
    """
    work = np.append(0, np.cumsum(np.diff(V.indptr) + ITEM_WORK))
    shares = np.arange(number, number + 2) / count
    begin, end = (int(at) for at in np.searchsorted(work, work[-1] * shares))
    if begin == end:
        return None
    part = PartSource(V.source, begin, end)
    return StoredMatrix((part,), V.dtype, V.threads, Buffers(V.buffers.limit))
