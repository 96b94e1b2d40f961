# SPDX-License-Identifier: BSD-3-Clause
"""Functions that the benchmarks share: interleaved timing, curves of D, data and common start."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sipower import Stop, as_matrix, datasets, solve
from sipower.nmf import MU, Alternating, Factorization

RANK = 20
Clock = Callable[[], float]  # returns seconds
Curve = list[tuple[float, float]]  # (cost so far, D) after every round, the start included


def best_seconds(actions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the best time of each action; interleaved, so that noise affects all alike."""
    best = dict.fromkeys(actions, float("inf"))
    with threadpool_limits(1):
        for _ in range(repeats):
            for name, action in actions.items():
                start = perf_counter()
                action()
                best[name] = min(best[name], perf_counter() - start)
    return best


def paper_data(name: str) -> Any:
    """Load one of the paper's data sets without its empty rows and columns."""
    V = datasets.load(name)
    V = V[V.sum(axis=1) > 0][:, V.sum(axis=0) > 0]
    return np.ascontiguousarray(V) if isinstance(V, np.ndarray) else V


def common_start(V: Any, seed: int = 0, rank: int = RANK) -> tuple[Any, Any]:
    """Return factors after 5 multiplicative rounds from Uniform(0, 1) in float64, H first."""
    rng = np.random.default_rng(seed)
    W, H = rng.random((V.shape[0], rank)), rng.random((rank, V.shape[1])).T
    result = solve(
        Factorization(as_matrix(V), rank), Alternating(MU()), (W, H), stop=Stop(0, rounds=5)
    )
    return result.x.W, result.x.H


def run_solver(
    problem: Factorization, solver: Any, start: Any, seed: int, clock: Clock | None = perf_counter
) -> Iterator[tuple[float, Any]]:
    """Yield the cost so far and (W, H), first those of the start; without a clock count passes."""
    read = clock or (lambda: 0.0)
    before = read()
    state = solver.init(problem, start, seed)  # may evaluate D, so it is timed
    seconds = read() - before
    while True:
        yield seconds if clock else state.passes, state.x
        before = read()
        state = solver.advance(problem, state)
        seconds += read() - before


def record_curves(
    runs: dict[str, Iterator[tuple[float, Any]]],
    value: Callable[[Any], float],
    caps: dict[str, float],
    min_gain: float,
) -> dict[str, Curve]:
    """Advance all runs in turns until each has ended; return their curves.

    Parameters
    ----------
    runs
        Iterators over (cost so far, point), by name.
    value
        Function that returns D of a point; its time does not count.
    caps
        Largest cost of every run.
    min_gain
        See `has_ended`.
    """
    curves: dict[str, Curve] = {name: [] for name in runs}
    running = dict(runs)
    while running:
        for name, run in list(running.items()):
            cost, x = next(run)
            curves[name].append((cost, value(x)))
            if has_ended(curves[name], caps[name], min_gain):
                del running[name]
    return curves


def has_ended(curve: Curve, cap: float, min_gain: float) -> bool:
    """Return whether the cap is reached, or the second half of the cost reduced D too little.

    Too little is less than `min_gain` times the decrease of D since the start.
    """
    (cost, value), first = curve[-1], curve[0][1]
    half = bisect(curve, cost / 2, key=lambda point: point[0]) - 1
    return cost > cap or (len(curve) > 20 and curve[half][1] - value < min_gain * (first - value))


def time_to(curve: Curve, level: float, limit: float | None = None) -> float:
    """Return the cost to a level of (D − limit)/(D0 − limit), ∞ if the curve does not reach it.

    The limit is the lowest value of the curve itself if None.
    """
    first = curve[0][1]
    limit = min(value for _, value in curve) if limit is None else limit
    costs = (cost for cost, value in curve if value - limit <= level * (first - limit))
    return max(next(costs, float("inf")), 1e-6)


def thin(curve: Curve) -> Curve:
    """Return a curve with at most one point for every two percent of its cost."""
    points = curve[:1]
    for point in curve[1:]:
        if point[0] >= 1.02 * points[-1][0]:
            points.append(point)
    return [*points, curve[-1]]
