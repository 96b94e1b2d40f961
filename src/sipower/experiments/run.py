# SPDX-License-Identifier: BSD-3-Clause
"""Doing the runs: one at a time in each of a few processes, one line of the table after each."""

from __future__ import annotations

import math
import multiprocessing
import signal
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from sipower.datasets import load
from sipower.experiments.methods import METHODS
from sipower.experiments.protocol import Budget, plan
from sipower.experiments.table import Row, Run, append, key_of, provenance, read
from sipower.kernels import count_threads
from sipower.matrix import Matrix
from sipower.nmf import MU, Alternating, Factorization, Factors, Half, OnBlock
from sipower.solve import Stop, solve
from sipower.validation import as_matrix

__all__ = ["execute", "reproduce"]

RANK = 20
OVERHEAD = 1.25  # wall time of a run against the solver's own: evaluations, loading, the start


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
        What, and how much of it.
    table
        File that receives a line after each run.
    jobs
        Runs at a time, each with one thread; None: as many as there are cores.
    on_row
        Called after each run with its row, the runs left and about how many seconds they take.

    Returns
    -------
    rows
        The whole table.
    """
    experiments = list(experiments)
    jobs = jobs or count_threads(None)
    while todo := _todo(experiments, budget, table):
        with multiprocessing.get_context("spawn").Pool(jobs, _leave_interrupts_to_parent) as pool:
            left = sum(run.seconds for run in todo)
            finished = pool.imap_unordered(partial(_execute_into, table), todo)
            for count, row in enumerate(finished, start=1):
                left -= row["seconds_allowed"]
                if on_row is not None:
                    on_row(row, len(todo) - count, OVERHEAD * left / jobs)
    return read(table)


def _todo(experiments: list[str], budget: Budget, table: Path) -> list[Run]:
    rows = read(table)
    done = {key_of(row) for row in rows}
    planned = {run.key: run for name in experiments for run in plan(name, budget, rows)}
    return [run for key, run in planned.items() if key not in done]


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _execute_into(table: Path, run: Run) -> Row:
    row = execute(run)
    append(table, row)
    return row


def execute(run: Run) -> Row:
    """Do one run, and tell everything about it."""
    V = _matrix(run.dataset)
    start = _start(run.dataset, run.seed)
    if run.method == "exact":
        return _row(run, [(0.0, 0.0, _solved(V, start))], "converged", 0.0)
    params = dict(run.params)
    problem: Any
    x0: Any
    if run.experiment.startswith("subproblem"):
        side, block = _half(V, start)
        rule = METHODS[run.method].rule
        assert rule is not None
        problem, solver, x0 = Half(block), OnBlock(rule(**params), side), start[side]
    else:
        problem, x0 = Factorization(V, RANK), start
        solver = METHODS[run.method].make(params)
    result = solve(
        problem,
        solver,
        x0,
        stop=Stop(0, rounds=None),
        seed=run.seed,
        on_round=lambda record: record.seconds >= run.seconds,
        trace="early",
    )
    curve = [(record.seconds, record.passes, record.objective) for record in result.trace]
    return _row(run, curve, str(result.status), result.residual)


def _row(run: Run, curve: list[tuple[float, float, float]], status: str, gap: float) -> Row:
    seconds, passes, objective = zip(*curve, strict=True)
    return {
        "experiment": run.experiment,
        "dataset": run.dataset,
        "method": run.method,
        "params": dict(run.params),
        "seed": run.seed,
        "seconds_allowed": run.seconds,
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


@lru_cache(maxsize=2)
def _matrix(dataset: str) -> Matrix:
    """The data without empty rows and columns, one thread, float64."""
    V = load(dataset)
    V = V[np.asarray(V.sum(axis=1)).ravel() > 0]
    V = V[:, np.asarray(V.sum(axis=0)).ravel() > 0]
    return as_matrix(V, dtype=np.float64, n_jobs=1)


@lru_cache(maxsize=4)
def _start(dataset: str, seed: int) -> Factors:
    """5 multiplicative rounds from Uniform(0, 1)."""
    V = _matrix(dataset)
    rng = np.random.default_rng(seed)
    W, H = rng.random((V.shape[0], RANK)), rng.random((RANK, V.shape[1])).T
    result = solve(Factorization(V, RANK), Alternating(MU()), (W, H), stop=Stop(0, rounds=5))
    found: Factors = result.x
    return found


def _half(V: Matrix, start: Factors) -> tuple[int, Any]:
    """The subproblem of the paper: the items whose sums run over the longer dimension."""
    side = 0 if V.shape[1] > V.shape[0] else 1
    return side, Factorization(V, RANK).half(side, start)


def _solved(V: Matrix, start: Factors) -> float:
    """Lowest objective of the subproblem: every item solved and certified to 1e-10."""
    _, block = _half(V, start)
    h, _ = block.solution(1e-10, 2000)
    return float(block.divergence(h))
