# SPDX-License-Identifier: BSD-3-Clause
"""`race_starts`: several starts of a fit, of which the worse half is dropped again and again.

Every start is fitted for the same number of counted passes, the half with the lower divergence goes
on for as many passes again as it has had, and so on until one is left (successive halving). The
work is counted, not timed, so the same start wins on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sipower.data.row_blocks import RowBlocks
from sipower.loop.solve import Record, Result, Status, Stop, solve
from sipower.loop.trace import NO_WORK, add_counts
from sipower.nmf import Factorization, Factors, make_solver
from sipower.nmf.auto import has_own_start
from sipower.nmf.surplus import surplus_start

__all__ = ["Start", "choose_starts", "race_starts"]

OnState = Callable[[Record, Any], object]
FIRST_PASSES = 70.0  # passes before the first half is dropped; tuned on generated text and KOS


class Start(NamedTuple):
    """A start that takes part in a race."""

    seed: int
    surplus: bool  # whether it begins with surplus components


def choose_starts(init: str, n_init: int, seed: int, V: RowBlocks, rank: int) -> tuple[Start, ...]:
    """Return the starts that are raced for `init` "auto" or "random"; one start is no race.

    "auto" pairs each random start with one of surplus components, unless the solver has a start of
    its own for these data, from a sample or from batches of rows. There surplus components gave no
    lower divergence (spectrogram, faces, heavy-tailed counts).
    """
    kinds = (False, True) if init == "auto" and not has_own_start(V, rank) else (False,)
    return tuple(Start(seed + i, surplus) for i in range(n_init) for surplus in kinds)


@dataclass
class Contender:
    """A start and how far it has come."""

    start: Start
    x: Factors | None = None
    value: float = math.inf
    rounds: int = 0

    def run(
        self, problem: Factorization, solver: str, stop: Stop, on_state: OnState
    ) -> Result[Any]:
        """Fit on from the present factors until a limit of `stop` is reached."""
        near = self.rounds > 0
        result = solve(
            problem, make_solver(solver, near=near), self.x, stop=stop, seed=self.start.seed,
            on_state=on_state,
        )  # fmt: skip
        self.x, self.value = result.x, result.value
        self.rounds += result.trace[-1].round
        return result


def race_starts(
    problem: Factorization,
    starts: Sequence[Start],
    solver: str,
    limits: Callable[[Record], Stop],
    on_round: Callable[[Record, Factors], object],
) -> tuple[Factors, Record]:
    """Return the factors of the winner, and a record with its rounds and the passes of the race.

    Parameters
    ----------
    problem, solver
        The factorisation and the name of the solver.
    starts
        Starts, at least two.
    limits
        Called with the work so far before each run; returns what is left of the limits.
    on_round
        Called after every round with a record, whose passes and seconds are those of the race so
        far, and the factors; if it returns true, the race ends.
    """
    contenders, passes, total = [Contender(start) for start in starts], FIRST_PASSES, NO_WORK
    while len(contenders) > 1:
        for contender in contenders:
            cost = 0.0
            if contender.x is None and contender.start.surplus:
                contender.x, cost = surplus_start(problem.V, problem.rank, contender.start.seed)
            before = replace(total, round=contender.rounds, passes=total.passes + cost)
            stop = replace(limits(before), passes=max(passes - cost, 0.0))

            def on_state(record: Record, state: Any, before: Record = before) -> object:
                return on_round(add_counts(before, record), state.x)

            result = contender.run(problem, solver, stop, on_state)
            total = add_counts(before, result.trace[-1])
            if result.status in (Status.STOPPED, Status.MAX_SECONDS):
                return _winner(contenders, total)
        contenders = sorted(contenders, key=lambda c: c.value)[: (len(contenders) + 1) // 2]
        passes *= 2
    return _winner(contenders, total)


def _winner(contenders: list[Contender], total: Record) -> tuple[Factors, Record]:
    best = min(contenders, key=lambda c: c.value)
    assert best.x is not None
    return best.x, replace(total, round=best.rounds)
