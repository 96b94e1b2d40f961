# SPDX-License-Identifier: BSD-3-Clause
"""`uses_columns`: whether a fit on workers should bring the columns of the data together too."""

from __future__ import annotations

from typing import Any

import psutil

from sipower.dask.cost import Cluster, Size, round_cost
from sipower.dask.transposing import is_stored
from sipower.dask.worker_rows import WorkerRows

__all__ = ["uses_columns"]

# How many rounds of "rows" lower the gap as much as one of "auto" (docs/scaling.md).
ROUNDS_OF_ROWS = 2.0
COPIES_OF_COLUMNS = 3  # while columns are brought together, workers hold pieces of them as well
COPIES_OF_FACTORS = 6  # factors, extrapolated factors, their last values; float64 for certificates


def uses_columns(V: WorkerRows, rank: int) -> bool:
    """Return whether the columns fit into memory and fits with them are faster.

    The estimate needs sizes alone, so the choice is the same in every run on the same cluster.
    """
    size = Size(*V.shape, V.nnz, rank, V.dtype.itemsize)
    threads = V.client.nthreads()
    cluster = Cluster(len(threads), sum(threads.values()))
    if not (_fit_workers(V) and _fit_client(size)):
        return False
    both, rows = (round_cost(size, cluster, method).seconds for method in ("auto", "rows"))
    return both <= ROUNDS_OF_ROWS * rows


def _fit_workers(V: WorkerRows) -> bool:
    if is_stored(V):
        return True
    entry = V.dtype.itemsize + (0 if V.dense else 4)
    limits = [worker["memory_limit"] for worker in _workers(V.client)]
    return not all(limits) or COPIES_OF_COLUMNS * V.nnz * entry <= sum(limits)


def _workers(client: Any) -> list[Any]:
    return list(client.scheduler_info(n_workers=-1)["workers"].values())


def _fit_client(size: Size) -> bool:
    factors = (size.rows + size.columns) * size.rank * size.itemsize
    return bool(2 * COPIES_OF_FACTORS * factors <= psutil.virtual_memory().available)
