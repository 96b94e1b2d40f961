# SPDX-License-Identifier: BSD-3-Clause
"""Measure merge trees and programs over groups: python benchmarks/families.py [tree] [programs].

tree: counts of a topic model are fitted with surplus components. How often `suggested_rank` is the
true number of topics, and the range of the jump of the bound there. The rule (jumps of at least
1.75, bounds below ½ (√n + √m)² not compared) was chosen on seeds 0 to 9; the seeds here begin at
100. Fits without surplus components have no jump, and None is right.

programs: three groups of samples with 6 shared programs and 2 private ones each, fitted with 8 and
with 10 components per group, 4 replicates. Smallest cosine of a true program and the one found, and
how many of the 6 private ones are called shared. `min_cosine` was chosen on seeds 0 to 5.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from sipower import KLNMF, consensus
from sipower.datasets import poisson_topics
from sipower.selection import match, merge_tree

SEEDS = range(100, 110)
GROUPS, SHARED, PRIVATE = 3, 6, 2
TOPICS = (  # samples, features, topics, length, alpha
    (600, 400, 5, 400, 0.1),
    (600, 400, 10, 400, 0.1),
    (600, 400, 10, 100, 0.1),
    (300, 200, 8, 200, 0.1),
    (600, 400, 8, 400, 0.5),
    (1000, 800, 20, 100, 0.1),
)
SAMPLES = (  # samples per group, features, length, alpha, beta
    (200, 300, 500, 0.2, 0.05),
    (200, 300, 100, 0.2, 0.05),
    (300, 300, 200, 0.3, 0.3),
)


def measure_trees() -> None:
    print("| samples x features, topics, length, alpha | K | true rank suggested | jump |")
    print("|---|---|---|---|")
    for n, m, topics, length, alpha in TOPICS:
        for K in (topics, topics + 1, 2 * topics):
            expected, right, jumps = None if topics == K else topics, 0, []
            for seed in SEEDS:
                V = poisson_topics(n, m, topics, length=length, alpha=alpha, seed=seed)
                model = KLNMF(K, random_state=seed)
                tree = merge_tree(model.fit_transform(V), model.components_)
                right += tree.suggested_rank == expected
                jumps.append(tree.jumps.max())
            name = f"{n} x {m}, {topics}, {length}, {alpha}"
            found = f"{right} of {len(SEEDS)}" + (" (None)" if expected is None else "")
            print(f"| {name} | {K} | {found} | {min(jumps):.1f} to {max(jumps):.1f} |", flush=True)


def simulate(seed: int, n: int, m: int, length: float, alpha: float, beta: float) -> Any:
    """Return counts, the group of every sample, and the profiles, shared ones first."""
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(m, beta), SHARED + GROUPS * PRIVATE)
    counts = []
    for g in range(GROUPS):
        first = SHARED + PRIVATE * g
        own = [*range(SHARED), *range(first, first + PRIVATE)]
        weights = rng.dirichlet(np.full(len(own), alpha), n)
        counts.append(rng.poisson(length * weights @ profiles[own]))
    return np.vstack(counts), np.repeat(np.arange(GROUPS), n), profiles


def measure_programs() -> None:
    print(
        "| samples, features, length, alpha, beta | K | seeds with all found and told apart |",
        end="",
    )
    print(" smallest cosine, median and lowest | private called shared | programs found |")
    print("|---|---|---|---|---|---|")
    is_shared = np.arange(SHARED + GROUPS * PRIVATE) < SHARED
    for case in SAMPLES:
        for K in (SHARED + PRIVATE, SHARED + PRIVATE + 2):
            good, lowest, wrong, sizes = 0, [], 0, []
            for seed in SEEDS:
                V, groups, profiles = simulate(seed, *case)
                result = consensus(V, KLNMF(K, random_state=0), groups=groups, replicates=4)
                partners, cosine = match(profiles, result.H)
                called = (partners >= 0) & result.shared[partners]
                good += bool(cosine.min() >= 0.9 and (called == is_shared).all())
                lowest.append(cosine.min())
                wrong += int(called[~is_shared].sum())
                sizes.append(len(result.H))
            cosines = f"{np.median(lowest):.3f}, {min(lowest):.3f}"
            found = f"{good} of {len(SEEDS)}"
            private = f"{wrong} of {GROUPS * PRIVATE * len(SEEDS)}"
            name = ", ".join(map(str, case))
            programs = f"{min(sizes)} to {max(sizes)}"
            print(f"| {name} | {K} | {found} | {cosines} | {private} | {programs} |", flush=True)


def main() -> None:
    parts = {"tree": measure_trees, "programs": measure_programs}
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
