# SPDX-License-Identifier: BSD-3-Clause
"""The two orientations of a store on their way to disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower import kernels
from sipower.data.fingerprint import Fingerprint
from sipower.data.memory import Matrix
from sipower.store.buckets import Bucket, Csr, Entries, Room, Scratch, blocks_of, distribute, ranges
from sipower.store.layout import PARTS, SIDES, VALUE_TYPES, Layout

__all__ = ["Rows", "Side", "write_column_mass", "write_columns"]


class Side:
    """The four files of one orientation."""

    def __init__(self, scratch: Scratch, name: str, types: Sequence[np.dtype[Any]]) -> None:
        folder = scratch.folder / name
        folder.mkdir()
        kinds = {**PARTS, "values": tuple(types)}
        self.files = {part: scratch.numbers(folder / f"{part}.npy", kinds[part]) for part in kinds}
        self.files["indptr"].append(np.zeros(1, np.int64))

    @property
    def items(self) -> int:
        """Rows so far."""
        return self.files["mass"].length

    @property
    def nonzeros(self) -> int:
        """Entries so far."""
        return self.files["indices"].length

    def append(self, block: Csr, mass: NDArray[np.float64]) -> None:
        """Write rows behind the last one."""
        self.files["indptr"].append(self.nonzeros + block.indptr[1:].astype(np.int64))
        self.files["indices"].append(block.indices)
        self.files["values"].append(block.data)
        self.files["mass"].append(mass)

    def whole(self, name: str) -> NDArray[Any]:
        """All numbers of a file."""
        file = self.files[name]
        return file.read(0, file.length)

    def entries(self, most: int) -> Iterator[Entries]:
        """All entries, row after row."""
        starts = self.whole("indptr")
        for begin, end in ranges(starts, most):
            first, last = int(starts[begin]), int(starts[end])
            counts = np.diff(starts[begin : end + 1])
            numbers = np.repeat(np.arange(begin, end, dtype=np.int32), counts)
            columns, values = (self.files[name].read(first, last) for name in ("indices", "values"))
            yield Entries(numbers, columns, values)

    def close(self) -> None:
        """Finish the files."""
        for file in self.files.values():
            file.close()


class Rows:
    """The rows on their way to disk, and what is known of them so far."""

    def __init__(self, scratch: Scratch, rows_only: bool) -> None:
        self.scratch, self.rows_only = scratch, rows_only
        self.side = Side(scratch, "rows", VALUE_TYPES)
        self.smallest, self.largest = np.inf, 0.0
        self.fingerprint = Fingerprint()

    def append(self, matrix: Matrix) -> None:
        """Write a block."""
        block, width = matrix.array, matrix.shape[1]
        if self.side.items == 0:
            self.dtype = matrix.dtype
            # Sums of the columns if the rows stay alone, else how many entries they have.
            self.columns = np.zeros(width)
        self.side.append(block, matrix.mass)
        weights = block.data if self.rows_only else None
        self.columns += np.bincount(block.indices, weights, minlength=width)
        if matrix.nnz:
            self.smallest = min(self.smallest, float(block.data.min()))
            self.largest = max(self.largest, float(block.data.max()))
        self.fingerprint.add(block)

    def layout(self) -> Layout:
        """What store.json says, once all rows are written."""
        shape = self.side.items, len(self.columns)
        total = float(self.side.whole("mass").sum())
        if not total <= float(np.finfo(self.dtype).max):
            raise ValueError(f"The sum of the data is too large for {self.dtype}: rescale them.")
        return Layout(
            self.scratch.folder,
            shape,
            self.side.nonzeros,
            total,
            str(self.dtype),
            self.fingerprint.of(shape),
            smallest=self.smallest if self.side.nonzeros else 0.0,
            largest=self.largest,
            orientations=SIDES[:1] if self.rows_only else SIDES,
        )


def write_columns(rows: Rows, room: Room) -> None:
    """Write the transpose: the entries of the rows, brought into the order of columns."""
    kind = rows.side.files["values"].dtype
    bucket = Bucket(rows.scratch, "bucket", (kind,))
    starts = np.append(0, np.cumsum(rows.columns.astype(np.int64)))
    turned = (entries.turned() for entries in rows.side.entries(room.few))
    distribute(turned, starts, bucket, room.most)
    side = Side(rows.scratch, "columns", (kind,))
    for block in blocks_of(bucket, starts, rows.side.items, room.most):
        values = block.data.astype(rows.dtype, copy=False)
        starts_here = block.indptr.astype(np.int64)
        whole = kernels.Csr(starts_here, block.indices, values, rows.side.items)
        side.append(block, whole.row_sums())
        room.tell("columns", side.items, side.nonzeros)
    side.close()
    bucket.remove()


def write_column_mass(scratch: Scratch, mass: NDArray[np.float64]) -> None:
    """Write the sums of the columns alone."""
    folder = scratch.folder / "columns"
    folder.mkdir()
    file = scratch.numbers(folder / "mass.npy", PARTS["mass"])
    file.append(mass)
    file.close()
