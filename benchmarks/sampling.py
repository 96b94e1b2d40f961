# SPDX-License-Identifier: BSD-3-Clause
"""Measure when sampling pays: Algorithm 1 at fixed settings, costs of epochs, and crossing points.

    settings   Algorithm 1 at settings of the paper's grid: relative errors
    epochs     time of an epoch over sparse data against its counted passes
    levels     default `s-sci-pi` against `sci-pi`: passes and seconds to relative errors
    crossing   mixture proportions to a certified 1e-8 against n; draws docs/images/sampling.png

Run: SIPOWER_DATA=... python benchmarks/sampling.py PART...       (one thread; times interleaved)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from common import RANK, best_seconds, common_start, paper_data

from sipower import Stop, as_matrix, solve
from sipower.nmf import Alternating, Factorization, Factors, SciPiRule, SSciPiRule, make_solver
from sipower.nmf.rule import HalfStep
from sipower.problems import KLBlock, MixtureProportions

mpl.use("Agg")
import matplotlib.pyplot as plt

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "sampling.png"
# Lowest known divergences: (f − f*)/(f₀ − f*) is the relative error.
BEST = {"kos": 1_119_240, "nips": 3_193_837, "mitf": 1_190_937, "wt": 2_923_259}
LEVELS = (0.3, 0.1, 0.03, 0.01)


# ---- Algorithm 1 at fixed settings -------------------------------------------------------------


def run_settings() -> None:
    """Print relative errors, with f* as it was when these settings were chosen."""
    lowest = {"kos": 1_119_589.364, "wt": 2_923_259.397}
    elements, both = SSciPiRule(0.1, 1e-4, 100, "elements", shortest=0), (1e-3, 0.05)
    runs: list[tuple[str, SSciPiRule, Stop, range]] = [
        ("kos", elements, Stop(0, rounds=5), range(1)),
        ("wt", SSciPiRule(0.1, 1e-4, 100, sides="long"), Stop(0, rounds=50), range(1)),
        ("wt", SSciPiRule(1.0, both, (100, 20)), Stop(0, rounds=None, passes=100), range(1)),
        (
            "wt",
            SSciPiRule(1.0, 1e-4, 100, sides="long"),
            Stop(0, rounds=None, passes=750),
            range(4),
        ),
    ]
    for name, rule, stop, seeds in runs:
        V = paper_data(name)
        problem, start = Factorization(as_matrix(V), RANK), common_start(V)
        first = problem.value(Factors(*start))
        for seed in seeds:
            result = solve(problem, Alternating(rule), start, stop=stop, seed=seed)
            error = (result.value - lowest[name]) / (first - lowest[name])
            setting = f"(s/n, m, η) = ({rule.batch}, {rule.epoch}, {rule.step})"
            print(
                f"{name} {setting}, seed {seed}, {result.passes:.1f} passes: {error:.4f}",
                flush=True,
            )


# ---- cost of an epoch --------------------------------------------------------------------------


def time_epochs() -> None:
    """Print the time of an epoch on both factors over that of as many passes of full steps."""
    grid = [(1e-4, 10), (1e-4, 100), (1e-4, 1000), (1e-3, 10), (1e-3, 100), (1e-2, 10)]
    for name in ("kos", "nips"):
        for dtype in (np.float64, np.float32):
            V = as_matrix(paper_data(name), dtype=dtype, n_jobs=1)
            W, H = (factor.astype(dtype) for factor in common_start(paper_data(name)))
            sides = [(KLBlock(V, H), W, 0), (KLBlock(V.columns, W), H, 1)]

            def update(rule: Any, sides: Any = sides) -> Callable[[], None]:
                def update_both() -> None:
                    for block, factor, side in sides:
                        rule.update(block, factor, HalfStep(rule.step, 0, 0, side))

                return update_both

            rules = {at: SSciPiRule(0.1, *at, "elements", shortest=0) for at in grid}
            actions = {"full": update(SciPiRule())} | {str(at): update(rules[at]) for at in grid}
            best = best_seconds(actions, 15)
            for at, rule in rules.items():
                counted = rule.passes(sides[0][0], HalfStep(0.1, 0, 0, 0))
                ratio = best[str(at)] / (counted * best["full"])
                print(f"{name} {V.dtype} (s/n, m) = {at}: {counted:.2f} passes, time {ratio:.2f}")


# ---- the default against full steps ------------------------------------------------------------


def record_curves(
    problem: Factorization, solvers: dict[str, Any], start: Any, cap: float
) -> dict[str, list[tuple[float, float, float]]]:
    """Return (passes, seconds, D) of every solver after every round, interleaved."""
    states = {name: solver.init(problem, start, 0) for name, solver in solvers.items()}
    points = {name: [(0.0, 0.0, problem.value(state.x))] for name, state in states.items()}
    while running := [name for name in solvers if states[name].passes < cap]:
        for name in running:
            before = time.perf_counter()
            states[name] = solvers[name].advance(problem, states[name])
            seconds = points[name][-1][1] + time.perf_counter() - before
            points[name].append((states[name].passes, seconds, problem.value(states[name].x)))
    return points


def run_to_levels() -> None:
    """Print the passes and seconds to several relative errors."""
    solvers = {
        "s-sci-pi": make_solver("s-sci-pi"),
        "sci-pi": make_solver("sci-pi"),
        "F-SCI-PI without a guard": Alternating(SciPiRule()),
    }
    for name, lowest in BEST.items():
        V = paper_data(name)
        problem = Factorization(as_matrix(V, n_jobs=1), RANK)
        runs = [record_curves(problem, solvers, common_start(V, seed), 800) for seed in range(3)]
        for label in solvers:
            cells = []
            for level in LEVELS:
                reached = np.full((len(runs), 2), np.inf)
                for at, points in enumerate(run[label] for run in runs):
                    first = points[0][2]
                    hits = [p for p in points if p[2] - lowest <= level * (first - lowest)]
                    reached[at] = hits[0][:2] if hits else np.inf
                passes, seconds = np.median(reached, axis=0)
                cells.append(f"{level:g}: {passes:.1f} passes, {seconds:.3g} s")
            per_pass = np.median([run[label][-1][1] / run[label][-1][0] for run in runs])
            print(f"{name:5} {label:25}", " | ".join(cells), f"| {1e3 * per_pass:.2f} ms a pass")


# ---- where sampling begins to pay --------------------------------------------------------------


def find_crossing() -> None:
    """Measure mixture proportions with and without epochs against n, for K = 20."""
    K = 20
    sizes = [2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000]
    labels = {0.0: "S-SCI-PI first", np.inf: "Newton steps alone"}
    points: dict[float, list[tuple[float, float]]] = {share: [] for share in labels}
    for n in sizes:
        problem = MixtureProportions(np.random.default_rng(0).gamma(0.5, 1.0, (n, K)))
        solutions = {share: problem.solution(1e-8, sampling_threshold=share) for share in labels}
        actions = {
            str(share): lambda share=share, problem=problem: problem.solution(
                1e-8, sampling_threshold=share
            )
            for share in labels
        }
        best = best_seconds(actions, 5)
        for share, solution in solutions.items():
            assert solution.gaps[0] <= 1e-8
            points[share].append((float(solution.passes[0]), best[str(share)]))
        sampled, plain = points[0.0][-1], points[np.inf][-1]
        print(
            f"n = {n}: {sampled[0]:.1f} and {plain[0]:.1f} passes, {sampled[1] / plain[1]:.2f} s/s"
        )
    draw(sizes, K, {label: np.array(points[share]) for share, label in labels.items()})


def draw(sizes: list[int], K: int, costs: dict[str, np.ndarray]) -> None:
    """Draw two panels, passes and seconds, and the point where the curves cross."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2))
    with_epochs, without = costs
    # The point that carries the label, and the offset of the label in points.
    places = [(0, (10, -3)), (3, (0, 8))], [(0, (0, 9)), (0, (10, -4))]
    for axis, column, unit in zip(axes, (0, 1), ("passes over the data", "seconds"), strict=True):
        curves = zip(costs.items(), ("#D55E00", "#000000"), places[column], strict=True)
        for (label, points), color, (at, offset) in curves:
            axis.loglog(sizes, points[:, column], "o-", color=color)
            place = sizes[at], points[at, column]
            axis.annotate(label, place, xytext=offset, color=color, textcoords="offset points")
        logs = np.log(costs[with_epochs][:, column] / costs[without][:, column])
        crossing = float(np.exp(np.interp(0, -logs, np.log(sizes))))
        axis.axvline(crossing, color="#999999", linestyle="--")
        axis.annotate(
            f"curves cross at\nn = {crossing:,.0f} = {crossing / K**2:.0f} K²",
            (crossing, axis.get_ylim()[1]), xytext=(6, -6),
            textcoords="offset points", va="top", color="#555555",
        )  # fmt: skip
        axis.set(xlabel=f"observations n (K = {K})", ylabel=f"{unit} to a certified gap of 1e-8")
        axis.grid(alpha=0.3, which="both")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


PARTS = {
    "settings": run_settings,
    "epochs": time_epochs,
    "levels": run_to_levels,
    "crossing": find_crossing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("parts", nargs="*", choices=PARTS, default=list(PARTS))
    for part in parser.parse_args().parts:
        PARTS[part]()


if __name__ == "__main__":
    main()
