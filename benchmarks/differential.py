# SPDX-License-Identifier: BSD-3-Clause
"""How reliable `sipower.differential` is: coverage, false signs, noise, and its time.

    python benchmarks/differential.py              # all parts
    python benchmarks/differential.py coverage     # one of: coverage, noise, seconds

coverage: simulated Poisson topics (400 x 600, 4 topics). Share of the true log fold changes that
lie in the intervals of 95 %, by the standard error and after shrinkage, among entries with at least
20 expected counts in the components that are compared; share of wrong signs among changes with a
local false sign rate of at most 0.05. With the true W, and with a fitted W (components matched).

noise: how often the check on independent counts finds that components fit noise. Pure noise (a
model of rank 1) and topics, 20 seeds each.

seconds: all features of a generated single-cell matrix (4,000 x 15,000, about 3 million nonzeros),
K = 6, two threads, with and without the check.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from sipower import KLNMF, differential
from sipower.selection import match

SAMPLES, FEATURES, RANK, MIN_COUNTS = 400, 600, 4, 20
SEEDS = range(100, 110)
CONTRASTS = ("null", "least extreme", "pairwise")
NORMAL_95 = 1.959963985


def topics(seed: int, length: float = 800.0) -> tuple[Any, Any, Any]:
    """Return counts (400, 600), weights in counts and profiles (4, 600) of a topic model."""
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(FEATURES, 0.3), RANK)
    sizes = rng.lognormal(np.log(length), 0.4, (SAMPLES, 1))
    W = sizes * rng.dirichlet(np.full(RANK, 0.3), SAMPLES)
    return sparse.csr_array(rng.poisson(W @ H)), W, H


def true_changes(result: Any, W: Any, H: Any) -> tuple[Any, Any]:
    """Return the true log2 fold changes of the comparisons of a result, and their least counts."""
    logs, mass = np.log2(np.maximum(H, 1e-300)), W.sum(axis=0)[:, None] * H
    average = np.log2(mass.sum(axis=0) / mass.sum())
    component = np.broadcast_to(result.pairs[:, :1], result.against.shape)
    j = np.arange(H.shape[1])
    own, other = logs[component, j], logs[result.against, j]
    is_all = result.against < 0
    counts = np.where(
        is_all, mass[component, j], np.minimum(mass[component, j], mass[result.against, j])
    )
    return own - np.where(is_all, average, other), counts


def distinctive_sign(H: Any) -> Any:
    """Return 1 where a component has more of a feature than all others, -1 where less, else 0."""
    order = np.sort(H, axis=0)
    return np.where(order[-1] == H, 1, np.where(order[0] == H, -1, 0))


def measure(contrast: str, seed: int, prior: float, *, fitted: bool) -> list[Any]:
    """Return indicators: covered by the standard error, by the interval, and wrong signs."""
    V, W, H = topics(seed)
    model: Any = W
    if fitted:
        model = KLNMF(RANK, random_state=seed, tol=1e-4).fit(V)
        partners, _ = match(model.components_, H)
        H, W = H[partners], W[:, partners]
    result = differential(V, model, contrast=contrast, prior=prior, check=False)
    truth, counts = true_changes(result, W, H)
    enough = counts >= MIN_COUNTS
    raw = np.abs(result.log2_fold_change - truth) <= NORMAL_95 * result.standard_error
    shrunk = (result.lower <= truth) & (truth <= result.upper)
    hits = result.lfsr <= 0.05
    sign = distinctive_sign(H) if contrast == "least extreme" else np.sign(truth)
    return [raw[enough], shrunk[enough], (np.sign(result.posterior_mean) != sign)[hits]]


def compare_coverage(seeds: Any = SEEDS, prior: float = 1.0) -> None:
    """Print coverage and false signs."""
    for fitted in (False, True):
        for contrast in CONTRASTS:
            runs = [measure(contrast, seed, prior, fitted=fitted) for seed in seeds]
            raw, shrunk, wrong = (np.concatenate(part) for part in zip(*runs, strict=True))
            print(
                f"{'fitted' if fitted else 'true'} W, {contrast}: coverage {raw.mean():.1%} by the "
                f"standard error, {shrunk.mean():.1%} after shrinkage; {wrong.mean():.1%} of "
                f"{len(wrong):,} signs wrong"
            )


def compare_noise() -> None:
    """Print how often components are found to fit noise."""
    flagged = {"noise": 0, "topics": 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sizes = rng.lognormal(np.log(200), 0.5, (300, 1))
        noise = sparse.csr_array(rng.poisson(sizes * rng.dirichlet(np.full(400, 0.5))))
        for name, V in {"noise": noise, "topics": topics(seed, length=200)[0]}.items():
            model = KLNMF(5, random_state=seed).fit(V)
            replication = differential(V, model, random_state=seed).replication
            flagged[name] += not replication.is_supported
    print(
        f"reported as noise: {flagged['noise']} of 20 on noise, {flagged['topics']} of 20 on topics"
    )


def measure_seconds() -> None:
    """Print the time of all features of a single-cell matrix."""
    rng, n, m, rank = np.random.default_rng(0), 4000, 15_000, 6
    H = rng.lognormal(0, 2, m) * rng.lognormal(0, 1, (rank, m))
    H /= H.sum(axis=1, keepdims=True)
    W = rng.lognormal(np.log(1150), 0.5, (n, 1)) * rng.dirichlet(np.full(rank, 0.3), n)
    rows = [sparse.csr_array(rng.poisson(W[at : at + 500] @ H)) for at in range(0, n, 500)]
    V = sparse.csr_array(sparse.vstack(rows))
    model = KLNMF(rank, random_state=0, n_jobs=2).fit(V)
    for check in (False, True):
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            differential(V, model, check=check)
            seconds.append(time.perf_counter() - start)
        print(f"{V.nnz:,} nonzeros, check={check}: {min(seconds):.1f} s")


def main() -> None:
    parts = sys.argv[1:] or ["coverage", "noise", "seconds"]
    warnings.simplefilter("ignore")
    if "coverage" in parts:
        compare_coverage()
    if "noise" in parts:
        compare_noise()
    if "seconds" in parts:
        measure_seconds()


if __name__ == "__main__":
    main()
