# SPDX-License-Identifier: BSD-3-Clause
"""`solve`: the only loop of the library. It owns time, stopping, trace, callbacks, checkpoints.

A solver is a frozen dataclass of hyper-parameters with ``init(problem, x0, seed) -> state`` and
``advance(problem, state) -> state``, one round. A state is a flat dataclass of arrays and
scalars that holds everything that influences the future.
"""

from __future__ import annotations

import enum
import math
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Generic, Literal

from sipower.checkpoint import load_state, save_state
from sipower.protocols import S, Solvable, Solver, State

__all__ = [
    "Interrupted",
    "Record",
    "Result",
    "Status",
    "Stop",
    "solve",
]

EVALUATION_SHARE = 0.1  # of the passes, at most this many go into filling the trace
GROWTH = 1.15  # the trace's passes grow by this factor from record to record


class Status(enum.Enum):
    """Why `solve` stopped."""

    CONVERGED = "converged"
    MAX_ROUNDS = "max_rounds"
    MAX_PASSES = "max_passes"
    MAX_SECONDS = "max_seconds"
    STOPPED = "stopped"  # the callback asked for it
    INTERRUPTED = "interrupted"
    NOT_FINITE = "not_finite"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Stop:
    """When to stop: at a residual of tol, or after so many rounds, passes or seconds.

    None is no limit.
    """

    tol: float = 1e-6
    rounds: int | None = 1000
    passes: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("tol", "rounds", "passes", "seconds"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise ValueError(f"{name} is {limit}, expected a number of at least 0.")

    def reached(self, state: State, elapsed: float) -> Status | None:
        """Return the limit that is used up, if one is."""
        if self.rounds is not None and state.round >= self.rounds:
            return Status.MAX_ROUNDS
        if self.passes is not None and state.passes >= self.passes:
            return Status.MAX_PASSES
        if self.seconds is not None and elapsed >= self.seconds:
            return Status.MAX_SECONDS
        return None


@dataclass(frozen=True)
class Record:
    """One line of the trace. Objective and gap are NaN in a round that was not evaluated."""

    round: int
    passes: float
    seconds: float
    objective: float
    gap: float
    step: float


@dataclass(frozen=True)
class Result(Generic[S]):
    """What `solve` returns."""

    x: Any
    value: float
    residual: float
    status: Status
    passes: float
    seconds: float
    trace: list[Record]
    state: S


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `solve`; `result` is that of the last completed round."""

    def __init__(self, result: Result[Any]) -> None:
        super().__init__("interrupted; the result of the last completed round is in .result")
        self.result = result


class _Clock:
    """Seconds of the solver, without those of evaluations, and wall time with everything."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.off = 0.0

    def wall(self) -> float:
        return time.monotonic() - self.started

    def seconds(self) -> float:
        return self.wall() - self.off


@dataclass
class _Trace:
    """Records on a growing schedule: counted in passes, so that it does not depend on time."""

    problem: Solvable
    clock: _Clock
    schedule: str
    records: list[Record] = field(default_factory=list)
    spent: float = 0.0

    def is_due(self, state: State) -> bool:
        if self.schedule == "every" or not self.records:
            return True
        cost = self.problem.evaluation_passes
        affordable = (
            self.schedule == "early" or self.spent + cost <= EVALUATION_SHARE * state.passes
        )
        return affordable and state.passes >= GROWTH * self.records[-1].passes

    def evaluate(self, state: State) -> Record:
        if self.records and self.records[-1].round == state.round:
            return self.records[-1]
        seconds, wall = self.clock.seconds(), self.clock.wall()
        value = self.problem.value(state.x)
        gap = self.problem.residual(state.x)
        self.spent += self.problem.evaluation_passes if self.records else 0.0
        self.clock.off += self.clock.wall() - wall
        record = Record(state.round, state.passes, seconds, value, gap, state.step)
        self.records.append(record)
        return record

    def blank(self, state: State) -> Record:
        seconds = self.clock.seconds()
        return Record(state.round, state.passes, seconds, state.value, math.nan, state.step)


def solve(  # noqa: PLR0913 - the public entry point: what, how, when to stop, what to tell
    problem: Any,
    solver: Solver[Any, S],
    x0: Any = None,
    *,
    stop: Stop | None = None,
    seed: int = 0,
    on_round: Callable[[Record], object] | None = None,
    trace: Literal["growing", "early", "every"] = "growing",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Result[S]:
    """Run a solver on a problem until it has converged or a limit is reached.

    Parameters
    ----------
    problem, solver
        For example ``PCA(A)`` and ``SSciPi()``.
    x0
        Start; None lets the problem choose one from the seed.
    stop
        When to stop, by default at a residual of 1e-6 or after 1,000 rounds. What is running when
        the seconds are over is finished first.
    seed
        Same seed, same bits, for any number of threads.
    on_round
        Called with a `Record` after every round; a true answer stops the run.
    trace
        When to evaluate objective and residual, off the clock: on a growing schedule that takes at
        most a tenth of the passes, on the same from the first round on, or after every round.
    checkpoint, checkpoint_every
        File that receives the state at least every so many seconds. If it exists the run goes on
        from it, to the same bits; one of another run is refused.

    Returns
    -------
    Result
        Point, value, residual, status, passes, seconds, trace and final state.

    Raises
    ------
    Interrupted
        On Ctrl-C; its `result` is that of the last completed round.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import SciPi, solve
    >>> from sipower.problems import PCA
    >>> A = np.random.default_rng(0).normal(size=(50, 3)) * [3, 2, 1]
    >>> result = solve(PCA(A), SciPi())
    >>> str(result.status), bool(result.residual <= 1e-6)
    ('converged', True)
    """
    stop = Stop() if stop is None else stop
    if trace not in ("growing", "early", "every"):
        raise ValueError(f"trace is {trace!r}, expected 'growing', 'early' or 'every'.")
    clock = _Clock()
    state = solver.init(problem, x0, operator.index(seed))
    run = f"{solver!r} on {problem!r}"
    if checkpoint is not None:
        state = load_state(checkpoint, state, run)
    notes = _Trace(problem, clock, trace)
    saved = clock.wall()
    try:
        status = _status_at_start(notes.evaluate(state), stop, state, clock)
        while status is None:
            new = solver.advance(problem, state)
            if not problem.is_finite(new.x):
                status = Status.NOT_FINITE  # what is returned is the last finite state
                break
            state = new
            status = _after_round(notes, stop, state, on_round)
            due = status is not None or clock.wall() - saved >= checkpoint_every
            if checkpoint is not None and due:
                save_state(checkpoint, state, run)
                saved = clock.wall()
    except KeyboardInterrupt:
        if checkpoint is not None:
            save_state(checkpoint, state, run)
        raise Interrupted(_result(notes, state, Status.INTERRUPTED)) from None
    return _result(notes, state, status)


def _status_at_start(record: Record, stop: Stop, state: State, clock: _Clock) -> Status | None:
    if record.gap <= stop.tol:
        return Status.CONVERGED
    return stop.reached(state, clock.wall())


def _after_round(
    notes: _Trace, stop: Stop, state: State, on_round: Callable[[Record], object] | None
) -> Status | None:
    limit = stop.reached(state, notes.clock.wall())
    evaluate = notes.is_due(state) or limit is not None
    record = notes.evaluate(state) if evaluate else notes.blank(state)
    asked = on_round is not None and on_round(record)
    if record.gap <= stop.tol:
        return Status.CONVERGED
    return Status.STOPPED if asked else limit


def _result(notes: _Trace, state: S, status: Status) -> Result[S]:
    seconds = notes.clock.seconds()
    record = notes.evaluate(state)
    return Result(
        x=state.x,
        value=record.objective,
        residual=record.gap,
        status=status,
        passes=state.passes,
        seconds=seconds,
        trace=notes.records,
        state=state,
    )
