# SPDX-License-Identifier: BSD-3-Clause
"""Functions that the benchmarks share: interleaved timing, data and common start."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sipower import Stop, as_matrix, datasets, solve
from sipower.nmf import MU, Alternating, Factorization

RANK = 20


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
