# SPDX-License-Identifier: BSD-3-Clause
"""`sipower bench`: the solvers and scikit-learn's NMF on the same data for equal times."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sipower.cli import options
from sipower.cli.application import command
from sipower.cli.console import Console
from sipower.cli.run_folder import load, nonzero_matrix
from sipower.data.row_blocks import RowBlocks
from sipower.datasets import docstrings
from sipower.estimators import KLNMF
from sipower.io import Table
from sipower.loop.solve import Stop, solve
from sipower.nmf import Factorization, Factors, make_solver
from sipower.nmf.init import initial_factors

_SOURCE = "Counts as for `fit`; without it the docstring corpus."
SOLVERS = ("auto", "s-sci-pi", "sci-pi", "ccd", "mu")


@dataclass(frozen=True, kw_only=True)
class RaceOptions:
    """Start, limits and type of the race."""

    max_time: Annotated[float, typer.Option(min=0, help="Seconds of each solver.")] = 5.0
    seed: options.Seed = 0
    threads: options.Threads = None
    dtype: options.Dtype = "float32"


@command("nothing is saved")
def bench(
    data: options.ReadOptions,
    race: RaceOptions,
    source: Annotated[Path | None, typer.Argument(help=_SOURCE)] = None,
    components: options.Rank = 20,
    as_json: options.Json = False,
) -> None:
    """Race the solvers and scikit-learn's NMF on your data, from one start, for equal times."""
    console = Console(as_json)
    table = Table(docstrings().counts) if source is None else load(source, data, console)
    V = nonzero_matrix(table, KLNMF(dtype=race.dtype, n_jobs=race.threads))
    start = Factors(*initial_factors(V, components, race.seed, "random"))
    ends = {name: _race(V, start, name, race.max_time) for name in SOLVERS}
    ends["scikit-learn mu"] = _race_sklearn(V, start, race.max_time)
    best = min(divergence for divergence, _ in ends.values())
    for name, (divergence, gap) in ends.items():
        console.event("end", solver=name, divergence=divergence, gap=gap)
    headings = ("solver", "KL divergence", "above the best, of all counts", "certified gap")
    rows = (
        (name, f"{divergence:.6g}", f"{(divergence - best) / V.total:.4%}", f"{gap:.1e}")
        for name, (divergence, gap) in ends.items()
    )
    console.table(headings, rows)
    console.say(f"after {race.max_time:g} s each, {V.threads} threads, {V.dtype}, K = {components}")


def _race(V: RowBlocks, start: Factors, name: str, seconds: float) -> tuple[float, float]:
    """Return the divergence and the gap that a solver reaches."""
    stop = Stop(tol=0, rounds=None, seconds=seconds)
    result = solve(Factorization(V, start.W.shape[1]), make_solver(name), start, stop=stop)
    return result.value, result.residual


def _race_sklearn(V: RowBlocks, start: Factors, seconds: float) -> tuple[float, float]:
    """Return the same for scikit-learn, whose NMF has no time limit: ten iterations at a time."""
    from sklearn.decomposition import non_negative_factorization  # noqa: PLC0415

    W, H = start.W.copy(), np.ascontiguousarray(start.H.T)
    array = V.array.astype(V.dtype)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        W, H, _ = non_negative_factorization(
            array, W, H, n_components=len(H), init="custom", solver="mu", max_iter=10, tol=0,
            beta_loss="kullback-leibler",
        )  # fmt: skip
    problem, x = Factorization(V, len(H)), Factors(W, np.ascontiguousarray(H.T))
    return problem.value(x), problem.residual(x)
