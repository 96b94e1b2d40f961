# SPDX-License-Identifier: BSD-3-Clause
"""`SharedReads`: several fits in threads read each window of a store once, and use it together.

A fit that needs a window waits until all fits that run wait for one. The window that most of them
need is then read, and the next one ahead, while these fits compute. Each fit keeps the order of its
own windows, so it has the same bits as a fit alone. A fit that is elsewhere in the data waits until
the others come to its window, and from there on they read the same windows.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any, Self, TypeVar

from sipower.data.buffers import Buffers, LoadedWindow
from sipower.data.row_blocks import RowBlocks, Window

__all__ = ["SharedReads", "share_reads"]

P = TypeVar("P")
R = TypeVar("R")

PATIENCE = 4  # scans of the data after which a fit need not wait for the others any longer
POLL_SECONDS = 0.2  # after an interruption, the fits notice within this time that some are missing


class Request:
    """The window that a fit waits for, and the one that it will need next."""

    def __init__(self, V: Any, blocks: range, following: range | None) -> None:
        self.V, self.blocks, self.following = V, blocks, following
        self.key = V.window_key(blocks)
        self.since = 0  # number of windows that were read when the fit began to wait
        self.is_chosen = False  # whether this fit reads the window for all
        self.loaded: LoadedWindow | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the wait is over."""
        return self.is_chosen or self.loaded is not None


class SharedReads:
    """A group of fits that share the reads of a store, as a context manager.

    Other threads cannot read the store until the block ends.

    Parameters
    ----------
    buffers
        Memory for the windows.
    jobs
        Number of fits that run at a time.
    fits
        Number of fits in all.
    threads
        Number of threads, which the fits that run divide among them.
    """

    def __init__(self, buffers: Buffers, jobs: int, fits: int, threads: int = 1) -> None:
        self.buffers, self.jobs, self.left, self.total_threads = buffers, jobs, fits, threads
        self.is_over = False  # set without the lock: no more fits will start
        self.changed = threading.Condition()  # only fits use it, so Ctrl-C never leaves it locked
        self.threads: set[int] = set()  # threads of the fits that run
        self.requests: dict[int, Request] = {}  # by thread
        self.latest: dict[int, int] = {}  # number of the latest window of each thread
        self.count = 0  # windows chosen so far

    def __enter__(self) -> Self:
        self.buffers.lock.acquire()
        self.reader = ThreadPoolExecutor(1, "sipower-read")
        self.buffers.shared = self
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.shutdown()
        self.buffers.shared = None
        self.buffers.lock.release()

    def member(self, work: Callable[[P], R]) -> Callable[[P], R]:
        """Return a function that is a fit of this group while it runs, in a thread of its own."""

        def run(argument: P) -> R:
            thread = threading.get_ident()
            with self.changed:
                self.threads.add(thread)
            try:
                return work(argument)
            finally:
                with self.changed:
                    self.threads.discard(thread)
                    self.left -= 1
                    self._choose()

        return run

    def has_current_thread(self) -> bool:
        """Return whether the calling thread runs a fit of this group."""
        return threading.get_ident() in self.threads

    @property
    def threads_per_fit(self) -> int:
        """The number of threads of each fit, at least 1; more when only few fits are left."""
        return max(self.total_threads // max(len(self.threads), 1), 1)

    def windows(self, V: Any) -> Iterator[Window]:
        """Yield the windows of V in order, each when the group has read it."""
        windows = V.windows_of_blocks
        for blocks, following in zip_longest(windows, windows[1:]):
            yield self._wait_for(Request(V, blocks, following)).window

    def _wait_for(self, request: Request) -> LoadedWindow:
        thread = threading.get_ident()
        with self.changed:
            request.since = self.count
            self.requests[thread] = request
            self._choose()
            while not request.is_ready:
                self.changed.wait(POLL_SECONDS)
                self._choose()
            if request.loaded is not None:
                return request.loaded
        # If this fails, the next fit that waits for the window tries, and has its own error.
        loaded: LoadedWindow = self.reader.submit(request.V.load, request.blocks, -1).result()
        if request.following is not None:
            self.reader.submit(request.V.load, request.following, loaded.buffer)
        with self.changed:
            for other in [t for t, r in self.requests.items() if r.key == request.key]:
                self._remove(other).loaded = loaded
            self.changed.notify_all()
        return loaded

    def _remove(self, thread: int) -> Request:
        self.latest[thread] = self.count
        return self.requests.pop(thread)

    def _choose(self) -> None:
        """Choose the window to read next if all fits wait; one of them then reads it."""
        running = len(self.threads) if self.is_over else min(self.jobs, self.left)
        if not self.requests or len(self.requests) < running:
            return
        votes = Counter(request.key for request in self.requests.values())

        def priority(thread: int) -> tuple[bool, int, int]:
            request = self.requests[thread]
            patience = PATIENCE * len(request.V.windows_of_blocks)
            is_late = self.count - request.since > patience
            return is_late, votes[request.key], self.latest.get(thread, 0)

        self.count += 1
        self._remove(max(self.requests, key=priority)).is_chosen = True
        self.changed.notify_all()


def share_reads(V: RowBlocks, jobs: int, fits: int, threads: int) -> SharedReads | None:
    """Return a group of fits of V, or None if V is not on disk or the fits of a group use it."""
    buffers: Buffers | None = getattr(V, "buffers", None)
    if buffers is None or buffers.shared is not None:
        return None
    if V.has_columns:
        V.T  # noqa: B018 - computed once for all fits
    return SharedReads(buffers, jobs, fits, threads)
