# SPDX-License-Identifier: BSD-3-Clause
"""`race_starts`: find the best of several starts by successive halving.

Every start is fitted for the same number of counted passes, the half with the lower divergence is
continued for twice as many, and so on until one is left. The work is counted in passes, not timed,
so the same start wins on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sipower.loop.solve import Record, Result, Status, Stop, solve
from sipower.loop.trace import NO_WORK, add_counts
from sipower.nmf import Factorization, Factors

__all__ = ["race_starts"]

FIRST_PASSES = 70.0  # passes of every start before the first half is dropped, as in `Auto`


@dataclass
class Contender:
    """A start, identified by its seed, with its current factors and divergence."""

    seed: int
    x: Factors | None = None
    value: float = math.inf

    def run(self, problem: Any, solver: Any, stop: Stop, on_state: Any) -> Result[Any]:
        """Continue the fit from the current factors until a limit of `stop` is reached."""
        result = solve(problem, solver, self.x, stop=stop, seed=self.seed, on_state=on_state)
        self.x, self.value = result.x, result.value
        return result


def race_starts(
    problem: Factorization,
    seeds: Sequence[int],
    make_solver: Callable[..., Any],
    limits: Callable[[Record], Stop],
    on_round: Callable[[Record, Factors], object],
) -> tuple[Factors, Record]:
    """Return the factors of the winner, and a record of the rounds and passes of all starts.

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
        for contender in contenders:

            def on_state(record: Record, state: Any, before: Record = total) -> object:
                return on_round(add_counts(before, record), state.x)

            solver, stop = make_solver(near=contender.x is not None), limits(total)
            result = contender.run(problem, solver, replace(stop, passes=passes), on_state)
            total = add_counts(total, result.trace[-1])
            if result.status not in (Status.MAX_PASSES, Status.CONVERGED):
                return _best(contenders), total
        contenders = sorted(contenders, key=lambda c: c.value)[: (len(contenders) + 1) // 2]
        passes *= 2
    return _best(contenders), total


def _best(contenders: list[Contender]) -> Factors:
    best = min(contenders, key=lambda contender: contender.value)
    assert best.x is not None
    return best.x
