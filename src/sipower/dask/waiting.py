# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for the tasks of a cluster, with an error message for each kind of failure."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from distributed import wait
from distributed.scheduler import KilledWorker

from sipower.dask.task_names import task_key

WORKER_TIMEOUT = 60.0  # seconds to wait for a worker


def gather_results(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of the tasks `futures`; cancel all if one fails or on Ctrl-C."""
    try:
        wait_for(client, futures)
        return list(client.gather(futures))
    except KilledWorker as problem:
        raise RuntimeError(
            f"Workers died repeatedly on the task {problem.task}: they may need more memory or "
            "smaller chunks; see their logs."
        ) from None
    except CancelledError:
        raise RuntimeError(
            "Dask has cancelled the tasks of `fit`: the scheduler was closed or restarted, or "
            "data that cannot be computed again were lost with a worker. Fit again."
        ) from None
    except BaseException:
        client.cancel(futures)
        raise


def map_chunks(
    client: Any, name: str, function: Callable[..., Any], futures: list[Any], **options: Any
) -> list[Any]:
    """Return function(chunk, **options) of every chunk, from tasks with the given name."""
    keys = [task_key(name, number) for number in range(len(futures))]
    tasks = client.map(function, futures, key=keys, pure=False, **options)
    return gather_results(client, tasks)


def wait_for(client: Any, futures: list[Any]) -> None:
    """Wait until all tasks are done; raise RuntimeError if the cluster has no workers."""
    while True:
        try:
            wait(futures, timeout=WORKER_TIMEOUT)
        except TimeoutError:
            check_workers(client)
        else:
            return


def check_workers(client: Any) -> None:
    """Check that the cluster has a worker; wait for one to start or restart if necessary."""
    if client.status in ("closing", "closed"):
        raise RuntimeError(
            "`client` is closed, perhaps because its scheduler was stopped: connect a new one."
        )
    try:
        client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
    except TimeoutError:
        raise RuntimeError("`client` has no workers: start some and fit again.") from None
    except OSError as problem:
        raise RuntimeError(
            f"The scheduler of `client` cannot be reached: {problem}. Start it, connect a new "
            "client and fit again."
        ) from None
