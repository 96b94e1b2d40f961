# SPDX-License-Identifier: BSD-3-Clause
"""Doors to the compiled kernels, the one place where threads live, and the random draws.

A kernel is serial over a range of items and releases the GIL. `run_blocks` hands the blocks of a
matrix to threads, `sum_blocks` also adds the blocks' partial results in the order of the blocks, so
every result is the same bits for any number of threads.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from sipower._kernels import (
    BasisFloat32,
    BasisFloat64,
    Csr,
    Dense,
    EpochPlan,
    coordinate,
    divergence,
    draw_batch,
    draw_uniform,
    epoch,
    gaps,
    gradient,
    level,
    mu,
    newton,
    power,
    projected,
    sample_float32,
    sample_float64,
    solve_items,
    sums,
)

__all__ = [
    "FLOOR",
    "Basis",
    "Csr",
    "Dense",
    "Draw",
    "EpochPlan",
    "basis",
    "batch_size",
    "coordinate",
    "count_threads",
    "divergence",
    "epoch",
    "gaps",
    "gradient",
    "level",
    "mu",
    "newton",
    "power",
    "projected",
    "run_blocks",
    "solve_items",
    "sum_blocks",
    "sums",
]

Array = NDArray[Any]
Basis = BasisFloat32 | BasisFloat64
Kernel = Callable[..., None]

FLOOR = 1e-15  # share of an item's mass that every living component keeps, as in cpp/kernels.hpp
WORTH_A_THREAD = 200e-6  # seconds of work under which the caller does all blocks itself
SECONDS_PER_TERM = 0.2e-9  # rough cost of one nonzero and component, to judge that


def basis(factor: Array, *, dense: bool, column_sums: Array | None = None) -> Basis:
    """Return the factor (others, K) in the kernels' own padded layout.

    `column_sums` are those of the whole basis where the factor is a sample of its rows.
    """
    kind = BasisFloat32 if factor.dtype == np.float32 else BasisFloat64
    return kind(factor, dense, column_sums)


# ---- threads ---------------------------------------------------------------------------------


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


class _Crew:
    """The threads, started when first needed and never inherited by a forked child."""

    pool: ThreadPoolExecutor | None = None
    lock = threading.Lock()

    def forget(self) -> None:
        self.pool, self.lock = None, threading.Lock()

    def submit(self, task: Callable[[], None]) -> Future[None] | None:
        with self.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(max_workers=128, thread_name_prefix="sipower")
            try:
                return self.pool.submit(task)
            except RuntimeError:  # the interpreter is shutting down: the caller works alone
                return None


_crew = _Crew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crew.forget)


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
        _run_in_threads(count, task, min(threads, count), failed or threading.Event())
        return
    for block in range(count):
        task(block)


def _run_in_threads(
    count: int, task: Callable[[int], None], threads: int, failed: threading.Event
) -> None:
    numbers = itertools.count()  # next() on it is atomic

    def work() -> None:
        try:
            while not failed.is_set() and (block := next(numbers)) < count:
                task(block)
        except BaseException:
            failed.set()
            raise

    helpers = [h for h in (_crew.submit(work) for _ in range(threads - 1)) if h is not None]
    try:
        work()
        for helper in helpers:
            helper.result()
    except BaseException:  # Ctrl-C among them: running blocks end, no new ones start
        failed.set()
        for helper in helpers:
            helper.exception()
        raise


def sum_blocks(
    count: int, partial: Callable[[int, Array], None], total: NDArray[np.float64], threads: int
) -> None:
    """Add to `total` what partial(block, zeros) writes into its zeros, in the order of blocks."""
    spare = threading.local()
    turn = threading.Condition()
    failed = threading.Event()
    done = 0

    def task(block: int) -> None:
        nonlocal done
        if not hasattr(spare, "part"):
            spare.part = np.empty_like(total)
        spare.part[...] = 0
        partial(block, spare.part)
        with turn:
            # Lower blocks were taken earlier and are being worked on, so the wait ends; the
            # timeout is for a block that failed meanwhile.
            while not turn.wait_for(lambda: done == block, timeout=0.05):
                if failed.is_set():
                    return
            np.add(total, spare.part, out=total)
            done += 1
            turn.notify_all()

    run_blocks(count, task, threads, failed)


# ---- random numbers --------------------------------------------------------------------------


class Draw(NamedTuple):
    """Where a draw of random numbers belongs: Philox's key (seed, stream) and its counter."""

    seed: int
    stream: int = 0
    round: int = 0
    side: int = 0
    inner: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """Philox's key."""
        return self.seed % 2**64, self.stream

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Philox's counter; a kernel puts its item into it."""
        return self.round, self.side, 0, self.inner

    def batch(self, n: int, s: int, *, replace: bool = False) -> NDArray[np.int32]:
        """Draw s of 0, ..., n-1."""
        return draw_batch(self.key, self.place, n, s, replace)

    def items(
        self, V: Csr, dtype: np.dtype[Any], share: float, *, weighted: bool, replace: bool
    ) -> tuple[Array, NDArray[np.int32], NDArray[np.int64]]:
        """Draw a share of the terms of every item that V holds.

        Values, each times its unbiased factor, their columns, and how many every item has.
        """
        sample = sample_float32 if dtype == np.float32 else sample_float64
        return sample(V, self.key, self.place, share, weighted, replace)

    def uniform(self, *shape: int) -> NDArray[np.float64]:
        """Draw uniform numbers of the open interval (0, 1)."""
        size = int(np.prod(shape))
        return draw_uniform(self.key, self.place, size).reshape(shape)


def batch_size(share: float, n: int) -> int:
    """Return s = ceil(share n), at least 1 and at most n (as inside the epoch kernels)."""
    return int(min(max(np.ceil(share * n), 1), n))
