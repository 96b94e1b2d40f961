# SPDX-License-Identifier: BSD-3-Clause
"""`RowSource`: what an open file of CSR rows must offer to be read as row blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sipower.data.plausibility import ValueOrigin
from sipower.kernels import Array


class RowSource(Protocol):
    """An open and checked file of CSR rows, with their sums and names."""

    indptr: NDArray[np.int64]
    value_type: np.dtype[Any]
    mass: NDArray[np.float64]
    width: int  # number of columns
    smallest: float  # smallest nonzero
    largest: float
    row_names: Array | None
    column_names: Array | None
    feature_ids: tuple[str, ...] | None
    origin: ValueOrigin | None
    remedy: str  # what to do if the file is damaged

    @property
    def path(self) -> Path:
        """The path of the file, for messages."""

    @property
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the columns."""

    @property
    def sha256(self) -> str | None:
        """The fingerprint, or None if it is not known."""

    def read(self, first: int, indices: Array, values: Array) -> None:
        """Fill both arrays with consecutive nonzeros, beginning with number `first`."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a function that opens the file in another process, and its arguments."""
