# SPDX-License-Identifier: BSD-3-Clause
"""`ColumnSums`: the columns of data that hold only their rows, as sums over these rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import Batch, RowBlocks, Window
from sipower.data.sampling import Scheme, scale_sample
from sipower.kernels import Array, Draw, batch_size

__all__ = ["ColumnSums"]


class ColumnSums(RowBlocks):
    """The columns of row-only data as items: sums over them are possible, single columns are not.

    Parameters
    ----------
    rows
        The data, with `has_columns` False.
    """

    has_items = False
    has_columns = False

    def __init__(self, rows: RowBlocks) -> None:
        self._rows = rows
        self.shape = rows.shape[::-1]
        self.dtype, self.threads, self.dense = rows.dtype, rows.threads, rows.dense
        self.nnz, self.total = rows.nnz, rows.total
        self.mass = rows.column_mass
        self.row_names, self.column_names = rows.column_names, rows.row_names

    @property
    def columns(self) -> RowBlocks:
        """The rows, since the items here are columns."""
        return self._rows

    @property
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the rows."""
        return self._rows.mass

    def windows(self) -> Iterator[Window]:
        """Raise ValueError: no kernel can work on single columns."""
        self._refuse()

    def take(self, items: Array) -> Any:
        """Raise ValueError, as `windows` does."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "The data hold their rows only, but this step needs their columns: use a solver that "
            "needs only sums over the rows, such as 'sci-pi' or 'auto'."
        )

    def with_settings(
        self, dtype: np.dtype[Any] | None = None, threads: int | None = None
    ) -> RowBlocks:
        """Return the columns of the rows with these settings."""
        rows = self._rows.with_settings(dtype, threads)
        return self if rows is self._rows else ColumnSums(rows)

    def with_data(self, data: Any, *, rows_only: bool = False) -> RowBlocks:
        """Return other data in memory with the settings of these."""
        return self._rows.with_data(data, rows_only=rows_only)

    def sample(self, scheme: Scheme, share: float, draw: Draw, *, replace: bool = False) -> Batch:
        """Draw whole rows."""
        if scheme != "vectors":
            raise ValueError(
                f"`scheme` must be 'vectors' for data that hold their rows only, got {scheme!r}."
            )
        n = self._rows.shape[0]
        s = batch_size(share, n)
        drawn = draw.batch(n, s, replace=replace)
        part = scale_sample(self._rows.take(drawn), n / s, self.dtype)
        return Batch(ColumnSums(self._rows.with_data(part)), drawn)
