# SPDX-License-Identifier: BSD-3-Clause
"""`run_together`: fit several starts to data on disk at the same time, with shared reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import Any

from sipower.data.shared_reads import share_reads
from sipower.estimators.memory import fits_at_once
from sipower.loop.solve import Interrupted, Record, Result, Status
from sipower.loop.trace import add_counts
from sipower.nmf import Factors

__all__ = ["run_together"]

OnState = Callable[[Record, Any], object]


class Rounds:
    """The rounds of fits that run at the same time, which are reported one after another.

    Parameters
    ----------
    before
        Work before these fits.
    on_round
        Called with the work of all fits and the factors of the one that has done a round; if it
        returns true, all fits stop.
    """

    def __init__(self, before: Record, on_round: Callable[[Record, Factors], object]) -> None:
        self.before, self.on_round = before, on_round
        self.lock, self.is_over = threading.Lock(), False
        self.latest: dict[int, Record] = {}

    def listener(self, number: int) -> OnState:
        """Return the function that the fit with this number calls after every round."""

        def on_state(record: Record, state: Any) -> bool:
            with self.lock:
                self.latest[number] = record
                others = [other for key, other in self.latest.items() if key != number]
                total = add_counts(reduce(add_counts, others, self.before), record)
                if not self.is_over and self.on_round(total, state.x):
                    self.is_over = True
                return self.is_over

        return on_state


def run_together(
    problem: Any,
    runs: Sequence[Callable[[OnState], Result[Any]]],
    before: Record,
    on_round: Callable[[Record, Factors], object],
) -> list[Result[Any]] | None:
    """Return the results of all runs, or None if they cannot share reads, as data in memory.

    Parameters
    ----------
    problem
        The factorisation.
    runs
        Functions that fit one start each; they are called with a listener of rounds.
    before, on_round
        As in `Rounds`.
    """
    if problem.V.is_in_memory:
        return None
    jobs = fits_at_once(problem.V, problem.rank, len(runs))
    group = share_reads(problem.V, jobs, len(runs), problem.V.threads)
    if group is None or jobs < 2:
        return None
    rounds = Rounds(before, on_round)
    with group, ThreadPoolExecutor(jobs) as pool:
        futures: list[Future[Result[Any]]] = []
        try:
            for number, run in enumerate(runs):
                futures.append(pool.submit(group.member(run), rounds.listener(number)))
            return [future.result() for future in futures]
        except BaseException as error:
            rounds.is_over = group.is_over = True
            pool.shutdown(cancel_futures=True)
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, Interrupted):
                _raise_interrupted(futures)
            raise


def _raise_interrupted(futures: list[Future[Result[Any]]]) -> None:
    """Raise `Interrupted` with the best result that Ctrl-C has left, if there is one."""
    ended = [f for f in futures if f.done() and not f.cancelled() and f.exception() is None]
    if ended:
        best = min((future.result() for future in ended), key=lambda result: result.value)
        raise Interrupted(replace(best, status=Status.INTERRUPTED)) from None
