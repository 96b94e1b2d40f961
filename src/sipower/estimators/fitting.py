# SPDX-License-Identifier: BSD-3-Clause
"""One fit of KL-NMF as the estimator promises it: guarded, certified, W exact for the final H."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sipower.kernels import Array
from sipower.matrix import Matrix
from sipower.nmf import RULES, Alternating, Factorization, Factors
from sipower.problems.kl import KLBlock
from sipower.solve import Interrupted, Record, Result, Status, Stop, solve
from sipower.solvers import Guarded

__all__ = ["Fit", "exact_rows", "fit"]


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
    """W of the convex row problems for a given H (m, K), each from a cold start."""
    rows, _ = KLBlock(V, H).solution(tol)
    return rows.astype(V.dtype)


def make_solver(name: str) -> Any:
    """The alternating solver of a registered rule; guarded unless the rule is monotone itself."""
    alternating = Alternating(RULES[name]())
    return alternating if alternating.rule.monotone else Guarded(alternating)


@dataclass(frozen=True)
class Settings:
    """What a fit needs to know beside the data and the start."""

    solver: str
    stop: Stop
    seed: int
    row_tol: float
    on_round: Callable[[Record], object] | None = None


def fit(V: Matrix, start: Factors, settings: Settings) -> Fit:
    """Alternate until both halves are certified with W the exact solution for H.

    The loop's own certificate belongs to the loop's W. Should the exact W open the gap of H again,
    the loop goes on from there with a smaller tolerance.
    """
    problem, solver = Factorization(V, start.W.shape[1]), make_solver(settings.solver)
    stop, x, done = settings.stop, start, 0
    trace: list[Record] = []
    while True:
        limits = replace(stop, rounds=None if stop.rounds is None else stop.rounds - done)
        result = _loop(problem, solver, x, limits, settings)
        trace += [replace(r, round=r.round + done) for r in result.trace]
        done += result.state.round
        if result.status in (Status.MAX_SECONDS, Status.NOT_FINITE):
            return _as_fit(result, done, trace)
        x = Factors(exact_rows(V, result.x.H, settings.row_tol), result.x.H)
        gap = problem.residual(x)
        if gap <= settings.stop.tol or result.status is not Status.CONVERGED:
            status = Status.CONVERGED if gap <= settings.stop.tol else result.status
            return Fit(x.W, x.H, problem.value(x), gap, status, done, trace)
        stop = replace(stop, tol=stop.tol / 2)


def _loop(
    problem: Factorization, solver: Any, x: Factors, stop: Stop, settings: Settings
) -> Result[Any]:
    try:
        return solve(problem, solver, x, stop=stop, seed=settings.seed, on_round=settings.on_round)
    except Interrupted as interrupt:
        result = interrupt.result
        interrupt.fit = _as_fit(result, result.state.round, result.trace)  # type: ignore[attr-defined]
        raise


def _as_fit(result: Result[Any], rounds: int, trace: list[Record]) -> Fit:
    W, H = result.x
    status = result.status
    return Fit(W, H, result.value, result.residual, status, rounds, trace)
