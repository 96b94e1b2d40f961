# SPDX-License-Identifier: BSD-3-Clause
"""Compare the time to a given level of D of sipower's solvers and of its peers on PyPI.

Same start (5 rounds of multiplicative updates from Uniform(0, 1), float64), same threads, float32,
solvers interleaved, several seeds. Only solver time counts; D is one common function of the
factors, evaluated outside of the timing. u is the time of one multiplicative-update iteration of
scikit-learn in float32 in the same run. Levels are (D − D*)/(D0 − D*) with a fixed D* for each data
set, the lowest value that any of 20 packages reached from the start of seed 0.

    python benchmarks/peers.py kos wt --seeds 5          # time to level, as data, table and plot
    python benchmarks/peers.py --curves                  # cost against nonzeros, K and threads

Results are written to benchmarks/results/*.jsonl, and the plot to docs/images/peers.png.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp
from common import RANK, common_start, paper_data
from contestants import Factors, available_contestants, clock_for, iterate_scikit_learn_mu
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sipower import as_matrix
from sipower.nmf import Extrapolated, Factorization, make_solver
from sipower.problems import KLBlock

mpl.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
LOWEST = {"kos": 1_119_947.6, "nips": 3_193_958.0, "mitf": 1_190_937.4, "wt": 3_028_037.0}
LEVELS = (1e-1, 3e-2, 1e-2, 1e-3)
BUDGET = {"kos": 20, "nips": 15, "mitf": 300, "wt": 90}  # budget of every solver, in u


COLORS = dict(
    zip(
        ("auto", "ccd+extrapolation", "s-sci-pi", "sci-pi", "mu", "scikit-learn MU"),
        ("#D55E00", "#0072B2", "#009E73", "#E69F00", "#56B4E9", "#000000"),
        strict=True,
    )
)


def time_unit(V: Any, start: Factors, threads: int) -> float:
    """Return u, the seconds of one iteration of scikit-learn's multiplicative updates."""
    W, H = start[0].astype(np.float32), np.ascontiguousarray(start[1].T, np.float32)
    V = V.astype(np.float32)

    def seconds(iterations: int) -> float:
        clock = clock_for(threads)
        runs = (iterate_scikit_learn_mu(V, W.copy(), H.copy(), iterations, clock) for _ in range(3))
        return min(run[0] for run in runs)

    with threadpool_limits(threads):
        iterations = 4 if V.shape[0] * V.shape[1] > 2e6 else 20
        return (seconds(1 + iterations) - seconds(1)) / iterations


def race(name: str, V: Any, seed: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run all contestants interleaved, each to its time limit; return a record per value of D."""
    threads, budget = options.threads, options.budget
    start, lowest = common_start(V, seed), LOWEST[name]
    data, u = as_matrix(V, n_jobs=threads), time_unit(V, common_start(V, seed), threads)
    first = KLBlock(data, start[1]).divergence(start[0])
    limit = (BUDGET[name] if budget is None else budget) * u
    records: list[dict[str, Any]] = []
    running = {
        contestant: run(V, start, threads, seed)
        for contestant, run in available_contestants(options.solvers).items()
    }
    while running:
        for contestant, run in list(running.items()):
            seconds, (W, H) = next(run)
            value = KLBlock(data, np.ascontiguousarray(H)).divergence(W)
            entry = {"set": name, "seed": seed, "threads": threads, "solver": contestant, "u": u}
            entry |= {"seconds": seconds, "value": value, "first": first, "lowest": lowest}
            records.append(entry)
            is_solved = (value - lowest) / (first - lowest) <= min(LEVELS)
            if is_solved or seconds > limit:
                del running[contestant]
    return records


def time_to(records: list[dict[str, Any]], level: float) -> float | None:
    """Return the seconds of one run to the level, None if it does not reach it."""
    for r in records:
        if (r["value"] - r["lowest"]) / (r["first"] - r["lowest"]) <= level:
            return float(r["seconds"])
    return None


def format_table(records: list[dict[str, Any]]) -> str:
    """Return a table of median times to every level, in u and in seconds."""
    lines = []
    for name in dict.fromkeys(r["set"] for r in records):
        part = [r for r in records if r["set"] == name]
        seeds = sorted({r["seed"] for r in part})
        u = median(r["u"] for r in part)
        lines.append(f"{name}: u = {1e3 * u:.1f} ms, {len(seeds)} seeds")
        for solver in dict.fromkeys(r["solver"] for r in part):
            cells = []
            for level in LEVELS:
                hits = []
                for seed in seeds:
                    run = [r for r in part if r["solver"] == solver and r["seed"] == seed]
                    seconds = time_to(run, level)
                    hits.append(float("inf") if seconds is None else seconds / run[0]["u"])
                middle = median(hits)
                cells.append(
                    f"{'–':>18}"
                    if middle == float("inf")
                    else f"{middle:7.1f} u {middle * u:6.2f} s"
                )
            lines.append(f"  {solver:26}" + " ".join(cells))
    return "\n".join(lines)


def plot(records: list[dict[str, Any]], path: Path) -> None:
    """Plot the level against time in u, one panel for each data set, for the first seed."""
    names = list(dict.fromkeys(r["set"] for r in records))
    rows = (len(names) + 1) // 2
    figure, axes = plt.subplots(rows, 2, figsize=(9.2, 4 * rows), squeeze=False)
    for axis, name in zip(axes.flat, names, strict=False):
        for solver, color in COLORS.items():
            run = [r for r in records if r["set"] == name and r["solver"] == solver]
            if not run:
                continue
            run = [r for r in run if r["seed"] == run[0]["seed"]]
            gaps = [(r["value"] - r["lowest"]) / (r["first"] - r["lowest"]) for r in run]
            times = [r["seconds"] / r["u"] for r in run]
            axis.loglog(times, np.maximum(gaps, 1e-4), color=color, label=solver)
        axis.set(title=name.upper(), xlabel="time in MU iterations of scikit-learn (u)")
        axis.set_ylim(5e-4, 1.2)
        axis.grid(alpha=0.3)
        axis.set_ylabel("(D − D*)/(D₀ − D*)")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def thin(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records of D that are at least a tenth of the time apart, enough for the curves."""
    selection, last = [], {}
    for r in records:
        run = r["set"], r["seed"], r["solver"]
        if r["seconds"] >= 1.1 * last.get(run, 0.0):
            last[run] = r["seconds"]
            selection.append(r)
    return selection


def time_rounds(V: Any, rank: int, threads: int) -> dict[str, float]:
    """Return the seconds of a round of both phases of `auto`, best of eight."""
    problem = Factorization(as_matrix(V, dtype=np.float32, n_jobs=threads), rank)
    power, newton = make_solver("sci-pi").solver, Extrapolated(make_solver("newton").rule)
    best = {}
    for label, solver in (("sci-pi", power), ("newton", newton)):
        state, times = solver.init(problem, None, 0), []
        for _ in range(8):
            before = time.perf_counter()
            state = solver.advance(problem, state)
            times.append(time.perf_counter() - before)
        best[label] = min(times)
    return best


def time_scaling() -> list[dict[str, Any]]:
    """Return the cost of a round against nonzeros, K and threads."""
    rows = []
    for nnz in (100_000, 300_000, 1_000_000, 3_000_000):
        V = sp.random_array((nnz // 50, 5000), density=0.01, random_state=0, format="csr")
        V.data[:] = np.random.default_rng(0).poisson(2.0, V.nnz) + 1
        rows.append({"nnz": V.nnz, "rank": RANK, "threads": 1} | time_rounds(V, RANK, 1))
    V = paper_data("nips")
    rows += [
        {"nnz": V.nnz, "rank": k, "threads": 1} | time_rounds(V, k, 1) for k in (2, 8, 20, 32, 64)
    ]
    for name in ("nips", "wt"):
        V = paper_data(name)
        rows += [
            {"set": name, "rank": RANK, "threads": t} | time_rounds(V, RANK, t) for t in (1, 2)
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("sets", nargs="*", default=list(LOWEST), help=", ".join(LOWEST))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=float, help="of every solver, in u")
    parser.add_argument("--solvers", nargs="*", help="names of solvers; all by default")
    parser.add_argument("--curves", action="store_true")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.curves:
        rows = time_scaling()
        for row in rows:
            print({k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()})
        (RESULTS / "curves.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        return
    records = []
    for name in options.sets:
        V = paper_data(name)
        for seed in range(options.first, options.first + options.seeds):
            records += race(name, V, seed, options)
        print(format_table([r for r in records if r["set"] == name]), flush=True)
    (RESULTS / "peers.jsonl").write_text("".join(json.dumps(r) + "\n" for r in thin(records)))
    plot(records, IMAGES / "peers.png")


if __name__ == "__main__":
    main()
