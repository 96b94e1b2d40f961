# SPDX-License-Identifier: BSD-3-Clause
"""Executing the runs in a few processes; each adds a line to the table when it ends."""

from __future__ import annotations

import math
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import file_lock
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.datasets import load
from sipower.experiments.budgets import EXPERIMENTS, Budget
from sipower.experiments.methods import METHODS
from sipower.experiments.protocol import Protocol
from sipower.experiments.table import Row, Run, append, key_of, read
from sipower.kernels import count_threads
from sipower.loop.solve import Stop, solve
from sipower.loop.trace import Clock
from sipower.nmf import MU, Alternating, Factorization, Factors, Half, OnBlock, SSciPiRule
from sipower.problems.base import Point
from sipower.problems.kl import KLBlock
from sipower.results.provenance import provenance
from sipower.solvers.s_sci_pi import SSciPi

__all__ = ["execute", "reproduce"]

RANK = 20
OVERHEAD = 1.25  # wall time of a run over the solver's own: evaluations, loading, the start
THRESHOLD = SSciPiRule().threshold


def reproduce(
    experiments: Iterable[str],
    budget: Budget,
    table: Path,
    *,
    jobs: int | None = None,
    on_row: Callable[[Row, int, float], object] | None = None,
) -> list[Row]:
    """Do all runs of the experiments that are not in the table yet.

    Parameters
    ----------
    experiments, budget
        Names of experiments, and how much of them is run.
    table
        File that receives a line after each run.
    jobs
        Number of runs at a time, each with one thread; None: as many as there are cores.
    on_row
        Called after each run with its row, the number of runs left in this stage of the protocol
        and an estimate of the seconds that they take.

    Returns
    -------
    rows
        Those of the budget, of all experiments that were ever run.
    """
    experiments = list(experiments)
    jobs = jobs or count_threads(None)
    table.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(table):
        while todo := _missing_runs(experiments, budget, table):
            cost = {run.key: _expected_seconds(run) for run in todo}
            for row in _executed(todo, table, jobs):
                del cost[key_of(row)]
                if on_row is not None:
                    on_row(row, len(cost), sum(cost.values()) / jobs)
    rows = read(table)
    protocol = Protocol(budget, rows)
    planned = {run.key for name in EXPERIMENTS for run in protocol.plan(name)}
    return [row for row in rows if key_of(row) in planned]


def _missing_runs(experiments: list[str], budget: Budget, table: Path) -> list[Run]:
    """The runs that are known and not in the table."""
    protocol = Protocol(budget, read(table))
    planned = {run.key: run for name in experiments for run in protocol.plan(name)}
    return [run for key, run in planned.items() if key not in protocol.rows]


def _expected_seconds(run: Run) -> float:
    """A guess: most runs reach their passes at about half of their seconds."""
    return (OVERHEAD * run.seconds / 2) if run.method != "exact" else 1.0


def _executed(runs: list[Run], table: Path, jobs: int) -> Iterator[Row]:
    """The rows of the runs, each already in the table, in the order in which they finish."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_leave_interrupts_to_parent)
    try:
        for future in as_completed([pool.submit(_execute_into, table, jobs, run) for run in runs]):
            yield future.result()
    except BrokenProcessPool:
        raise ValueError(
            "A run was killed, perhaps for want of memory: the rest is saved; try fewer jobs."
        ) from None
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _execute_into(table: Path, jobs: int, run: Run) -> Row:
    row = execute(run) | {"jobs": jobs}
    append(table, row)
    return row


def execute(run: Run) -> Row:
    """Do one run and return its row."""
    V = _matrix(run.dataset)
    start = _start(run.dataset, run.seed)
    params = dict(run.params)
    if run.method == "exact":
        return _row(run, [(0.0, 0.0, _solve_exactly(V, start))], "converged", 0.0)
    if run.problem == "signs":
        return _row(run, _negative_shares(V, start, run), "measured", 0.0)
    problem: Any
    x0: Any
    if run.problem == "subproblem":
        side, block = _half(V, start)
        rule = METHODS[run.method].rule
        assert rule is not None
        problem, solver, x0 = Half(block), OnBlock(rule(**params), side), start[side]
    else:
        problem, x0 = Factorization(V, RANK), start
        solver = METHODS[run.method].make_solver(params)
    result = solve(
        problem,
        solver,
        x0,
        stop=Stop(0, rounds=None),
        seed=run.seed,
        on_round=lambda now: now.passes >= run.passes or now.seconds >= run.seconds,
        trace="early",
    )
    curve = [(record.seconds, record.passes, record.objective) for record in result.trace]
    return _row(run, curve, str(result.status), result.residual)


def _row(run: Run, curve: list[tuple[float, float, float]], status: str, gap: float) -> Row:
    seconds, passes, objective = zip(*curve, strict=True)
    return {
        "problem": run.problem,
        "dataset": run.dataset,
        "method": run.method,
        "params": dict(run.params),
        "seed": run.seed,
        "max_passes": run.passes,
        "max_seconds": run.seconds,
        "seconds": [round(s, 5) for s in seconds],
        "passes": [round(p, 6) for p in passes],
        "objective": [value if math.isfinite(value) else None for value in objective],
        "status": status,
        "gap": gap if math.isfinite(gap) else None,
        "threads": 1,
        "dtype": "float64",
        "rank": RANK,
        **provenance(),
    }


@lru_cache(maxsize=8)
def _matrix(dataset: str) -> RowBlocks:
    """The data without empty rows and columns, one thread, float64."""
    V = load(dataset)
    V = V[np.asarray(V.sum(axis=1)).ravel() > 0]
    V = V[:, np.asarray(V.sum(axis=0)).ravel() > 0]
    return as_matrix(V, dtype=np.float64, n_jobs=1)


@lru_cache(maxsize=16)
def _start(dataset: str, seed: int) -> Factors:
    """5 multiplicative rounds from Uniform(0, 1)."""
    V = _matrix(dataset)
    rng = np.random.default_rng(seed)
    W, H = rng.random((V.shape[0], RANK)), rng.random((RANK, V.shape[1])).T
    result = solve(Factorization(V, RANK), Alternating(MU()), (W, H), stop=Stop(0, rounds=5))
    factors: Factors = result.x
    return factors


def _half(V: RowBlocks, start: Factors) -> tuple[int, KLBlock]:
    """The subproblem of the paper: the items whose sums run over the longer dimension."""
    side = 0 if V.shape[1] > V.shape[0] else 1
    return side, Factorization(V, RANK).half(side, start)


def _solve_exactly(V: RowBlocks, start: Factors) -> float:
    """Lowest objective of the subproblem: every item solved and certified to 1e-10."""
    _, block = _half(V, start)
    h = block.solution(1e-10, 2000).h
    return float(block.divergence(h))


class _SignCounter(KLBlock):
    """A subproblem that counts the negative entries of the variance-reduced gradients.

    α ∇f(x₀) + ∇f_S(x) − α ∇f_S(x₀), before any threshold, at every inner step of an epoch.
    """

    negative = entries = 0

    def gradient(self, y: Point, S: KLBlock | None = None) -> Point:
        """Remember the full gradient at the anchor."""
        g = super().gradient(y, S)
        if S is None:
            self.anchor_gradient = g
        return g

    def anchored_difference(self, x: Point, x0: Point, alpha: Any, S: Any) -> Point:
        """Count, and return what a batch adds."""
        added = super().anchored_difference(x, x0, alpha, S)
        reduced = alpha * self.anchor_gradient + added
        self.negative += int((reduced < 0).sum())
        self.entries += reduced.size
        return added


def _negative_shares(V: RowBlocks, start: Factors, run: Run) -> list[tuple[float, float, float]]:
    """(seconds, passes, share of negative entries) after each epoch on the subproblem."""
    side, half = _half(V, start)
    block = _SignCounter(half.V, half.B)
    p = dict(run.params)
    solver = SSciPi(p["step"], p["batch"], p["epoch"], p["scheme"], threshold=THRESHOLD)
    state = replace(solver.init(block, block.to_sphere(start[side]), run.seed), side=side)
    curve = []
    clock = Clock()
    while state.passes < run.passes and clock.seconds() < run.seconds:
        state = solver.advance(block, state)
        curve.append((clock.seconds(), state.passes, block.negative / max(block.entries, 1)))
    return curve
