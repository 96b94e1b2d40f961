# SPDX-License-Identifier: BSD-3-Clause
"""Execution of the runs in parallel processes; each run appends a line to the table."""

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
from sipower.experiments.table import PlannedRun, Row, append, read, row_key
from sipower.kernels import count_threads
from sipower.loop.solve import Stop, solve
from sipower.loop.trace import Clock
from sipower.nmf import MU, Alternating, Factorization, Factors, Half, OnBlock, SSciPiRule
from sipower.problems.base import Point
from sipower.problems.kl import KLBlock
from sipower.results.provenance import provenance
from sipower.solvers.s_sci_pi import SSciPi

RANK = 20
OVERHEAD = 1.25  # wall time / solver time; evaluations, loading and start are not solver time
THRESHOLD = SSciPiRule().threshold


def reproduce(
    experiments: Iterable[str],
    budget: Budget,
    table: Path,
    *,
    jobs: int | None = None,
    on_row: Callable[[Row, int, float], object] | None = None,
) -> list[Row]:
    """Execute all runs of the experiments that are not in the table yet.

    Parameters
    ----------
    experiments, budget
        Names of the experiments, and the budget that decides how much of them is run.
    table
        File to which each run appends a line.
    jobs
        Number of parallel runs, each with one thread; None means one per core.
    on_row
        Called after each run with its row, the number of runs left in this stage of the protocol
        and an estimate of the seconds that they will take.

    Returns
    -------
    rows
        The rows of the table that belong to the budget, for all experiments.
    """
    experiments = list(experiments)
    jobs = jobs or count_threads(None)
    table.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(table):
        while missing := _missing_runs(experiments, budget, table):
            cost = {run.key: _expected_seconds(run) for run in missing}
            for row in _execute_all(missing, table, jobs):
                del cost[row_key(row)]
                if on_row is not None:
                    on_row(row, len(cost), sum(cost.values()) / jobs)
    rows = read(table)
    protocol = Protocol(budget, rows)
    planned = {run.key for name in EXPERIMENTS for run in protocol.plan(name)}
    return [row for row in rows if row_key(row) in planned]


def _missing_runs(experiments: list[str], budget: Budget, table: Path) -> list[PlannedRun]:
    """Return the planned runs that are not in the table yet."""
    protocol = Protocol(budget, read(table))
    planned = {run.key: run for name in experiments for run in protocol.plan(name)}
    return [run for key, run in planned.items() if key not in protocol.rows]


def _expected_seconds(run: PlannedRun) -> float:
    """Estimate the wall time of a run, assuming that it takes half of its time limit."""
    return (OVERHEAD * run.seconds / 2) if run.method != "exact" else 1.0


def _execute_all(runs: list[PlannedRun], table: Path, jobs: int) -> Iterator[Row]:
    """Execute runs and yield their rows as they finish, after adding them to the table."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_ignore_interrupts)
    try:
        futures = [pool.submit(_execute_and_append, table, jobs, run) for run in runs]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        raise ValueError(
            "A process was killed, perhaps because memory ran out. Finished runs are saved; "
            "start again with a smaller `jobs`."
        ) from None
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _execute_and_append(table: Path, jobs: int, run: PlannedRun) -> Row:
    row = execute(run) | {"jobs": jobs}
    append(table, row)
    return row


def execute(run: PlannedRun) -> Row:
    """Execute one run and return its row."""
    V, start = _matrix(run.dataset), _start(run.dataset, run.seed)
    params = dict(run.params)
    if run.method == "exact":
        _, block = _half(V, start)
        minimum = block.divergence(block.solution(tol=1e-10, max_rounds=2000).h)
        return _make_row(run, [(0.0, 0.0, minimum)], "converged", 0.0)
    if run.problem == "signs":
        return _make_row(run, _negative_shares(V, start, run), "measured", 0.0)
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
    return _make_row(run, curve, str(result.status), result.residual)


def _make_row(
    run: PlannedRun, curve: list[tuple[float, float, float]], status: str, gap: float
) -> Row:
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
    """Load a data set in float64, set to one thread, without its empty rows and columns."""
    V = load(dataset)
    V = V[np.asarray(V.sum(axis=1)).ravel() > 0]
    V = V[:, np.asarray(V.sum(axis=0)).ravel() > 0]
    return as_matrix(V, dtype=np.float64, n_jobs=1)


@lru_cache(maxsize=16)
def _start(dataset: str, seed: int) -> Factors:
    """Return the start of a seed: factors from Uniform(0, 1), then 5 multiplicative rounds."""
    V = _matrix(dataset)
    rng = np.random.default_rng(seed)
    W, H = rng.random((V.shape[0], RANK)), rng.random((RANK, V.shape[1])).T
    result = solve(Factorization(V, RANK), Alternating(MU()), (W, H), stop=Stop(0, rounds=5))
    factors: Factors = result.x
    return factors


def _half(V: RowBlocks, start: Factors) -> tuple[int, KLBlock]:
    """Return the factor that the paper's subproblem solves for (0: W, 1: H), and its `KLBlock`.

    This is the factor whose gradients are sums over the longer dimension of V.
    """
    side = 0 if V.shape[1] > V.shape[0] else 1
    return side, Factorization(V, RANK).half(side, start)


class _SignCounter(KLBlock):
    """A subproblem that counts the negative entries of the variance-reduced gradients.

    These are α ∇f(x₀) + ∇f_S(x) − α ∇f_S(x₀), before any threshold, at all inner steps of an epoch.
    """

    negative = entries = 0

    def gradient(self, y: Point, S: KLBlock | None = None) -> Point:
        """Return the gradient; store a full gradient, which is computed at the anchor x₀ only."""
        g = super().gradient(y, S)
        if S is None:
            self.anchor_gradient = g
        return g

    def anchored_difference(self, x: Point, x0: Point, alpha: Any, S: Any) -> Point:
        """Return the batch term of the variance-reduced gradient; count negative entries."""
        batch_part = super().anchored_difference(x, x0, alpha, S)
        reduced = alpha * self.anchor_gradient + batch_part
        self.negative += int((reduced < 0).sum())
        self.entries += reduced.size
        return batch_part


def _negative_shares(
    V: RowBlocks, start: Factors, run: PlannedRun
) -> list[tuple[float, float, float]]:
    """Return, after each epoch, the seconds, the passes and the share of negative entries so far.

    The entries are those of all variance-reduced gradients since the start of the run.
    """
    side, half = _half(V, start)
    block = _SignCounter(half.V, half.B)
    p = dict(run.params)
    solver = SSciPi(p["step"], p["batch"], p["epoch"], p["scheme"], threshold=THRESHOLD)
    state = replace(solver.init(block, block.to_sphere(start[side]), run.seed), side=side)
    curve, clock = [], Clock()
    while state.passes < run.passes and clock.seconds() < run.seconds:
        state = solver.advance(block, state)
        curve.append((clock.seconds(), state.passes, block.negative / max(block.entries, 1)))
    return curve
