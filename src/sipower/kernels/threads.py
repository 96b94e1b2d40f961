# SPDX-License-Identifier: BSD-3-Clause
"""The thread pool of the library, which runs tasks on numbered blocks in ascending order.

`run_blocks` runs a task on every block; `sum_blocks` also adds the partial results in block order,
so that every result is bit-for-bit the same for any number of threads.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

import joblib
import numpy as np
from numpy.typing import NDArray

from sipower.kernels.doors import Array

MIN_PARALLEL_SECONDS = 200e-6  # with less work, the calling thread runs all blocks itself
SECONDS_PER_ENTRY = 0.2e-9  # approximate time per entry and component


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`.

    None means all cores of the affinity mask, or one inside a joblib or Dask worker.
    """
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


class _Worker(threading.Thread):
    """A thread that runs one task after another; it is among the idle ones while it has none."""

    def __init__(self, idle: list[_Worker]) -> None:
        super().__init__(name="sipower", daemon=True)
        self.tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.idle = idle

    def run(self) -> None:
        while True:
            self.tasks.get()()
            self.idle.append(self)


class _Workers:
    """The threads of the library, which start when first needed; a forked child starts its own.

    `ThreadPoolExecutor` of Python 3.12 and later starts threads although others are idle, because
    a thread that takes the task meant for another one leaves that one uncounted.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.idle: list[_Worker] = []

    def submit(self, task: Callable[[], None]) -> bool:
        """Give a task to an idle thread or a new one; return False if no thread can be started."""
        try:
            worker = self.idle.pop()  # atomic
        except IndexError:
            worker = _Worker(self.idle)
            try:
                worker.start()
            except RuntimeError:  # no more threads, or interpreter exit: the caller works alone
                return False
        worker.tasks.put(task)
        return True


_workers = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.reset)


def run_blocks(
    count: int,
    task: Callable[[int], None],
    threads: int,
    failed: threading.Event | None = None,
) -> None:
    """Run task(block) for block = 0, ..., count − 1; the blocks start in ascending order.

    Parameters
    ----------
    count
        Number of blocks.
    task
        Called with the number of a block.
    threads
        Number of threads, including the calling one.
    failed
        Event that is set as soon as a block fails, for tasks that wait for one another.
    """
    if threads > 1 and count > 1:
        _Blocks(count, task, failed or threading.Event()).run(min(threads, count))
        return
    for block in range(count):
        task(block)


class _Blocks:
    """Blocks that the calling thread and helpers from the pool work on together."""

    def __init__(self, count: int, task: Callable[[int], None], failed: threading.Event) -> None:
        self.count, self.task, self.failed = count, task, failed
        self.numbers = itertools.count()  # next() on it is atomic
        self.pending: list[threading.Lock] = []  # one per helper, locked until the helper is done
        self.running: list[threading.Lock] = []
        self.errors: list[BaseException] = []

    def run(self, threads: int) -> None:
        try:
            for _ in range(threads - 1):
                self._call_helper()
            self._work()
        except BaseException:  # Ctrl-C: running blocks finish, no new ones start
            self.failed.set()
            self.pending.clear()  # a helper that has not started will find no block left
            raise
        finally:
            for done in (*self.pending, *self.running):
                with done:
                    pass
        try:
            for error in self.errors:
                raise error
        finally:
            self.errors.clear()  # breaks a reference cycle that would keep the error alive

    def _call_helper(self) -> None:
        done = threading.Lock()
        done.acquire()
        if _workers.submit(partial(self._help, done)):
            self.pending.append(done)

    def _help(self, done: threading.Lock) -> None:
        self.running.append(done)
        self._work()
        done.release()

    def _work(self) -> None:
        try:
            while not self.failed.is_set() and (block := next(self.numbers)) < self.count:
                self.task(block)
        except BaseException as error:
            self.failed.set()
            self.errors.append(error)


def sum_blocks(
    count: int, partial: Callable[[int, Array], None], total: NDArray[np.float64], threads: int
) -> None:
    """Add the partial results of all blocks to `total`, in the order of the blocks.

    partial(block, part) writes the result of a block into `part`, an array of zeros that has the
    shape of `total`.
    """
    spare = threading.local()
    failed = threading.Event()
    # gates[b] is released once block b − 1 has been added, so that blocks are added in order. Gates
    # are plain locks, because Ctrl-C inside a Condition could leave it locked.
    gates = [threading.Lock() for _ in range(count + 1)]
    for gate in gates[1:]:
        gate.acquire()

    def task(block: int) -> None:
        if not hasattr(spare, "part"):
            spare.part = np.empty_like(total)
        spare.part[...] = 0
        partial(block, spare.part)
        # Blocks with lower numbers started earlier, so the wait ends; the timeout covers the case
        # that one of them has failed.
        while not gates[block].acquire(timeout=0.05):
            if failed.is_set():
                return
        np.add(total, spare.part, out=total)
        gates[block + 1].release()

    run_blocks(count, task, threads, failed)
