# SPDX-License-Identifier: BSD-3-Clause
"""`PartSource`: a range of the rows of a file, so that several workers can share one file."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_source import RowSource
from sipower.kernels import Array
from sipower.store.external_sort import ranges

ENTRIES_AT_ONCE = 2**20  # entries whose columns are added at a time


class PartSource:
    """The rows `begin` to `end` − 1 of another source, as a `RowSource`."""

    sha256: str | None = None  # computed from the entries when needed

    def __init__(self, source: RowSource, begin: int, end: int) -> None:
        self.source, self.begin, self.end = source, begin, end
        self.first = int(source.indptr[begin])
        self.indptr: NDArray[np.int64] = source.indptr[begin : end + 1] - self.first
        self.mass, self.width = source.mass[begin:end], source.width
        self.value_type, self.origin = source.value_type, source.origin
        self.remedy = source.remedy
        self.smallest, self.largest = source.smallest, source.largest
        names = source.row_names
        self.row_names = None if names is None else names[begin:end]
        self.column_names, self.feature_ids = source.column_names, source.feature_ids

    @property
    def path(self) -> Path:
        """The path of the file, for messages."""
        return self.source.path

    def __str__(self) -> str:
        return str(self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        return PartSource, (self.source, self.begin, self.end)

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with consecutive nonzeros, beginning with number `first`."""
        self.source.read(self.first + first, indices, values)

    @cached_property
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the columns over these rows, from one pass over them."""
        sums = np.zeros(self.width)
        for begin, end in ranges(self.indptr, ENTRIES_AT_ONCE):
            length = int(self.indptr[end] - self.indptr[begin])
            indices, values = np.empty(length, np.int32), np.empty(length, self.value_type)
            self.read(int(self.indptr[begin]), indices, values)
            sums += np.bincount(indices, values, minlength=self.width)
        return sums
