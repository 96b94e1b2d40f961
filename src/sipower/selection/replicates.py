# SPDX-License-Identifier: BSD-3-Clause
"""Independent fits in parallel: in threads, or on the workers of a Dask client.

Fits of data on disk run together and share every read of the data (`sipower.data.shared_reads`).
The kernels release the GIL, so threads run in parallel. With a client, every fit is one task, and a
local thread waits for it. Finished fits are counted and saved in this process. Fits in threads and
on workers give the same bits, and either can continue a folder that the other has begun.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import (
    FIRST_EXCEPTION,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import nullcontext
from threading import Event, Lock
from typing import Any, TypeVar

from sklearn.base import clone

from sipower.data.row_blocks import RowBlocks
from sipower.data.shared_reads import share_reads
from sipower.estimators import KLNMF
from sipower.estimators.memory import fits_at_once
from sipower.estimators.parameters import as_seed, fit_rank
from sipower.kernels import count_threads
from sipower.loop.solve import Record

T = TypeVar("T")
POLL_SECONDS = 0.2


def first_seed(model: KLNMF, replicates: int) -> int:
    """Return the seed of the first replicate; replicate r has this seed plus r."""
    if replicates < 1:
        raise ValueError(f"`replicates` must be a positive integer, got {replicates}.")
    seed = as_seed(model.random_state)
    if seed + replicates > 2**32:
        raise ValueError(f"`random_state` must be at most {2**32 - replicates}, got {seed}.")
    return seed


class Replicates:
    """The fits of a task, which run in parallel and are counted when finished.

    Parameters
    ----------
    model
        Solver, tolerance, limits and number of threads.
    on_fit
        Called with the number of finished fits and the total number of fits.
    total
        Total number of fits.
    client
        A client of `distributed`, or None for threads.
    """

    def __init__(
        self, model: KLNMF, on_fit: Callable[[int, int], object] | None, total: int, client: Any
    ) -> None:
        if client is not None and model.on_round is not None:
            raise ValueError("`on_round` must be None with a client: it is not called on workers.")
        self.model, self.on_fit, self.total, self.client = model, on_fit, total, client
        self.done, self.lock, self.over = 0, Lock(), Event()
        self.running: set[Any] = set()

    def run(self, work: Callable[[int], T], pieces: int, data: RowBlocks | None = None) -> list[T]:
        """Return [work(0), work(1), ...], with as many calls at a time as there are threads.

        If `data`, which all fits use, are on disk, there are as many calls as half of the free
        memory has room for the factors of, and the fits share every read.

        After an interruption, the running fits stop at the end of their current round. With a Dask
        client, its workers finish their fits, but the results are dropped.
        """
        threads = count_threads(self.model.n_jobs)
        if self.client is not None:
            threads = max(sum(self.client.nthreads().values()), 1)
        jobs, group = min(threads, pieces), None
        if self.client is None and data is not None and not data.is_in_memory:
            jobs = fits_at_once(data, fit_rank(self.model, data, None), pieces)
            group = share_reads(data, jobs, pieces, threads)
            work = work if group is None else group.member(work)
        with group or nullcontext(), ThreadPoolExecutor(jobs) as pool:
            try:
                futures = [pool.submit(work, piece) for piece in range(pieces)]
                return wait_for_results(futures)
            except BaseException:
                self.over.set()
                if group is not None:
                    group.is_over = True
                if self.client is not None:
                    self.client.cancel(list(self.running))
                pool.shutdown(cancel_futures=True)
                raise

    def model_for_one_thread(self, **parameters: Any) -> KLNMF:
        """Return a copy of the model for one thread, which stops when the task is over."""

        def on_round(record: Record) -> bool:
            should_stop = self.model.on_round is not None and self.model.on_round(record)
            return bool(should_stop) or self.over.is_set()

        copy: KLNMF = clone(self.model).set_output(transform="default")
        copy.set_params(n_jobs=1, on_round=on_round if self.client is None else None)
        copy.set_params(checkpoint=None, **parameters)  # only finished fits are saved
        return copy

    def scatter(self, data: Any) -> Any:
        """Return data that many fits share; each worker receives them at most once."""
        # Data with a key made from the content could be released by another task with equal data.
        if self.client is None:
            return data
        key = f"sipower-data-{uuid.uuid4().hex}"
        return self.client.scatter({key: data}, hash=False)[key]

    def divide(self, numbers: list[int]) -> list[tuple[str, list[int]]]:
        """Return the addresses of workers, each with its share of `numbers`."""
        workers = sorted(self.client.nthreads())[: len(numbers)]
        return [(worker, numbers[at :: len(workers)]) for at, worker in enumerate(workers)]

    def submit(
        self, function: Callable[..., Any], *arguments: Any, worker: str | None = None
    ) -> Any:
        """Return function(*arguments) or, with a client, a future of it, which many fits share.

        `worker` is the address of the worker that should compute it; None: any.
        """
        if self.client is None:
            return function(*arguments)
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        words = function.__name__.strip("_").replace("_", "-")
        key = f"sipower-{words}-{uuid.uuid4().hex}"  # the name in Dask's dashboard
        return self.client.submit(function, *arguments, key=key, pure=False, **where)

    def compute(self, function: Callable[..., T], *arguments: Any, worker: str | None = None) -> T:
        """Return function(*arguments); raise `CancelledError` if the task has ended meanwhile."""
        if self.client is None:
            result = function(*arguments)
        else:
            future = self.submit(function, *arguments, worker=worker)
            self.running.add(future)
            result = future.result()
            self.running.discard(future)
        if self.over.is_set():
            raise CancelledError
        return result

    def count_finished(self, fits: int) -> None:
        """Add fits that have just finished, or were loaded, to the count."""
        with self.lock:
            self.done += fits
            if self.on_fit is not None and fits:
                self.on_fit(self.done, self.total)


def wait_for_results(futures: list[Future[T]]) -> list[T]:
    """Return the results in order, or raise the first exception.

    Waits with a timeout end by themselves, so Ctrl-C is noticed even if the signal interrupts none.
    """
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, POLL_SECONDS, FIRST_EXCEPTION)
        for future in finished:
            future.result()
    return [future.result() for future in futures]
