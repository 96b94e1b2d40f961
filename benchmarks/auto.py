# SPDX-License-Identifier: BSD-3-Clause
"""Compare `auto` with the other solvers of sipower in time to a level and in final value.

    python benchmarks/auto.py compare [--seeds 3] [--cap 20]   # auto / best of mu, sci-pi, ...
    python benchmarks/auto.py late [--seeds 5] [--cap 60]      # auto / ccd with extrapolation
    python benchmarks/auto.py quality [--seeds 10] [--cap 60]  # final values, two threads

One thread, float32, the same start for all, solvers interleaved. The level of a run is
(D − Dinf)/(D0 − Dinf), where Dinf is its own last value. A run ends after `cap` seconds, or when
the second half of its time has reduced D by less than a ten-thousandth of the drop (`late`: a
hundred-thousandth). Only the solver's time counts. Curves are appended to benchmarks/results, and
the ratios are those of the whole file, so that several processes may share the work.
"""

from __future__ import annotations

import argparse
import json
import time
from bisect import bisect
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import common_start, paper_data

from sipower import Stop, as_matrix, datasets, solve
from sipower.nmf import CCD, Auto, Extrapolated, Factorization, Factors, make_solver

RESULTS = Path(__file__).parent / "results"
RIVALS = ("mu", "sci-pi", "s-sci-pi", "ccd")
PAPER = ("kos", "nips", "mitf", "wt")


def poisson(n: int, share: float) -> sp.csr_array:
    """Draw the paper's synthetic data: independent counts, a share of them positive."""
    V = sp.random_array((n, n), density=share, random_state=1, format="csr")
    draws = np.random.default_rng(2).poisson(-np.log(1 - share), 4 * V.nnz)
    V.data[:] = np.resize(draws[draws > 0], V.nnz)
    return V


def topics(n: int, m: int, nnz: int) -> sp.csr_array:
    """Draw samples of a topic model with about nnz nonzeros."""
    rng = np.random.default_rng(3)
    H = rng.dirichlet(np.full(m, 0.05), 30)
    W = rng.dirichlet(np.full(30, 0.1), n)
    length = 1.4 * nnz / n
    parts = [rng.poisson(length * W[at : at + 2000] @ H) for at in range(0, n, 2000)]
    return sp.vstack([sp.csr_array(p.astype(np.float32)) for p in parts], format="csr")


PROBLEMS: dict[str, tuple[Callable[[], Any], int]] = {
    **{name: (lambda name=name: paper_data(name), 20) for name in PAPER},
    "pois1": (lambda: poisson(1000, 0.9), 20),
    "pois2": (lambda: poisson(3000, 0.1), 20),
    "pois3": (lambda: poisson(9000, 0.01), 20),
    "docstrings": (lambda: datasets.docstrings().counts, 20),
    "toy": (lambda: np.random.default_rng(0).poisson(5.0, (200, 100)) + 1.0, 20),
    "large": (lambda: topics(100_000, 2000, 5_000_000), 20),
    "kos, K = 2": (lambda: paper_data("kos"), 2),
    "kos, K = 100": (lambda: paper_data("kos"), 100),
    "wt, K = 2": (lambda: paper_data("wt"), 2),
    "wt, K = 100": (lambda: paper_data("wt"), 100),
}


def drop_empty(V: Any) -> Any:
    """Return V without its empty rows and columns."""
    return V[np.asarray(V.sum(axis=1)).ravel() > 0][:, np.asarray(V.sum(axis=0)).ravel() > 0]


def has_ended(curve: list[tuple[float, float]], cap: float, min_gain: float) -> bool:
    """Return whether the cap is reached, or the second half of the time reduced D too little."""
    (seconds, value), first = curve[-1], curve[0][1]
    half = bisect(curve, seconds / 2, key=lambda point: point[0]) - 1
    return seconds > cap or (
        len(curve) > 20 and curve[half][1] - value < min_gain * (first - value)
    )


def record_curves(
    problem: Factorization,
    start: Any,
    solvers: dict[str, Any],
    until: tuple[float, float],
    seed: int,
) -> Any:
    """Return (seconds, D) of every solver after every round, with the solvers interleaved."""
    states, curves = {}, {}
    for name, solver in solvers.items():
        before = time.perf_counter()
        states[name] = solver.init(problem, start, seed)  # may evaluate D, so it is timed
        seconds = time.perf_counter() - before
        curves[name] = [(seconds, problem.value(states[name].x))]
    running = set(solvers)
    while running:
        for name in sorted(running):
            before = time.perf_counter()
            states[name] = solvers[name].advance(problem, states[name])
            seconds = curves[name][-1][0] + time.perf_counter() - before
            curves[name].append((seconds, problem.value(states[name].x)))
            if has_ended(curves[name], *until):
                running.discard(name)
    return curves


def time_to(curve: list[tuple[float, float]], level: float) -> float:
    """Return the seconds to a level, ∞ if the curve does not reach it."""
    first, last = curve[0][1], min(value for _, value in curve)
    for seconds, value in curve:
        if value - last <= level * (first - last):
            return max(seconds, 1e-6)
    return float("inf")


def thin(curve: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a curve with at most one point for every two percent of its time."""
    points = curve[:1]
    for point in curve[1:]:
        if point[0] >= 1.02 * points[-1][0]:
            points.append(point)
    return [*points, curve[-1]]


def race(
    file: Path, sets: list[str], solvers: dict[str, Any], seeds: range, until: tuple[float, float]
) -> None:
    """Append the curves of all runs to the file."""
    for name in sets:
        make, rank = PROBLEMS[name]
        V = drop_empty(make())
        problem = Factorization(as_matrix(V, dtype=np.float32, n_jobs=1), rank)
        for seed in seeds:
            start = common_start(V, seed, rank)
            for solver, curve in record_curves(problem, start, solvers, until, seed).items():
                row = {"set": name, "seed": seed, "solver": solver, "curve": thin(curve)}
                with file.open("a") as table:
                    table.write(json.dumps(row) + "\n")
        print(name, "done", flush=True)


def print_ratios(
    rows: list[dict[str, Any]], levels: tuple[float, ...], rivals: tuple[str, ...]
) -> None:
    """Print the time of `auto` over that of its fastest rival, by data set and level."""
    every = []
    for name in dict.fromkeys(r["set"] for r in rows):
        cells = []
        for level in levels:
            times: dict[str, float] = {}
            for solver in ("auto", *rivals):
                runs = [r["curve"] for r in rows if r["set"] == name and r["solver"] == solver]
                times[solver] = median(time_to(curve, level) for curve in runs)
            best = min(rivals, key=lambda rival: times[rival])
            ratio = times["auto"] / times[best]
            every.append(ratio)
            cells.append(f"{level:g}: {ratio:5.2f} of {best:9} ({times['auto']:7.3f} s)")
        ends = {
            solver: median(
                r["curve"][-1][1] for r in rows if (r["set"], r["solver"]) == (name, solver)
            )
            for solver in ("auto", *rivals)
        }
        print(
            f"{name:14}",
            "   ".join(cells),
            "  final values",
            {k: f"{v:.6g}" for k, v in ends.items()},
        )
    print(f"geometric mean {geometric_mean(every):.3f}, largest {max(every):.2f}")


def compare_quality(sets: list[str], seeds: range, cap: float) -> None:
    """Print the median final values and gaps of `auto` and `ccd`."""
    for name in sets:
        V = paper_data(name)
        problem = Factorization(as_matrix(V, dtype=np.float32, n_jobs=2), 20)
        ends: dict[str, list[float]] = {"auto": [], "ccd": []}
        gaps: dict[str, list[float]] = {"auto": [], "ccd": []}
        for seed in seeds:
            start = common_start(V, seed)
            first = problem.value(Factors(*start))
            for solver, values in ends.items():
                stop = Stop(1e-6, rounds=None, seconds=cap)
                result = solve(problem, make_solver(solver), start, stop=stop)
                values.append(result.value)
                gaps[solver].append(result.residual)
        auto, ccd = (median(values) for values in ends.values())
        print(
            f"{name}: median final value of auto {auto:.0f}, of ccd {ccd:.0f}: "
            f"{(auto - ccd) / (first - ccd):+.4%} of the drop; gaps "
            f"{median(gaps['auto']):.1e} and {median(gaps['ccd']):.1e}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("compare", "late", "quality"))
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--cap", type=float, default=20.0)
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    seeds = range(options.first, options.first + options.seeds)
    if options.what == "quality":
        compare_quality(options.sets or list(PAPER), seeds, options.cap)
        return
    if options.what == "compare":
        solvers = {"auto": Auto()} | {name: make_solver(name) for name in RIVALS}
        sets, levels, rivals = list(PROBLEMS), (1e-1, 1e-2, 3e-3), RIVALS
    else:
        solvers = {"auto": Auto(), "ccd extrapolated": Extrapolated(CCD())}
        sets, levels, rivals = list(PAPER), (1e-2, 1e-3), ("ccd extrapolated",)
    min_gain = 1e-4 if options.what == "compare" else 1e-5
    file = RESULTS / f"{options.what}.jsonl"
    race(file, options.sets or sets, solvers, seeds, (options.cap, min_gain))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    print_ratios(
        list({(r["set"], r["seed"], r["solver"]): r for r in rows}.values()), levels, rivals
    )


if __name__ == "__main__":
    main()
