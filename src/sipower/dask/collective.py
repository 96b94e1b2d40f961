# SPDX-License-Identifier: BSD-3-Clause
"""Large arrays from the client to all workers, and sums of arrays from all workers to the client.

Workers pass a large factor on to each other, and add large sums in a tree of FAN_IN at a time, so
that the client and the scheduler handle each of them once, however many workers there are.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from sipower.dask.task_names import task_key
from sipower.dask.waiting import gather_results
from sipower.dask.worker_rows import large_graphs
from sipower.kernels import Array

__all__ = ["MIN_SHARED", "add_results", "add_tuples", "broadcast"]

MIN_SHARED = 2**20  # bytes; less is sent by or to the client for every worker
FAN_IN = 4


def broadcast(client: Any, factor: Array, workers: int) -> Any:
    """Return a large factor as a future, which workers get from each other; else the factor."""
    if factor.nbytes < MIN_SHARED or workers == 1:
        return factor
    with large_graphs():
        return client.submit(_hold, factor, key=task_key("factor"), pure=False)


def add_results(client: Any, futures: list[Any], nbytes: float) -> tuple[Any, ...]:
    """Return the sums of the tuples that tasks return, each of about `nbytes` bytes.

    The order of additions depends only on the number of tasks and the size.
    """
    if nbytes >= MIN_SHARED:
        while len(futures) > 1:
            groups = [futures[at : at + FAN_IN] for at in range(0, len(futures), FAN_IN)]
            futures = [
                client.submit(add_tuples, group, key=task_key("add", number), pure=False)
                if len(group) > 1
                else group[0]
                for number, group in enumerate(groups)
            ]
    return add_tuples(gather_results(client, futures))


# ---- on the workers --------------------------------------------------------------------------


def _hold(factor: Array) -> Array:
    return factor


def add_tuples(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the sums of tuples of arrays and numbers, added in their order."""
    return tuple(reduce(add, column) for column in zip(*parts, strict=True))
