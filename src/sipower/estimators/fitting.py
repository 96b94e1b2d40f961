# SPDX-License-Identifier: BSD-3-Clause
"""One fit of KL-NMF as the estimator promises it: guarded, certified, W exact for the final H."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sipower.data.memory import Matrix
from sipower.data.on_disk import StoredMatrix
from sipower.data.validate import as_matrix
from sipower.kernels import Array
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Interrupted, Record, Result, Status, Stop, solve
from sipower.nmf import Factorization, Factors, make_solver
from sipower.problems.kl import KLBlock

__all__ = ["Fit", "Settings", "as_fit", "exact_rows", "fit", "fit_profile"]


@dataclass(frozen=True)
class Fit:
    """Factors and what is known of them; all numbers belong to these very factors."""

    W: Array
    H: Array
    divergence: float
    gap: float
    status: Status
    rounds: int
    trace: list[Record]


def exact_rows(V: Matrix, H: Array, tol: float) -> Array:
    """W of the convex row problems for a given H (m, K), each from a cold start.

    Counts of features that no component has (H is zero there) can be explained by no W; they are
    left out, with a warning.
    """
    V = _without_unexplained(V, H)
    rows, gaps, _ = KLBlock(V, H).solution(tol)
    if gaps.max() > tol:
        warnings.warn(
            f"{int((gaps > tol).sum())} rows are certified to {gaps.max():.1e} only, "
            f"transform_tol is {tol:.1e}.",
            ConvergenceWarning,
            stacklevel=3,
        )
    with np.errstate(over="ignore"):
        W = rows.astype(V.dtype)
    if not np.isfinite(W).all():
        raise ValueError(f"W is too large for {V.dtype}: rescale H or the data.")
    return W


def _without_unexplained(V: Matrix, H: Array) -> Matrix:
    missing = ~H.any(axis=1)
    if not missing.any():
        return V
    if not V.column_mass[missing].sum() > 0:
        return V
    if isinstance(V, StoredMatrix):
        first = int(np.flatnonzero(missing & (V.column_mass > 0))[0])
        raise ValueError(
            f"No component has feature {first}, of which the data on disk have counts: make a "
            "store without it, or read the data into memory."
        )
    lost = V.array[:, np.flatnonzero(missing)]
    row, column = (int(i[0]) for i in lost.nonzero())
    warnings.warn(
        f"No component has feature {int(np.flatnonzero(missing)[column])}, of which row {row} has "
        f"counts: {int(lost.astype(bool).sum())} such entries are left out.",
        UserWarning,
        stacklevel=4,
    )
    kept = V.array * ~missing if V.dense else sp.csr_array(V.array.multiply(~missing))
    return as_matrix(kept, dtype=V.dtype, n_jobs=V.threads)


@dataclass(frozen=True)
class Settings:
    """What a fit needs to know beside the data and the start."""

    solver: str
    stop: Stop
    seed: int
    row_tol: float
    started: float  # on the monotonic clock; the limit of seconds counts from here
    on_round: Callable[[Record, Factors], object]
    checkpoint: Checkpoint | None = None
    fresh: bool = False  # the start is but the random one of the seed: a solver may know a better
    trace: Literal["growing", "every"] = "growing"

    def taken(self) -> AbstractContextManager[None]:
        """Keep other sessions away from the checkpoint, if there is one."""
        return nullcontext() if self.checkpoint is None else self.checkpoint.taken()


def fit(V: Matrix, start: Factors, settings: Settings) -> Fit:
    """Alternate until both halves are certified with W the exact solution for H.

    The loop's own certificate belongs to the loop's W. Should the exact W open the gap of H again,
    the loop goes on from there with a smaller tolerance. Ctrl-C and the time limit leave the
    factors of the last completed round.
    """
    with settings.taken():
        return _fit(V, start, settings)


def fit_profile(problem: Any, start: Factors, settings: Settings) -> Result[Any]:
    """The same for a problem whose rows are exact in every round: one loop ends it."""
    with settings.taken():
        return _Run(problem, settings).go_on(start)


def _fit(V: Matrix, start: Factors, settings: Settings) -> Fit:
    run = _Run(Factorization(V, start.W.shape[1]), settings)
    try:
        return _certified(V, start, run)
    except KeyboardInterrupt:
        if run.latest is None:  # no loop has begun
            raise
        raise Interrupted(replace(run.latest, status=Status.INTERRUPTED)) from None


def _certified(V: Matrix, start: Factors, run: _Run) -> Fit:
    settings = run.settings
    result = run.go_on(None if settings.fresh else start)
    while result.status not in (Status.MAX_SECONDS, Status.NOT_FINITE):
        x = Factors(exact_rows(V, result.x.H, settings.row_tol), result.x.H)
        value, gap = run.problem.value(x), run.problem.residual(x)
        run.trace.append(replace(run.trace[-1], objective=value, gap=gap))
        if gap <= settings.stop.tol:
            return Fit(x.W, x.H, value, gap, Status.CONVERGED, run.rounds, run.trace)
        limit = run.limit() if result.status is Status.CONVERGED else result.status
        if limit is not None:
            return Fit(x.W, x.H, value, gap, limit, run.rounds, run.trace)
        run.loops += 1
        result = run.go_on(x)
    return as_fit(result, run.trace)


def as_fit(result: Result[Any], trace: list[Record] | None = None) -> Fit:
    """The factors of a loop as they are, when there is no time for exact ones."""
    trace = result.trace if trace is None else trace
    W, H = result.x
    return Fit(W, H, result.value, result.residual, result.status, trace[-1].round, trace)


class _Watched:
    """A solver that shows the factors it has come to."""

    x: Factors

    def __init__(self, solver: Any) -> None:
        self.solver = solver
        self.init = solver.init

    def __repr__(self) -> str:
        return repr(self.solver)

    def advance(self, problem: Any, state: Any) -> Any:
        new = self.solver.advance(problem, state)
        self.x = new.x
        return new


class _Run:
    """A fit's successive loops, each to half the tolerance: rounds and seconds add up over them.

    A checkpoint holds the state of the present loop and remembers those before it.
    """

    def __init__(self, problem: Any, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.loops, self.rounds = 0, 0
        self.trace: list[Record] = []
        self.latest: Result[Any] | None = None
        known = None if settings.checkpoint is None else settings.checkpoint.remembered()
        if settings.checkpoint is not None and known is not None:
            with settings.checkpoint.report_damage():
                self.loops, self.rounds = known["loops"], known["rounds"]
                self.trace = [Record(*values) for values in known["trace"]]

    def go_on(self, x: Factors | None) -> Result[Any]:
        """Solve from x within what is left of the limits."""
        stop, spent = self.settings.stop, time.monotonic() - self.settings.started
        tol = stop.tol / 2**self.loops
        rounds = None if stop.rounds is None else max(stop.rounds - self.rounds, 0)
        seconds = None if stop.seconds is None else max(stop.seconds - spent, 0.0)
        limits = Stop(tol, rounds, stop.passes, seconds)
        solver = _Watched(make_solver(self.settings.solver, near=self.rounds > 0))
        before = self._last()

        def tell(record: Record) -> object:
            return self.settings.on_round(_after(before, record), solver.x)

        try:
            result = solve(
                self.problem,
                solver,
                x,
                stop=limits,
                seed=self.settings.seed,
                on_round=tell,
                trace=self.settings.trace,
                checkpoint=self._checkpoint(),
            )
        except Interrupted as interrupt:
            raise Interrupted(self._added(interrupt.result)) from None
        return self._added(result)

    def _checkpoint(self) -> Checkpoint | None:
        if self.settings.checkpoint is None:
            return None
        trace = [astuple(record) for record in self.trace]
        memory = {"loops": self.loops, "rounds": self.rounds, "trace": trace}
        # What an earlier loop of this session has written is not gone on from.
        return replace(self.settings.checkpoint, memory=memory, read=self.latest is None)

    def limit(self) -> Status | None:
        """The limit that is used up, if one is."""
        stop, spent = self.settings.stop, time.monotonic() - self.settings.started
        if stop.rounds is not None and self.rounds >= stop.rounds:
            return Status.MAX_ROUNDS
        return Status.MAX_SECONDS if stop.seconds is not None and spent >= stop.seconds else None

    def _last(self) -> Record:
        return self.trace[-1] if self.trace else Record(0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def _added(self, result: Result[Any]) -> Result[Any]:
        last = self._last()
        self.trace += [_after(last, record) for record in result.trace]
        self.rounds += result.state.round
        self.latest = replace(result, trace=self.trace)
        return self.latest


def _after(last: Record, record: Record) -> Record:
    """A record of a loop in the count of the whole fit, of which `last` is that before the loop."""
    return replace(
        record,
        round=record.round + last.round,
        passes=record.passes + last.passes,
        seconds=record.seconds + last.seconds,
    )
