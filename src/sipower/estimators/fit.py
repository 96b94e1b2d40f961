# SPDX-License-Identifier: BSD-3-Clause
"""`fit`: one certified fit of KL-NMF, with W the exact solution for the final H."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass, replace
from typing import Any, Literal

import numpy as np

from sipower.estimators.exact_rows import exact_rows
from sipower.estimators.race import race_starts
from sipower.estimators.verdict import agrees, stall_rounding
from sipower.kernels import Array
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Interrupted, Record, Result, Status, Stop, solve
from sipower.loop.trace import NO_WORK, add_counts
from sipower.nmf import Factors, make_solver
from sipower.nmf.batch_effects import BatchEffects, BatchFactorization
from sipower.verification import Verification

__all__ = ["Fit", "FitSettings", "as_fit", "fit"]


MAX_LOOPS = 50  # each halves the tolerance


@dataclass(frozen=True)
class Fit:
    """The result of a fit: factors W (n, K) and H (m, K) with their divergence, gap and trace.

    `effects` holds the batch effects (batches, m), if there are batches. `verification` is the
    result of the verifier, if it was asked.
    """

    W: Array
    H: Array
    divergence: float
    gap: float
    status: Status
    rounds: int
    trace: list[Record]
    effects: Array | None = None
    verification: Verification | None = None


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit other than the problem and the start."""

    solver: str
    stop: Stop
    seed: int
    row_tol: float
    started: float  # time.monotonic() at the start, for the time limit
    on_round: Callable[[Record, Factors], object]
    checkpoint: Checkpoint | None = None
    trace: Literal["growing", "every"] = "growing"
    surplus: bool = False  # whether to race a random start against one with surplus components
    n_init: int = 1  # number of random starts
    sample: bool = False  # whether a start comes from a sample of the rows
    # The verifier of a final point of the problem; None: the certificate of the loop decides.
    verify: Callable[[Any], Verification] | None = None

    def lock(self) -> AbstractContextManager[None]:
        """Lock the checkpoint, if there is one, until the block ends."""
        return nullcontext() if self.checkpoint is None else self.checkpoint.lock()


def fit(problem: Any, start: Factors | None, settings: FitSettings) -> Fit:
    """Fit a factorisation until both halves are certified, with W the exact solution for H.

    The certificate of the loop belongs to the W of the loop. If the exact W raises the gap of H
    above the tolerance, another loop with half the tolerance follows. The loop only proposes that
    the fit has converged; `settings.verify` decides. The time limit leaves the factors of the last
    completed round; so does Ctrl-C, which raises `Interrupted` with their `Fit`. If `start` is
    None, the solver draws one.
    """
    with settings.lock():
        loops = _Loops(problem, settings)
        try:
            return _certify(start, loops)
        except KeyboardInterrupt:
            if loops.latest is None:  # no loop has begun
                raise
            result = replace(loops.latest, status=Status.INTERRUPTED)
            raise Interrupted(as_fit(problem, result)) from None


def _certify(start: Factors | None, loops: _Loops) -> Fit:
    settings, problem = loops.settings, loops.problem
    result = None
    if settings.n_init > 1 and not loops.is_resumed:
        result = loops.race()
        start = result.x
    if result is None or result.status is not Status.STOPPED:
        result = loops.run(start)
    while result.status not in (Status.MAX_SECONDS, Status.NOT_FINITE):
        x = result.x._replace(W=_solve_rows(problem, result.x, settings.row_tol))
        end = replace(loops.last, objective=problem.value(x), gap=problem.residual(x))
        loops.trace.append(end)
        status = loops.limit() if result.status is Status.CONVERGED else result.status
        verification = None
        if end.gap <= settings.stop.tol:
            verdict, verification = _verify(loops, x, end)
            status = verdict or status
        if status is Status.STALLED and problem.V.dtype != np.float64:
            status = Status.WORKING_PRECISION
        if status is not None:
            fit = _as_fit(problem, x, end, status, loops.trace)
            return replace(fit, verification=verification)
        result = loops.run(x)
    return as_fit(problem, result)


def _verify(loops: _Loops, x: Any, end: Record) -> tuple[Status | None, Verification | None]:
    """Return the status of a point whose gap, by the solver, is at most the tolerance.

    The status is None if the verifier confirms the numbers of the solver, but its gap exceeds the
    tolerance by a rounding error. Another loop follows then, up to `MAX_LOOPS` in all.
    """
    problem, settings = loops.problem, loops.settings
    if settings.verify is None or not problem.V.total > 0:  # no counts: the factors are zero
        return Status.CONVERGED, None
    verification = settings.verify(x)
    found = problem.without_penalties(end.objective, x), end.gap
    if not agrees(verification, *found, problem.V):
        return Status.NOT_VERIFIED, verification
    if verification.is_converged(settings.stop.tol):
        return Status.CONVERGED, verification
    return None, verification


def _solve_rows(problem: Any, x: Any, tol: float) -> Any:
    """Return the exact W for H, here or where the rows are."""
    if hasattr(problem, "solve_rows"):
        return problem.solve_rows(x, tol)
    return exact_rows(problem.V, x.H, tol, problem.row_terms(x))


def as_fit(problem: Any, result: Result[Any]) -> Fit:
    """Return the result of a loop as a `Fit`, without solving the rows exactly."""
    end = replace(result.trace[-1], objective=result.value, gap=result.residual)
    return _as_fit(problem, result.x, end, result.status, result.trace)


def _as_fit(problem: Any, x: Any, end: Record, status: Status, trace: list[Record]) -> Fit:
    divergence = problem.without_penalties(end.objective, x)
    effects = getattr(x, "effects", None)
    return Fit(x.W, x.H, divergence, end.gap, status, end.round, trace, effects)


class _Loops:
    """The successive loops of a fit, each with half the tolerance of the one before.

    Their rounds, passes and seconds are added up. A checkpoint holds the state of the current loop
    and the trace of the earlier ones.
    """

    def __init__(self, problem: Any, settings: FitSettings) -> None:
        self.problem, self.settings = problem, settings
        self.count = 0  # loops completed
        self.trace: list[Record] = []
        self.latest: Result[Any] | None = None
        self.is_resumed = False
        checkpoint = settings.checkpoint
        memory = None if checkpoint is None else checkpoint.load_memory()
        if checkpoint is not None and memory is not None:
            self.is_resumed = True
            with checkpoint.report_damage():
                self.count = memory["loops"]
                self.trace = [Record(*values) for values in memory["trace"]]

    @property
    def last(self) -> Record:
        """The latest record of the fit, or a record of zero work before the first round."""
        return self.trace[-1] if self.trace else NO_WORK

    def _elapsed(self) -> float:
        return time.monotonic() - self.settings.started

    def limit(self) -> Status | None:
        """Return the limit of the whole fit that has been reached, or None."""
        limit = self.settings.stop.reached_limit(self.last, self._elapsed())
        is_last = self.count >= MAX_LOOPS
        return limit or (Status.STALLED if is_last else None)

    def race(self) -> Result[Any]:
        """Return the best of `n_init` starts; the trace begins with the work of all of them."""
        settings = self.settings
        seeds = range(settings.seed, settings.seed + settings.n_init)
        try:
            result = race_starts(
                self.problem,
                seeds,
                self._make_solver,
                lambda done: settings.stop.remaining(done, self._elapsed()),
                settings.on_round,
            )
        except Interrupted as interrupt:
            self.latest = interrupt.result
            raise
        self.trace = result.trace
        self.latest = result
        return result

    def _make_solver(self, *, near: bool) -> Any:
        if isinstance(self.problem, BatchFactorization):
            return BatchEffects(near, self.settings.sample)
        surplus, sample = self.settings.surplus, self.settings.sample
        return make_solver(self.settings.solver, near=near, surplus=surplus, sample=sample)

    def run(self, x: Factors | None) -> Result[Any]:
        """Run a loop from x within the remaining limits."""
        settings, before = self.settings, self.last
        stop = settings.stop.remaining(before, self._elapsed())
        rounding = stall_rounding(self.problem.V) if stop.tol > 0 else None

        def on_state(record: Record, state: Any) -> object:
            return settings.on_round(add_counts(before, record), state.x)

        try:
            result = solve(
                self.problem,
                self._make_solver(near=before.round > 0),
                x,
                stop=replace(stop, tol=stop.tol / 2**self.count, rounding=rounding),
                seed=settings.seed,
                on_state=on_state,
                trace=settings.trace,
                checkpoint=self._checkpoint(),
            )
        except Interrupted as interrupt:
            self._append(interrupt.result)
            raise
        return self._append(result)

    def _checkpoint(self) -> Checkpoint | None:
        if self.settings.checkpoint is None:
            return None
        memory = {"loops": self.count, "trace": [astuple(record) for record in self.trace]}
        # A checkpoint that an earlier loop of this fit has written is not resumed.
        return replace(self.settings.checkpoint, memory=memory, read=self.latest is None)

    def _append(self, result: Result[Any]) -> Result[Any]:
        before = self.last
        self.trace += [add_counts(before, record) for record in result.trace]
        self.count += 1
        self.latest = replace(result, trace=self.trace)
        return self.latest
