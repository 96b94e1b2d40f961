# SPDX-License-Identifier: BSD-3-Clause
"""Large arrays from the client to all workers, and sums of arrays from all workers to the client.

Workers pass a large factor on in a tree in which each sends it to FAN others, and add large sums in
a tree of FAN at a time. So the client and the scheduler handle each of them once, and no worker
sends or receives more than FAN of them for each level, however many workers there are.
"""

from __future__ import annotations

from typing import Any

from sipower.dask.task_names import task_key
from sipower.dask.waiting import gather_results
from sipower.dask.worker_rows import large_graphs
from sipower.kernels import Array

__all__ = ["MIN_SHARED", "add_results", "add_tuples", "broadcast"]

MIN_SHARED = 2**20  # bytes; less is sent by or to the client for every worker
FAN = 4


def broadcast(client: Any, factor: Array, holders: list[str]) -> list[Any]:
    """Return a factor as an argument of tasks on the workers `holders`, in their order."""
    if factor.nbytes < MIN_SHARED or len(holders) == 1:
        return [factor] * len(holders)
    with large_graphs():
        first = client.submit(_hold, factor, key=task_key("factor"), pure=False)
    if len(holders) <= FAN:
        return [first] * len(holders)
    copies: list[Any] = []
    for number, holder in enumerate(holders):
        copies.append(
            client.submit(
                _hold, copies[(number - 1) // FAN] if number else first,
                key=task_key("factor", number), workers=[holder], allow_other_workers=True,
                pure=False,
            )
        )  # fmt: skip
    return copies


def add_results(client: Any, futures: list[Any], nbytes: float) -> tuple[Any, ...]:
    """Return the sums of the tuples that tasks return, each of about `nbytes` bytes.

    The order of additions depends only on the number of tasks and the size.
    """
    if nbytes >= MIN_SHARED:
        while len(futures) > 1:
            groups = [futures[at : at + FAN] for at in range(0, len(futures), FAN)]
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
    """Return the sums of tuples of arrays and numbers, added in their order.

    The sums begin with 0, so that the result is a copy also of a single array: received arrays may
    not be aligned.
    """
    return tuple(sum(column) for column in zip(*parts, strict=True))
