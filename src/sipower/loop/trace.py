# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a run: records of objective and gap, when they are evaluated, and the clock."""

from __future__ import annotations

import math
import time
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from sipower.loop.protocols import Solvable, State

__all__ = ["Clock", "Record", "Trace"]

EVALUATION_SHARE = 0.1  # of the passes, at most this many go into filling the trace
GROWTH = 1.15  # the trace's passes grow by this factor from record to record


@dataclass(frozen=True)
class Record:
    """One line of the trace. Objective and gap are NaN in a round that was not evaluated."""

    round: int
    passes: float
    seconds: float
    objective: float
    gap: float
    step: float


class Clock:
    """Seconds of the solver, without those of evaluations, and wall time with everything.

    A run that goes on from a checkpoint adds to its seconds; its wall time begins anew.
    """

    def __init__(self) -> None:
        self.started = self.latest = time.monotonic()
        self.off = 0.0

    def wall(self) -> float:
        """Seconds since the start, with everything; a clock that goes back stands still."""
        self.latest = max(self.latest, time.monotonic())
        return self.latest - self.started

    def seconds(self) -> float:
        """Seconds of the solver alone."""
        return self.wall() - self.off


@dataclass
class Trace:
    """Records on a growing schedule: counted in passes, so that it does not depend on time."""

    problem: Solvable
    clock: Clock
    schedule: str
    records: list[Record] = field(default_factory=list)
    spent: float = 0.0
    scheduled: float = -math.inf  # passes at the last record that was due

    def record(self, state: State, *, forced: bool = False) -> Record:
        """Objective and gap where they are due or asked for; the latter leave the schedule alone.

        So a run that was stopped and goes on evaluates where an uninterrupted one does.
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
        value, gap = self._evaluated(state)
        self.clock.off += self.clock.wall() - wall
        record = Record(state.round, state.passes, seconds, value, gap, state.step)
        self.records.append(record)
        return record

    def _evaluated(self, state: State) -> tuple[float, float]:
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
        """Return what a checkpoint holds of the trace."""
        records = [astuple(record) for record in self.records]
        return {
            "records": records,
            "spent": self.spent,
            "scheduled": self.scheduled,
            "seconds": self.clock.seconds(),
        }

    def restore(self, notes: dict[str, Any], state: State) -> None:
        """Restore the trace from a checkpoint.

        What the state is worth is evaluated again: no certificate is taken from a file. A record
        that only a limit asked for is dropped, for a run with a larger one does not have it.
        """
        self.records = [Record(*values) for values in notes["records"]]
        self.spent, self.scheduled = notes["spent"], notes["scheduled"]
        last = self.records.pop() if self.records else None
        if last is not None and last.passes == self.scheduled:
            if last.round == state.round:
                value, gap = self._evaluated(state)
                last = replace(last, objective=value, gap=gap)
            self.records.append(last)
        self.clock.off = self.clock.wall() - notes["seconds"]
