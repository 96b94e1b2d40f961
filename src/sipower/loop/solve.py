# SPDX-License-Identifier: BSD-3-Clause
"""`solve`: the main loop, with its clock, stopping rules, trace, callbacks and checkpoints.

A solver is a frozen dataclass of hyper-parameters with ``init(problem, x0, seed) -> state`` and
``advance(problem, state) -> state``, one round. A state is a flat dataclass of arrays and
scalars that holds everything that influences later rounds.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from typing import Any, Generic, Literal

import numpy as np

from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed
from sipower.loop.checkpoint import Checkpoint, CheckpointWriter
from sipower.loop.protocols import S, Solver, State, check_contract
from sipower.loop.stall import is_stalled
from sipower.loop.stop import Status, Stop
from sipower.loop.trace import Clock, Record, Trace

__all__ = [
    "Interrupted",
    "Record",
    "Result",
    "Status",
    "Stop",
    "hide_inner_results",
    "is_inner",
    "solve",
]

_IS_INNER = ContextVar("sipower_is_inner", default=False)


@dataclass(frozen=True)
class Result(Generic[S]):
    """The result of `solve`.

    Attributes
    ----------
    x
        Final point; for KL-NMF a pair (W, H).
    value, residual
        Objective and distance from optimality at x.
    status
        Why the run stopped.
    passes
        Number of passes over the data.
    seconds
        Time of the solver in seconds, without the evaluations for the trace.
    trace
        Records of the evaluated rounds.
    state
        Final state of the solver.
    """

    x: Any
    value: float
    residual: float
    status: Status
    passes: float
    seconds: float
    trace: list[Record]
    state: S


class Interrupted(KeyboardInterrupt):
    """The exception raised on Ctrl-C during `solve` or a fit of KL-NMF.

    Attributes
    ----------
    result
        What the interrupted call would have returned if the last completed round had been its last
        one: of `solve` its `Result`; of a fit an object with the factors `W` (samples, K) and `H`
        (features, K), batch `effects` if there are batches, `divergence`, `gap`, `status`, `rounds`
        and `trace`, in the scale of the data that were given.
    """

    def __init__(self, result: Any) -> None:
        super().__init__("Interrupted: `result` holds the last completed round.")
        self.result = result


@contextmanager
def hide_inner_results() -> Iterator[None]:
    """Raise a plain `KeyboardInterrupt` if Ctrl-C ends a `solve` or a fit within the block.

    It is for functions that return something else: `Interrupted` would carry the result of a step
    of theirs as if it were their own. Nor does a fit within the block take time for remarks that
    only its user could need; see `is_inner`.
    """
    outer = _IS_INNER.set(True)
    try:
        yield
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        _IS_INNER.reset(outer)


def is_inner() -> bool:
    """Return whether this runs in a block of `hide_inner_results`, in the same thread."""
    return _IS_INNER.get()


def solve(  # noqa: PLR0913 - the public entry point
    problem: Any,
    solver: Solver[Any, S],
    x0: Any = None,
    *,
    stop: Stop | None = None,
    seed: int = DEFAULT_SEED,
    rng: RNG = None,
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
        Problem and solver, for example ``PCA(A)`` and ``SSciPi()``.
    x0
        Starting point; None: the default start of the solver, which depends on the seed.
    stop
        When to stop, by default at a residual of 1e-6 or after 1,000 rounds. A round that is
        running when the time limit is reached is completed.
    seed
        Seed of all random numbers; the same seed gives the same bits for any number of threads.
    rng
        Seed or NumPy generator, instead of `seed`.
    on_round
        Called with a `Record` after every round; if it returns true, the run stops.
    on_state
        Like `on_round`, but called with the state of the solver as a second argument. The fields of
        a state are not part of the public interface and may change from release to release.
    trace
        When to evaluate objective and residual; the time of these evaluations is not counted in
        `seconds`. "growing": at growing intervals, so that evaluations take at most a tenth of the
        passes; "early": at the same intervals without that limit; "every": after every round.
    checkpoint
        File to which the state is saved from time to time. If the file exists, the run is resumed
        from it and gives the same bits; a checkpoint of another run raises ValueError.
    checkpoint_every
        Maximum number of seconds of work that are lost if the run is killed, or one round if that
        takes longer.

    Returns
    -------
    Result
        Point, value, residual, status, passes, seconds, trace and final state.

    Raises
    ------
    Interrupted
        On Ctrl-C; its attribute `result` is the result after the last completed round.

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
        raise ValueError(f"`trace` must be 'growing', 'early' or 'every', got {trace!r}.")
    check_contract(problem, solver)
    seed = choose_seed(rng, "seed", seed)
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
        is_stopped = on_round is not None and on_round(record)
        return bool(is_stopped) | bool(on_state is not None and on_state(record, state))

    try:
        status = _status(notes, stop, state)
        while status is None:
            new = solver.advance(problem, state)
            if not problem.is_finite(new.x):
                status = Status.NOT_FINITE  # the last finite state is returned
                break
            state = new
            status = _status(notes, stop, state, listener)
            writer.write(state, at_once=status is not None)
        return _result(notes, state, status)
    except KeyboardInterrupt:
        writer.write(state, at_once=True)
        raise Interrupted(_result(notes, state, Status.INTERRUPTED)) from None


def _describe_run(problem: Any, solver: Any, start: tuple[Any, int], x: Any) -> dict[str, Any]:
    """Return the settings that identify a run, for comparison with those in a checkpoint.

    The value and the residual at the start identify the data.
    """
    x0, seed = start
    digest = hashlib.sha256()
    for part in x0 if isinstance(x0, tuple) else (x0,):
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
    """Record the state, call the listener, and return the reason to stop, if there is one."""
    limit = stop.reached_limit(state, notes.clock.wall())
    record = notes.record(state, forced=limit is not None)
    is_asked_to_stop = listener is not None and listener(record, state)
    if record.gap <= stop.tol:
        return Status.CONVERGED
    if is_asked_to_stop or limit is not None or stop.rounding is None:
        return Status.STOPPED if is_asked_to_stop else limit
    return Status.STALLED if is_stalled(notes.records, stop.rounding(notes.records[-1])) else None


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
