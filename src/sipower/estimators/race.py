# SPDX-License-Identifier: BSD-3-Clause
"""`race_starts`: find the best of several starts by successive halving.

Every start is fitted for the same number of counted passes, the half with the lower divergence is
continued for twice as many, and so on until one is left. The work is counted in passes, not timed,
so the same start wins on every machine. Starts on data on disk run at the same time and share every
read; the same start wins, with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sipower.estimators.shared_starts import run_together
from sipower.loop.solve import Interrupted, Record, Result, Status, Stop, solve
from sipower.loop.trace import NO_WORK, add_counts
from sipower.nmf import Factorization, Factors

__all__ = ["race_starts"]

FIRST_PASSES = 70.0  # passes of every start before starts are dropped; as in `Auto`


@dataclass
class Contender:
    """A start, identified by its seed, and its latest result."""

    seed: int
    result: Result[Any] | None = None

    @property
    def value(self) -> float:
        """The divergence reached."""
        return math.inf if self.result is None else self.result.value

    def run(self, problem: Any, solver: Any, stop: Stop, on_state: Any) -> Result[Any]:
        """Return a fit from the current factors that ends at a limit of `stop`."""
        x = None if self.result is None else self.result.x
        return solve(problem, solver, x, stop=stop, seed=self.seed, on_state=on_state)


def race_starts(
    problem: Factorization,
    seeds: Sequence[int],
    make_solver: Callable[..., Any],
    limits: Callable[[Record], Stop],
    on_round: Callable[[Record, Factors], object],
) -> Result[Any]:
    """Return the result of the winner, with one record: the rounds and passes of all starts.

    The status of the result is that of the last run: "stopped" if `on_round` has ended the race.
    Ctrl-C raises `Interrupted` with the best start so far.

    Parameters
    ----------
    problem
        The factorisation.
    seeds
        The seed of every start.
    make_solver
        Called with `near`: whether the start has already been fitted for some passes.
    limits
        Called with the work so far before each run; returns what is left of the limits.
    on_round
        Called with a record and the factors after every round; if it returns true, the race ends.
    """
    race = _Race(problem, [Contender(seed) for seed in seeds], make_solver, limits, on_round)
    try:
        while len(race.contenders) > 1:
            race.run_heat()
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, Interrupted):
            race.contenders.append(race.record(Contender(0), interrupt.result))
        if all(contender.result is None for contender in race.contenders):
            raise
        race.status = Status.INTERRUPTED
        raise Interrupted(race.best_result()) from None
    return race.best_result()


class _Race:
    """The starts that are left, and the work of all starts."""

    def __init__(
        self,
        problem: Factorization,
        contenders: list[Contender],
        make_solver: Callable[..., Any],
        limits: Callable[[Record], Stop],
        on_round: Callable[[Record, Factors], object],
    ) -> None:
        self.problem, self.contenders, self.make_solver = problem, contenders, make_solver
        self.limits, self.on_round = limits, on_round
        self.passes, self.total = FIRST_PASSES, NO_WORK
        self.status = Status.STOPPED

    def run_heat(self) -> None:
        """Fit every start for the same number of passes, and drop the worse half."""
        contenders = self.contenders
        heat = [
            partial(c.run, self.problem, self.make_solver(near=c.result is not None))
            for c in contenders
        ]
        stop, before = self._stop(), self.total
        runs = [partial(run, stop) for run in heat]
        ahead = run_together(self.problem, runs, before, self.on_round)
        for number, contender in enumerate(contenders):
            stop = self._stop()
            if ahead is None or not _is_within(ahead[number], stop):
                self.record(contender, heat[number](stop, self._listener()))
            else:
                self.record(contender, ahead[number])
            if self.status in (Status.STOPPED, Status.MAX_SECONDS, Status.MAX_ROUNDS):
                self.contenders = [min(contenders, key=lambda c: c.value)]
                return
        self.contenders = sorted(contenders, key=lambda c: c.value)[: (len(contenders) + 1) // 2]
        self.passes *= 2

    def _stop(self) -> Stop:
        return replace(self.limits(self.total), passes=self.passes)

    def _listener(self) -> Callable[[Record, Any], object]:
        before = self.total

        def on_state(record: Record, state: Any) -> object:
            return self.on_round(add_counts(before, record), state.x)

        return on_state

    def record(self, contender: Contender, result: Result[Any]) -> Contender:
        """Store the result of a contender, add its work, and return the contender."""
        contender.result, self.status = result, result.status
        self.total = add_counts(self.total, result.trace[-1])
        return contender

    def best_result(self) -> Result[Any]:
        """Return the result with the lowest divergence, with the work of all starts."""
        best = min(self.contenders, key=lambda contender: contender.value).result
        assert best is not None
        record = replace(self.total, objective=best.value, gap=best.residual)
        return replace(best, status=self.status, trace=[record])


def _is_within(result: Result[Any], stop: Stop) -> bool:
    """Return whether a run that was made before its limit on rounds was known keeps it."""
    if result.status in (Status.STOPPED, Status.MAX_SECONDS):
        return True
    return stop.rounds is None or result.trace[-1].round < stop.rounds
