# SPDX-License-Identifier: BSD-3-Clause
"""`LoadedData`: data on Dask workers that several fits share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sipower.dask.transposing import with_columns
from sipower.dask.worker_matrix import WorkerMatrix
from sipower.dask.worker_rows import WorkerRows
from sipower.estimators.observation import ARGUMENTS

__all__ = ["LoadedData", "check_loaded"]


class LoadedData:
    """Rows that workers hold, and their columns once a fit has needed them.

    Parameters
    ----------
    rows
        The rows, weighted if they have weights.
    given
        Values of `sipower.estimators.observation.ARGUMENTS` that they were loaded with.
    """

    def __init__(self, rows: WorkerRows, given: tuple[Any, ...]) -> None:
        self.rows, self.given = rows, given

    @cached_property
    def both_sides(self) -> WorkerMatrix:
        """The rows and the columns, which the workers bring together at first use."""
        return with_columns(self.rows)


def check_loaded(loaded: LoadedData, dtype: DTypeLike | None, given: tuple[Any, ...]) -> LoadedData:
    """Return loaded data if a fit with these arguments can use them, else raise an error."""
    for name, value in zip(ARGUMENTS, given, strict=True):
        if value is not None:
            raise ValueError(
                f"`{name}` must be an argument of `load` if `X` was loaded before, not of the fit."
            )
    if dtype is not None:
        loaded.rows.with_settings(np.dtype(dtype))
    return loaded
