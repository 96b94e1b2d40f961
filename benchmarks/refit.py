# SPDX-License-Identifier: BSD-3-Clause
"""How well `sipower.refit` finds the active ones of many known signatures.

    python benchmarks/refit.py              # all parts
    python benchmarks/refit.py selection    # one of: levels, selection, intervals, fit, seconds

Simulated tumours: 60 known signatures of 96 kinds of mutation (Dirichlet 0.2), 8 of them active in
each of 100 tumours (Dirichlet 1), Poisson counts of 500 and 5,000 expected mutations. Results are
means over seeds 100 to 109; the default level was chosen on seeds 0 to 9.

levels: F1 by significance level, on seeds 0 to 9.

selection: precision, recall and F1 of the active signatures, and the mean error of an exposure in
mutations: plain refit, plain refit with a cut-off at 5 % of the mutations, and sparse refit.

intervals: coverage of the intervals of 95 %, among selected signatures, among active ones that were
not selected, and among all.

fit: share of the tumours whose p-value of the goodness of fit is below 0.05, with the complete
catalogue, and without one of the active signatures (at least 10 % of the mutations).

seconds: time for 1,000 tumours, two threads, without and with intervals.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from sipower import refit

TUMOURS, KNOWN, ACTIVE, KINDS = 100, 60, 8, 96
MUTATIONS = (500, 5000)
TUNING, SEEDS = range(10), range(100, 110)
LEVELS = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


def simulate(mutations: float, seed: int, tumours: int = TUMOURS) -> tuple[Any, Any, Any]:
    """Return counts, the catalogue and the exposures."""
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(KINDS, 0.2), KNOWN)
    W = np.zeros((tumours, KNOWN))
    for row in W:
        shares = rng.dirichlet(np.ones(ACTIVE))
        row[rng.choice(KNOWN, ACTIVE, replace=False)] = mutations * shares
    return rng.poisson(W @ H), H, W


def accuracy(found: Any, truth: Any) -> tuple[float, float, float]:
    """Return precision, recall and F1."""
    hits = (found & truth).sum()
    return hits / found.sum(), hits / truth.sum(), 2 * hits / (found.sum() + truth.sum())


def compare_levels() -> None:
    """Print F1 by level on the tuning seeds."""
    for level in LEVELS:
        means = []
        for mutations in MUTATIONS:
            scores = []
            for seed in TUNING:
                V, H, W = simulate(mutations, seed)
                found = refit(V, H, level=level, intervals=False).support
                scores.append(accuracy(found, W > 0)[2])
            means.append(np.mean(scores))
        print(f"level {level:g}: F1 {means[0]:.3f} and {means[1]:.3f}")


def compare_selections() -> None:
    """Print precision, recall, F1 and the mean error of exposures."""
    for mutations in MUTATIONS:
        results: dict[str, list[Any]] = {}
        for seed in SEEDS:
            V, H, W = simulate(mutations, seed)
            plain = refit(V, H, sparse=False, intervals=False)
            cut = plain.exposures * (plain.shares >= 0.05)
            cut *= V.sum(axis=1, keepdims=True) / cut.sum(axis=1, keepdims=True)
            sparse = refit(V, H, intervals=False).exposures
            for name, w in {"plain": plain.exposures, "5 %": cut, "sparse": sparse}.items():
                scores = *accuracy(w > 0, W > 0), np.abs(w - W).mean()
                results.setdefault(name, []).append(scores)
        for name, scores in results.items():
            precision, recall, f1, error = np.mean(scores, axis=0)
            low, high = np.min(scores, axis=0)[2], np.max(scores, axis=0)[2]
            print(f"{mutations:5} mutations, {name:6}: precision {precision:.3f}, recall "
                  f"{recall:.3f}, F1 {f1:.3f} ({low:.3f}-{high:.3f}), error "
                  f"{error:.2f}")  # fmt: skip


def measure_coverage() -> None:
    """Print the coverage of the intervals."""
    for mutations in MUTATIONS:
        parts: list[Any] = []
        for seed in SEEDS:
            V, H, W = simulate(mutations, seed)
            result = refit(V, H)
            inside = (result.lower <= W) & (result.upper >= W)
            missed = ~result.support & (W > 0)
            parts.append((inside[result.support], inside[missed], inside.ravel()))
        selected, missed, every = (np.concatenate(p).mean() for p in zip(*parts, strict=True))
        print(f"{mutations:5} mutations: {selected:.1%} of the selected, {missed:.1%} of the "
              f"missed, {every:.1%} of all")  # fmt: skip


def measure_goodness() -> None:
    """Print how often the goodness of fit rejects complete and incomplete catalogues."""
    for mutations in (100, *MUTATIONS):
        complete, incomplete = [], []
        for seed in SEEDS:
            V, H, W = simulate(mutations, seed)
            complete.append(refit(V, H, intervals=False).p_value < 0.05)
            lacks = W[:, 0] >= 0.1 * mutations
            if lacks.any():
                p = refit(V[lacks], H[1:], intervals=False).p_value
                incomplete.append(p < 0.05)
        print(f"{mutations:5} mutations: {np.concatenate(complete).mean():.1%} of complete, "
              f"{np.concatenate(incomplete).mean():.1%} of incomplete fits")  # fmt: skip


def measure_seconds() -> None:
    """Print the time of 1,000 tumours."""
    V, H, _ = simulate(500, 0, tumours=1000)
    for intervals in (False, True):
        start = time.perf_counter()
        refit(V, H, intervals=intervals, n_jobs=2)
        print(f"intervals={intervals}: {time.perf_counter() - start:.1f} s")


PARTS = {
    "levels": compare_levels,
    "selection": compare_selections,
    "intervals": measure_coverage,
    "fit": measure_goodness,
    "seconds": measure_seconds,
}


def main() -> None:
    for part in sys.argv[1:] or PARTS:
        print(part)
        PARTS[part]()


if __name__ == "__main__":
    main()
