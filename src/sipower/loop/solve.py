# SPDX-License-Identifier: BSD-3-Clause
"""`solve`: the only loop of the library. It owns time, stopping, trace, callbacks, checkpoints.

A solver is a frozen dataclass of hyper-parameters with ``init(problem, x0, seed) -> state`` and
``advance(problem, state) -> state``, one round. A state is a flat dataclass of arrays and
scalars that holds everything that influences the future.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any, Generic, Literal

import numpy as np

from sipower.loop.checkpoint import Checkpoint, CheckpointWriter
from sipower.loop.protocols import S, Solver, State, check_contract
from sipower.loop.stop import Status, Stop
from sipower.loop.trace import Clock, Record, Trace

__all__ = [
    "Interrupted",
    "Record",
    "Result",
    "Status",
    "Stop",
    "solve",
]


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


def solve(  # noqa: PLR0913 - the public entry point: what, how, when to stop, what to tell
    problem: Any,
    solver: Solver[Any, S],
    x0: Any = None,
    *,
    stop: Stop | None = None,
    seed: int = 0,
    on_round: Callable[[Record], object] | None = None,
    on_state: Callable[[Record, S], object] | None = None,
    trace: Literal["growing", "early", "every"] = "growing",
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
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
    on_state
        The same with the solver's state as a second argument. What a state holds is the solver's
        own affair and may change from release to release.
    trace
        When to evaluate objective and residual, off the clock: on a growing schedule that takes at
        most a tenth of the passes, on the same from the first round on, or after every round.
    checkpoint, checkpoint_every
        File that receives the state so often that no more than so many seconds, or one round, can
        be lost. If it exists the run goes on from it, to the same bits; one of another run is
        refused.

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
    check_contract(problem, solver)
    clock = Clock()
    state = solver.init(problem, x0, operator.index(seed))
    notes = Trace(problem, clock, trace)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(
            checkpoint, checkpoint_every, _describe_run(problem, solver, (x0, seed), state.x)
        )
    writer = CheckpointWriter(checkpoint, notes)
    state = writer.resume(state)

    def listener(record: Record, state: S) -> bool:
        asked = on_round is not None and on_round(record)
        return bool(asked) | bool(on_state is not None and on_state(record, state))

    try:
        status = _status(notes, stop, state)
        while status is None:
            new = solver.advance(problem, state)
            if not problem.is_finite(new.x):
                status = Status.NOT_FINITE  # what is returned is the last finite state
                break
            state = new
            status = _status(notes, stop, state, listener)
            writer.write(state, at_once=status is not None)
        return _result(notes, state, status)
    except KeyboardInterrupt:
        writer.write(state, at_once=True)
        raise Interrupted(_result(notes, state, Status.INTERRUPTED)) from None


def _describe_run(problem: Any, solver: Any, start: tuple[Any, int], x: Any) -> dict[str, Any]:
    """What a run is: names may be alike, but the data show in what the start x is worth."""
    given, seed = start
    digest = hashlib.sha256()
    for part in given if isinstance(given, tuple) else (given,):
        digest.update(b"" if part is None else np.ascontiguousarray(part).data)
    return {
        "solver": repr(solver),
        "problem": repr(problem),
        "seed": operator.index(seed),
        "start": digest.hexdigest(),
        "data": [float(problem.value(x)), float(problem.residual(x))],
    }


def _status(
    notes: Trace, stop: Stop, state: State, listener: Callable[..., object] | None = None
) -> Status | None:
    """Record the state, tell the listener, and return why to stop, if there is a reason."""
    limit = stop.reached(state, notes.clock.wall())
    record = notes.record(state, forced=limit is not None)
    is_asked_to_stop = listener is not None and listener(record, state)
    if record.gap <= stop.tol:
        return Status.CONVERGED
    return Status.STOPPED if is_asked_to_stop else limit


def _result(notes: Trace, state: S, status: Status) -> Result[S]:
    seconds = notes.clock.seconds()
    record = notes.record(state, forced=True)
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
