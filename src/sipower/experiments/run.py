# SPDX-License-Identifier: BSD-3-Clause
"""Doing the runs: one at a time in each of a few processes, one line of the table after each."""

from __future__ import annotations

import math
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sipower.datasets import load
from sipower.experiments.methods import METHODS
from sipower.experiments.protocol import EXPERIMENTS, PENDING, Budget, plan
from sipower.experiments.table import Row, Run, append, key_of, read
from sipower.files import locked
from sipower.kernels import Draw, count_threads
from sipower.matrix import Matrix
from sipower.nmf import MU, Alternating, Factorization, Factors, Half, OnBlock
from sipower.problems.base import Sampling
from sipower.provenance import provenance
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
        Those of the budget, of all experiments that were ever run.
    """
    experiments = list(experiments)
    jobs = jobs or count_threads(None)
    table.parent.mkdir(parents=True, exist_ok=True)
    with locked(table):
        while todo := _todo(experiments, budget, table):
            ready = [run for run in todo if PENDING[0] not in run.params]
            left = sum(run.seconds for run in todo)
            for count, row in enumerate(_executed(ready, table, jobs), start=1):
                left -= row["seconds_allowed"]
                if on_row is not None:
                    on_row(row, len(todo) - count, OVERHEAD * left / jobs)
    rows = read(table)
    planned = {run.key for name in EXPERIMENTS for run in plan(name, budget, rows)}
    return [row for row in rows if key_of(row) in planned]


def _todo(experiments: list[str], budget: Budget, table: Path) -> list[Run]:
    """The runs that are not in the table, those that wait for a grid included."""
    rows = read(table)
    done = {key_of(row) for row in rows}
    planned = {run.key: run for name in experiments for run in plan(name, budget, rows)}
    return [run for key, run in planned.items() if key not in done]


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
    """Do one run, and tell everything about it."""
    V = _matrix(run.dataset)
    start = _start(run.dataset, run.seed)
    params = dict(run.params)
    if run.method == "exact":
        return _row(run, [(0.0, 0.0, _solved(V, start))], "converged", 0.0)
    if run.experiment == "gradients":
        return _row(run, [(0.0, 0.0, _negative_share(V, start, params, run.seed))], "measured", 0.0)
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


def _negative_share(V: Matrix, start: Factors, params: dict[str, Any], seed: int) -> float:
    """Share of negative entries in ∇f_S(y) − α(∇f_S(y₀) − ∇f(y₀)), y a full step from y₀."""
    side, block = _half(V, start)
    anchor = block.to_sphere(start[side])
    y = block.normalise(block.gradient(anchor))
    S = block.batch(Sampling(params["batch"], params["scheme"]), Draw(seed))
    alpha = 1 / block.inner(y, anchor)[:, None]
    reduced = block.gradient(y, S) - alpha * (block.gradient(anchor, S) - block.gradient(anchor))
    return float((reduced < 0).mean())


def _solved(V: Matrix, start: Factors) -> float:
    """Lowest objective of the subproblem: every item solved and certified to 1e-10."""
    _, block = _half(V, start)
    h = block.solution(1e-10, 2000).h
    return float(block.divergence(h))
