# SPDX-License-Identifier: BSD-3-Clause
"""Compare the solution of mixture proportions with L-BFGS-B to the same gap, and with EM.

The data are normal scale mixtures. Where n is at least 40 K², the solution is also compared with
one without epochs of S-SCI-PI, on well conditioned (gamma) likelihoods as well.

Run: python benchmarks/mixture.py       (best of 3, interleaved)
"""

from __future__ import annotations

import time

import numpy as np
from common import best_seconds
from scipy.optimize import minimize
from scipy.stats import norm

from sipower.problems import MixtureProportions, mixture_proportions

TOL = 1e-8


def likelihoods(n: int, K: int, seed: int = 0) -> np.ndarray:
    """Return likelihoods of observations from a scale mixture, on a geometric grid of scales."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.1, 10, K)
    truth = rng.choice([0.3, 1.0, 4.0], n, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=n) * np.sqrt(1 + truth**2)
    logs = norm.logpdf(x[:, None], scale=np.sqrt(1 + scales**2))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def gap(L: np.ndarray, x: np.ndarray) -> float:
    """Return the certified gap of proportions."""
    return float((L.T @ (1 / (L @ x))).max() / len(L) - 1)


def solve_by_lbfgs(L: np.ndarray) -> tuple[float, float]:
    """Return the seconds and the gap of L-BFGS-B.

    It minimises Σx − mean log(Lx) over x ≥ 0, whose minimiser sums to one.
    """

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        z = L @ x
        return float(x.sum() - np.log(z).mean()), 1 - L.T @ (1 / z) / len(L)

    best = [np.inf]

    def stop_at_gap(x: np.ndarray) -> None:
        best[0] = min(best[0], gap(L, x / x.sum()))
        if best[0] <= TOL:
            raise StopIteration

    K = L.shape[1]
    start = time.perf_counter()
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 0, "gtol": 1e-12, "maxcor": 20}
    minimize(
        objective,
        np.full(K, 1 / K),
        jac=True,
        method="L-BFGS-B",
        callback=stop_at_gap,
        bounds=[(1e-300, None)] * K,
        options=options,
    )
    return time.perf_counter() - start, best[0]


def em_gap_after(L: np.ndarray, seconds: float) -> float:
    """Return the gap that EM reaches in a number of seconds."""
    x = np.full(L.shape[1], 1 / L.shape[1])
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        x *= L.T @ (1 / (L @ x)) / len(L)
    return gap(L, x)


def compare_with_epochs() -> None:
    """Print time and passes with epochs of S-SCI-PI relative to those without."""
    problems = {
        "gamma 300,000 x 50": np.random.default_rng(0).gamma(0.5, 1.0, (300_000, 50)),
        "normal scale 842,860 x 42": likelihoods(842_860, 42),
    }
    for name, L in problems.items():
        problem = MixtureProportions(L)
        first, alone = problem.solution(TOL), problem.solution(TOL, sampling_threshold=np.inf)
        seconds = best_seconds(
            {
                "first": lambda problem=problem: problem.solution(TOL),
                "alone": lambda problem=problem: problem.solution(TOL, sampling_threshold=np.inf),
            },
            3,
        )
        print(
            f"{name}: certified {first.gaps[0]:.1e} in {first.passes[0]:.1f} passes, "
            f"{alone.gaps[0]:.1e} in {alone.passes[0]:.1f} without epochs; takes "
            f"{seconds['first'] / seconds['alone']:.2f} of the time"
        )


def main() -> None:
    compare_with_epochs()
    for n, K in ((50_000, 20), (12_729, 505)):
        L = likelihoods(n, K)
        ours = theirs = np.inf
        for _ in range(3):
            start = time.perf_counter()
            solution = mixture_proportions(L, tol=TOL)
            ours = min(ours, time.perf_counter() - start)
            seconds, reached = solve_by_lbfgs(L)
            theirs = min(theirs, seconds)
        print(
            f"{n} x {K}: certified gap {solution.gap:.1e}, recomputed "
            f"{gap(L, solution.proportions):.1e}; "
            f"L-BFGS-B took {theirs / ours:.1f} times as long to {reached:.1e}; EM reaches "
            f"{em_gap_after(L, ours):.1e} in the time of sipower"
        )


if __name__ == "__main__":
    main()
