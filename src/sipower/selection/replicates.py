# SPDX-License-Identifier: BSD-3-Clause
"""Independent fits side by side in threads; the kernels release Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event, Lock
from typing import Any, TypeVar

from sklearn.base import clone

from sipower.estimators import KLNMF
from sipower.kernels import count_threads
from sipower.solve import Record

__all__ = ["Replicates"]

T = TypeVar("T")


class Replicates:
    """Makes models for the pieces of a task, runs the pieces, and counts finished fits.

    Parameters
    ----------
    model
        Solver, tolerance, limits and number of threads.
    on_fit
        Called with the number of finished fits and of all fits.
    total
        All fits.
    """

    def __init__(
        self, model: KLNMF, on_fit: Callable[[int, int], object] | None, total: int
    ) -> None:
        self.model, self.on_fit, self.total = model, on_fit, total
        self.done, self.lock, self.over = 0, Lock(), Event()

    def run(self, work: Callable[[int], T], pieces: int) -> list[T]:
        """[work(0), work(1), ...], as many at a time as there are threads.

        An interruption ends the fits that are running after their present round.
        """
        jobs = min(count_threads(self.model.n_jobs), pieces)
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(work, piece) for piece in range(pieces)]
            try:
                return [future.result() for future in futures]
            except BaseException:
                self.over.set()
                pool.shutdown(cancel_futures=True)
                raise

    def made(self, **parameters: Any) -> KLNMF:
        """A model for one thread that stops when the task is over."""

        def on_round(record: Record) -> bool:
            asked = self.model.on_round is not None and self.model.on_round(record)
            return bool(asked) or self.over.is_set()

        copy: KLNMF = clone(self.model)
        copy.set_params(n_jobs=1, on_round=on_round, **parameters)
        return copy

    def fit(self, model: KLNMF, V: Any, **start: Any) -> Any:
        """W of a fit that has run to its end."""
        W = model.fit_transform(V, **start)
        if self.over.is_set():
            raise CancelledError
        return W

    def finished(self, fits: int) -> None:
        """Count fits that have just been finished or found finished."""
        with self.lock:
            self.done += fits
            if self.on_fit is not None and fits:
                self.on_fit(self.done, self.total)
