# SPDX-License-Identifier: BSD-3-Clause
"""`fit`: one certified fit of KL-NMF, with W the exact solution for the final H."""

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

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.race import race_starts
from sipower.kernels import Array
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Interrupted, Record, Result, Status, Stop, solve
from sipower.loop.trace import NO_WORK, add_counts
from sipower.nmf import Factors, make_solver
from sipower.nmf.batch_effects import BatchEffects, BatchFactorization
from sipower.problems.item_problem import NO_TERMS, Terms
from sipower.problems.kl import KLBlock

__all__ = ["Fit", "FitSettings", "as_fit", "exact_rows", "fit", "item_name"]


@dataclass(frozen=True)
class Fit:
    """The result of a fit: factors W (n, K) and H (m, K) with their divergence, gap and trace.

    `effects` holds the batch effects (batches, m), if there are batches.
    """

    W: Array
    H: Array
    divergence: float
    gap: float
    status: Status
    rounds: int
    trace: list[Record]
    effects: Array | None = None


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

    def lock(self) -> AbstractContextManager[None]:
        """Lock the checkpoint, if there is one, until the block ends."""
        return nullcontext() if self.checkpoint is None else self.checkpoint.lock()


# ---- rows for a given H ----------------------------------------------------------------------


def exact_rows(V: RowBlocks, H: Array, tol: float, terms: Terms = NO_TERMS) -> Array:
    """Solve the convex row problems for a given H (m, K) and return W (n, K).

    Every row starts from the uniform point. Counts of features that no component contains (H is
    zero there) are left out with a warning, because no W can explain them.
    """
    V = leave_out_unexplained(V, H)
    rows, gaps, _ = KLBlock(V, H, terms=terms).solution(tol)
    if gaps.max() > tol:
        warnings.warn(
            f"{int((gaps > tol).sum())} rows of W are certified only to {gaps.max():.1e}, but "
            f"`transform_tol` is {tol:.1e}: increase it, or use float64.",
            ConvergenceWarning,
            stacklevel=3,
        )
    with np.errstate(over="ignore"):
        W = rows.astype(V.dtype)
    if not np.isfinite(W).all():
        raise ValueError(f"W is too large for {V.dtype}: rescale H or the data, or use float64.")
    return W


def leave_out_unexplained(V: RowBlocks, H: Array, *, warn: bool = True) -> RowBlocks:
    """Return V without counts of features that no component contains, and warn if there are any."""
    missing = ~H.any(axis=1)
    if not missing.any() or not V.column_mass[missing].sum() > 0:
        return V
    if not V.is_in_memory:
        first = int(np.flatnonzero(missing & (V.column_mass > 0))[0])
        raise ValueError(
            f"No component has {item_name('feature', first, V.column_names)}, but the data on disk "
            "have counts of it: create a store without it, or read the data into memory."
        )
    if warn:
        _warn_about_unexplained(V, missing)
    explained = V.array * ~missing if V.dense else sp.csr_array(V.array.multiply(~missing))
    return as_matrix(explained, dtype=V.dtype, n_jobs=V.threads)


def _warn_about_unexplained(V: RowBlocks, missing: Any) -> None:
    lost = V.array[:, np.flatnonzero(missing)]
    row, column = (int(i[0]) for i in lost.nonzero())
    feature, count = int(np.flatnonzero(missing)[column]), int(lost.astype(bool).sum())
    entries = "1 such entry is" if count == 1 else f"{count:,} such entries are"
    warnings.warn(
        f"No component has {item_name('feature', feature, V.column_names)}, but "
        f"{item_name('row', row, V.row_names)} has counts of it: {entries} left out.",
        UserWarning,
        stacklevel=5,
    )


def item_name(kind: str, at: int, names: Array | None) -> str:
    """Return the name of a sample or feature for a message."""
    return f"{kind} {at} (counted from 0)" if names is None else f"{kind} {str(names[at])!r}"


# ---- the fit ---------------------------------------------------------------------------------


def fit(problem: Any, start: Factors | None, settings: FitSettings) -> Fit:
    """Fit a factorisation until both halves are certified, with W the exact solution for H.

    The certificate of the loop belongs to the W of the loop. If the exact W raises the gap of H
    above the tolerance, another loop with half the tolerance follows. Ctrl-C and the time limit
    leave the factors of the last completed round. If `start` is None, the solver draws one.
    """
    with settings.lock():
        loops = _Loops(problem, settings)
        try:
            return _certify(start, loops)
        except KeyboardInterrupt:
            if loops.latest is None:  # no loop has begun
                raise
            raise Interrupted(replace(loops.latest, status=Status.INTERRUPTED)) from None


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
        if end.gap <= settings.stop.tol:
            status = Status.CONVERGED
        if status is not None:
            return _as_fit(problem, x, end, status, loops.trace)
        result = loops.run(x)
    return as_fit(problem, result)


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
        return self.settings.stop.reached_limit(self.last, self._elapsed())

    def race(self) -> Result[Any]:
        """Return the best of `n_init` starts; the trace begins with the work of all of them."""
        settings = self.settings
        seeds = range(settings.seed, settings.seed + settings.n_init)
        result, total = race_starts(
            self.problem,
            seeds,
            self._make_solver,
            lambda done: settings.stop.remaining(done, self._elapsed()),
            settings.on_round,
        )
        self.trace = [replace(total, objective=result.value, gap=result.residual)]
        self.latest = replace(result, trace=self.trace)
        return self.latest

    def _make_solver(self, *, near: bool) -> Any:
        if isinstance(self.problem, BatchFactorization):
            return BatchEffects(near, self.settings.sample)
        surplus, sample = self.settings.surplus, self.settings.sample
        return make_solver(self.settings.solver, near=near, surplus=surplus, sample=sample)

    def run(self, x: Factors | None) -> Result[Any]:
        """Run a loop from x within the remaining limits."""
        settings, before = self.settings, self.last
        stop = settings.stop.remaining(before, self._elapsed())

        def on_state(record: Record, state: Any) -> object:
            return settings.on_round(add_counts(before, record), state.x)

        try:
            result = solve(
                self.problem,
                self._make_solver(near=before.round > 0),
                x,
                stop=replace(stop, tol=stop.tol / 2**self.count),
                seed=settings.seed,
                on_state=on_state,
                trace=settings.trace,
                checkpoint=self._checkpoint(),
            )
        except Interrupted as interrupt:
            raise Interrupted(self._append(interrupt.result)) from None
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
