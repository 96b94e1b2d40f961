# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for the tasks of a cluster, and one sentence for each way in which they never come."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

from distributed import wait
from distributed.scheduler import KilledWorker

__all__ = ["check_workers", "gather_results", "wait_for"]

PATIENCE = 60.0  # seconds that one waits for a worker to be there


def gather_results(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of tasks; cancel them if the wait is interrupted."""
    try:
        wait_for(client, futures)
        return list(client.gather(futures))
    except KilledWorker as problem:
        raise RuntimeError(
            f"Workers died again and again on the task {problem.task}: they may need more memory, "
            "or smaller chunks; their logs tell more."
        ) from None
    except CancelledError:
        raise RuntimeError(
            "Dask has cancelled the tasks of the fit: the scheduler was closed or restarted, or "
            "data that cannot be made again were lost with a worker."
        ) from None
    except BaseException:
        client.cancel(futures)
        raise


def wait_for(client: Any, futures: list[Any]) -> None:
    """Wait until all tasks are done, as long as there are workers."""
    while True:
        try:
            wait(futures, timeout=PATIENCE)
        except TimeoutError:
            check_workers(client)
        else:
            return


def check_workers(client: Any) -> None:
    """Refuse a cluster on which nothing can run; a worker that has died may come back."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise RuntimeError("The cluster has no workers: start some and fit again.") from None
