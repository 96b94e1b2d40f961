# SPDX-License-Identifier: BSD-3-Clause
"""`sipower bench`: compare the solvers and scikit-learn's NMF on the same data."""

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

_SOURCE = "Counts as for `fit`; the docstring corpus if not given."
SOLVERS = ("auto", "s-sci-pi", "sci-pi", "ccd", "mu")


@dataclass(frozen=True, kw_only=True)
class RaceOptions(options.InputOptions):
    """The options of the benchmark, in which the data file is optional."""

    source: Annotated[Path | None, typer.Argument(help=_SOURCE)] = None  # type: ignore[assignment]
    max_time: Annotated[float, typer.Option(min=0, help="Seconds for each solver.")] = 5.0
    seed: options.Seed = 0
    threads: options.Threads = None
    dtype: options.Dtype = "float32"


@command("nothing is saved")
def bench(race: RaceOptions, components: options.Rank = 20, as_json: options.Json = False) -> None:
    """Compare the solvers and scikit-learn's NMF on your data, from one start, for equal times."""
    console = Console(as_json)
    table = Table(docstrings().counts) if race.source is None else load(race, console)
    V = nonzero_matrix(table, KLNMF(dtype=race.dtype, n_jobs=race.threads))
    start = Factors(*initial_factors(V, components, race.seed, "random"))
    problem, stop = Factorization(V, components), Stop(tol=0, rounds=None, seconds=race.max_time)
    ends = {name: solve(problem, make_solver(name), start, stop=stop).x for name in SOLVERS}
    ends["scikit-learn mu"] = _sklearn_factors(V, start, race.max_time)
    measured = {name: (problem.value(x), problem.residual(x)) for name, x in ends.items()}
    best = min(divergence for divergence, _ in measured.values())
    rows = []
    for name, (divergence, gap) in measured.items():
        above = f"{(divergence - best) / V.total:.4%}"
        rows.append((name, f"{divergence:.6g}", above, f"{gap:.1e}"))
        console.event("end", solver=name, divergence=divergence, gap=gap)
    console.table(("solver", "KL divergence", "excess over the best, of all counts", "gap"), rows)
    console.say(f"after {race.max_time:g} s each, {V.threads} threads, {V.dtype}, K = {components}")


def _sklearn_factors(V: RowBlocks, start: Factors, seconds: float) -> Factors:
    """Run scikit-learn's NMF, which has no time limit, ten rounds at a time until time is up."""
    from sklearn.decomposition import non_negative_factorization  # noqa: PLC0415

    settings = {"init": "custom", "solver": "mu", "beta_loss": "kullback-leibler", "tol": 0}
    W, H = start.W.copy(), np.ascontiguousarray(start.H.T)
    array, until = V.array.astype(V.dtype), time.monotonic() + seconds
    while time.monotonic() < until:
        W, H, _ = non_negative_factorization(array, W, H, len(H), max_iter=10, **settings)
    return Factors(W, np.ascontiguousarray(H.T))
