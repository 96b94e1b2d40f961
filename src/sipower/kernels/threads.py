# SPDX-License-Identifier: BSD-3-Clause
"""The one place where threads live: blocks of a matrix are handed to them in rising order.

`run_blocks` runs a task on every block, `sum_blocks` also adds the blocks' partial results in the
order of the blocks, so every result is the same bits for any number of threads.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import joblib
import numpy as np
from numpy.typing import NDArray

from sipower.kernels.doors import Array

__all__ = ["SECONDS_PER_TERM", "WORTH_A_THREAD", "count_threads", "run_blocks", "sum_blocks"]

WORTH_A_THREAD = 200e-6  # seconds of work under which the caller does all blocks itself
SECONDS_PER_TERM = 0.2e-9  # rough cost of one nonzero and component, to judge that


def count_threads(n_jobs: int | None) -> int:
    """Threads to use: all cores of the affinity mask, but one inside a joblib or Dask worker."""
    if n_jobs is not None:
        return int(joblib.effective_n_jobs(n_jobs))
    if joblib.parallel.get_active_backend()[0].nesting_level or _inside_dask_worker():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _inside_dask_worker() -> bool:
    worker = sys.modules.get("distributed.worker")
    return bool(worker and getattr(worker.thread_state, "execution_state", None))


class _Workers:
    """The threads, started when first needed and never inherited by a forked child."""

    pool: ThreadPoolExecutor | None = None
    lock = threading.Lock()

    def forget(self) -> None:
        self.pool, self.lock = None, threading.Lock()

    def submit(self, task: Callable[[], None]) -> bool:
        """Have a thread do a task; without an answer of True it may do it late or never."""
        with self.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(max_workers=128, thread_name_prefix="sipower")
            try:
                self.pool.submit(task)
                return True
            except RuntimeError:  # no more threads, or none at the end: the caller works alone
                return False
            except BaseException:  # Ctrl-C: it may have started a thread that it does not know
                self.pool.shutdown(wait=False)
                self.pool = None
                raise


_workers = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.forget)


def run_blocks(
    count: int,
    task: Callable[[int], None],
    threads: int,
    failed: threading.Event | None = None,
) -> None:
    """Run task(block) for every block number below count; blocks are taken in rising order.

    `failed` is set as soon as a block fails, for tasks that wait for one another.
    """
    if threads > 1 and count > 1:
        _Blocks(count, task, failed or threading.Event()).run(min(threads, count))
        return
    for block in range(count):
        task(block)


class _Blocks:
    """Blocks that are given to whoever works on them: the caller and helpers among the workers."""

    def __init__(self, count: int, task: Callable[[int], None], failed: threading.Event) -> None:
        self.count, self.task, self.failed = count, task, failed
        self.numbers = itertools.count()  # next() on it is atomic
        self.called: list[threading.Lock] = []  # one for each helper, held until its end
        self.begun: list[threading.Lock] = []
        self.problems: list[BaseException] = []

    def run(self, threads: int) -> None:
        try:
            for _ in range(threads - 1):
                self._call_helper()
            self._work()
        except BaseException:  # Ctrl-C: running blocks end, no new ones start
            self.failed.set()
            self.called.clear()  # who has not begun finds nothing to do
            raise
        finally:
            for over in (*self.called, *self.begun):
                with over:
                    pass
        try:
            for problem in self.problems:
                raise problem
        finally:
            self.problems.clear()  # else it and what it holds would live on in a circle

    def _call_helper(self) -> None:
        over = threading.Lock()
        over.acquire()
        if _workers.submit(partial(self._help, over)):
            self.called.append(over)

    def _help(self, over: threading.Lock) -> None:
        self.begun.append(over)
        self._work()
        over.release()

    def _work(self) -> None:
        try:
            while not self.failed.is_set() and (block := next(self.numbers)) < self.count:
                self.task(block)
        except BaseException as problem:
            self.failed.set()
            self.problems.append(problem)


def sum_blocks(
    count: int, partial: Callable[[int, Array], None], total: NDArray[np.float64], threads: int
) -> None:
    """Add to `total` what partial(block, zeros) writes into its zeros, in the order of blocks."""
    spare = threading.local()
    failed = threading.Event()
    # A block is added once the one before has opened its gate. Plain locks: Ctrl-C within a
    # Condition could leave it locked.
    gates = [threading.Lock() for _ in range(count + 1)]
    for gate in gates[1:]:
        gate.acquire()

    def task(block: int) -> None:
        if not hasattr(spare, "part"):
            spare.part = np.empty_like(total)
        spare.part[...] = 0
        partial(block, spare.part)
        # Lower blocks were taken earlier and are being worked on, so the wait ends; the timeout is
        # for a block that failed meanwhile.
        while not gates[block].acquire(timeout=0.05):
            if failed.is_set():
                return
        np.add(total, spare.part, out=total)
        gates[block + 1].release()

    run_blocks(count, task, threads, failed)
