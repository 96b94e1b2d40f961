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
from sipower.loop.solve import Record, Result, Status, Stop, solve
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
) -> tuple[Result[Any], Record]:
    """Return the result of the winner, and a record of the rounds and passes of all starts.

    The status of the result is that of the last run: "stopped" if `on_round` has ended the race.

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
    contenders, passes, total = [Contender(seed) for seed in seeds], FIRST_PASSES, NO_WORK
    while len(contenders) > 1:
        heat = [partial(c.run, problem, make_solver(near=c.result is not None)) for c in contenders]
        stop = replace(limits(total), passes=passes)
        ahead = run_together(problem, [partial(run, stop) for run in heat], total, on_round)
        for number, contender in enumerate(contenders):

            def on_state(record: Record, state: Any, before: Record = total) -> object:
                return on_round(add_counts(before, record), state.x)

            stop = replace(limits(total), passes=passes)
            if ahead is None or not _is_within(ahead[number], stop):
                last = heat[number](stop, on_state)
            else:
                last = ahead[number]
            contender.result = last
            total = add_counts(total, last.trace[-1])
            if last.status in (Status.STOPPED, Status.MAX_SECONDS, Status.MAX_ROUNDS):
                contenders = [min(contenders, key=lambda c: c.value)]
                break
        contenders = sorted(contenders, key=lambda c: c.value)[: (len(contenders) + 1) // 2]
        passes *= 2
    winner = contenders[0].result
    assert winner is not None
    return replace(winner, status=last.status), total


def _is_within(result: Result[Any], stop: Stop) -> bool:
    """Return whether a run that was made before its limit on rounds was known keeps it."""
    if result.status in (Status.STOPPED, Status.MAX_SECONDS):
        return True
    return stop.rounds is None or result.trace[-1].round < stop.rounds
