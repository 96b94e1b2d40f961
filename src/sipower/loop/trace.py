# SPDX-License-Identifier: BSD-3-Clause
"""`Trace`: when the objective and the gap of a run are evaluated, and what they were."""

from __future__ import annotations

import math
import time
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from sipower.loop.protocols import Solvable, State

EVALUATION_SHARE = 0.1  # share of the passes that evaluations for the trace may take
GROWTH = 1.15  # the next record is due when the passes have grown by this factor


@dataclass(frozen=True)
class Record:
    """One record of the trace.

    Attributes
    ----------
    round, passes, seconds
        Rounds, passes over the data and seconds of the solver so far.
    objective, gap
        Objective and residual. In a round that was not evaluated, `gap` is NaN, and `objective` is
        NaN unless the solver has computed it.
    step
        Step size in use.
    """

    round: int
    passes: float
    seconds: float
    objective: float
    gap: float
    step: float


NO_WORK = Record(0, 0.0, 0.0, 0.0, 0.0, 0.0)


def add_counts(before: Record, record: Record) -> Record:
    """Return `record` with the rounds, passes and seconds of an earlier record `before` added."""
    return replace(
        record,
        round=before.round + record.round,
        passes=before.passes + record.passes,
        seconds=before.seconds + record.seconds,
    )


class Clock:
    """A clock for the wall time and for the time of the solver, which excludes evaluations.

    If a run is resumed from a checkpoint, the time of the solver continues from the saved value,
    but the wall time starts at zero.
    """

    def __init__(self) -> None:
        self.started = self.latest = time.monotonic()
        self.excluded = 0.0  # seconds of the wall time that do not count for the solver

    def wall(self) -> float:
        """Return the seconds since the start; they never decrease."""
        self.latest = max(self.latest, time.monotonic())
        return self.latest - self.started

    def seconds(self) -> float:
        """Return the seconds of the solver alone."""
        return self.wall() - self.excluded


@dataclass
class Trace:
    """The records of a run. The intervals between them are measured in passes, not in time."""

    problem: Solvable
    clock: Clock
    schedule: str
    records: list[Record] = field(default_factory=list)
    spent: float = 0.0  # passes of all scheduled evaluations so far
    scheduled: float = -math.inf  # passes at the last scheduled record

    def record(self, state: State, *, forced: bool = False) -> Record:
        """Return the record of a state, with objective and gap if an evaluation is due or forced.

        Forced evaluations do not change the schedule, so that a resumed run evaluates in the same
        rounds as an uninterrupted one.
        """
        if self.records and self.records[-1].round == state.round:
            return self.records[-1]
        due = self._is_due(state)
        if due:
            self.spent += self.problem.evaluation_passes if self.records else 0.0
            self.scheduled = state.passes
        seconds, wall = self.clock.seconds(), self.clock.wall()
        if not due and not forced:
            return Record(state.round, state.passes, seconds, state.value, math.nan, state.step)
        value, gap = self._evaluate(state)
        self.clock.excluded += self.clock.wall() - wall
        record = Record(state.round, state.passes, seconds, value, gap, state.step)
        self.records.append(record)
        return record

    def _evaluate(self, state: State) -> tuple[float, float]:
        return self.problem.value(state.x), self.problem.residual(state.x)

    def _is_due(self, state: State) -> bool:
        if self.schedule == "every" or not self.records:
            return True
        cost = self.problem.evaluation_passes
        affordable = (
            self.schedule == "early" or self.spent + cost <= EVALUATION_SHARE * state.passes
        )
        return affordable and state.passes >= GROWTH * self.scheduled

    def snapshot(self) -> dict[str, Any]:
        """Return the part of the trace that is saved in a checkpoint."""
        records = [astuple(record) for record in self.records]
        return {
            "records": records,
            "spent": self.spent,
            "scheduled": self.scheduled,
            "seconds": self.clock.seconds(),
        }

    def restore(self, notes: dict[str, Any], state: State) -> None:
        """Restore the trace from a checkpoint.

        Objective and gap of the state are evaluated again, because a certificate is never read from
        a file. A record that was forced by a limit is dropped, because a run with a larger limit
        would not contain it.
        """
        self.records = [Record(*values) for values in notes["records"]]
        self.spent, self.scheduled = notes["spent"], notes["scheduled"]
        last = self.records.pop() if self.records else None
        if last is not None and last.passes == self.scheduled:
            if last.round == state.round:
                value, gap = self._evaluate(state)
                last = replace(last, objective=value, gap=gap)
            self.records.append(last)
        self.clock.excluded = self.clock.wall() - notes["seconds"]
