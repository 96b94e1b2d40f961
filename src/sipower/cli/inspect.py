# SPDX-License-Identifier: BSD-3-Clause
"""`sipower info` and `sipower bench`: what is installed here, and how fast it is."""

from __future__ import annotations

import os
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table as Grid

from sipower.cli import options
from sipower.cli.common import Speaker, app, console, reported
from sipower.cli.running import check_counts, load
from sipower.data.memory import Matrix
from sipower.data.validate import as_matrix
from sipower.datasets import CATALOGUE, docstrings, is_present
from sipower.kernels import count_threads, level
from sipower.loop.solve import Stop, solve
from sipower.nmf import Factorization, Factors, make_solver
from sipower.nmf.init import initial_factors
from sipower.provenance import provenance

__all__ = ["bench", "info"]

OPTIONAL = ("typer", "rich", "plotly", "matplotlib", "pandas", "pyarrow", "h5py", "anndata", "dask")
RACERS = ("auto", "s-sci-pi", "sci-pi", "ccd", "mu")


@app.command()
def info(as_json: options.Json = False) -> None:
    """Versions, processor, threads, optional packages and data sets: what a bug report needs."""
    speaker = Speaker(as_json)
    with reported():
        facts = provenance()
        packages = {name: _version(name) for name in ("scikit-learn", *OPTIONAL)}
        here = [name for name in CATALOGUE if is_present(name)]
        speaker.event(
            "info", **facts, packages=packages, threads=count_threads(None),
            instruction_set=level(), datasets=here,
        )  # fmt: skip
        speaker.say(f"sipower {facts['versions']['sipower']} ({facts['commit']})")
        speaker.say(
            f"processor: {facts['cpu']}; kernels for {level()}; {count_threads(None)} threads"
        )
        for name, found in (facts["versions"] | packages).items():
            if name != "sipower":
                speaker.say(f"  {name:14} {found or 'not installed'}")
        speaker.say(f"data sets: {', '.join(here)}")
        speaker.say(f"SIPOWER_DATA: {os.environ.get('SIPOWER_DATA', 'not set')}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@app.command()
def bench(
    source: Annotated[
        Path | None, typer.Argument(help="Counts as for `fit`; without it the docstring corpus.")
    ] = None,
    components: Annotated[int, typer.Option("-k", "--components", min=1, help="Rank K.")] = 20,
    max_time: Annotated[float, typer.Option(min=0, help="Seconds of each solver.")] = 5.0,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    dtype: options.Dtype = "float32",
    transpose: options.Transpose = False,
    layout: options.Layout = None,
    layer: options.Layer = None,
    as_json: options.Json = False,
) -> None:
    """Race the solvers and scikit-learn's NMF on your data, from one start, for equal times."""
    speaker = Speaker(as_json)
    with reported("nothing is saved"):
        counts = (
            docstrings().counts
            if source is None
            else load(source, speaker, transpose=transpose, layout=layout, layer=layer).counts
        )
        V = as_matrix(counts, dtype=dtype, n_jobs=threads)
        check_counts(V)
        start = Factors(*initial_factors(V, components, seed, "random"))
        ends = {name: _race(V, start, name, max_time) for name in RACERS}
        ends["scikit-learn mu"] = _race_sklearn(V, start, max_time)
        best = min(divergence for divergence, _ in ends.values())
        grid = Grid("solver", "KL divergence", "above the best, of all counts", "certified gap")
        for name, (divergence, gap) in ends.items():
            above = (divergence - best) / V.total
            speaker.event("end", solver=name, divergence=divergence, gap=gap)
            grid.add_row(name, f"{divergence:.6g}", f"{above:.4%}", f"{gap:.1e}")
        if not as_json:
            console.print(grid)
            speaker.say(
                f"after {max_time:g} s each, {V.threads} threads, {V.dtype}, K = {components}"
            )


def _race(V: Matrix, start: Factors, name: str, seconds: float) -> tuple[float, float]:
    stop = Stop(tol=0, rounds=None, seconds=seconds)
    found = solve(Factorization(V, start.W.shape[1]), make_solver(name), start, stop=stop)
    return found.value, found.residual


def _race_sklearn(V: Matrix, start: Factors, seconds: float) -> tuple[float, float]:
    """Ten iterations at a time until the time is over: its NMF knows no limit of seconds."""
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
