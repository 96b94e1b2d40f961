# SPDX-License-Identifier: BSD-3-Clause
"""Replicates of a fit: the arrays that are saved of each, and the choice of the medoid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.loop.solve import hide_inner_results
from sipower.selection.matching import match
from sipower.selection.outcome import Consensus

__all__ = ["choose_medoid", "fit_replicate"]

MAX_EXCESS = 0.02  # a replicate whose divergence is further above the lowest is worse
MAX_SPREADS = 5.0  # likewise, in units of the lower quartile's distance from the lowest
NEGLIGIBLE = 1e-4  # nats per count
NEAREST = 0.3  # share of the other replicates, the most similar ones, that distance is taken to
MAX_DISTANCE = 0.3  # of unit vectors: a mean cosine of 0.955
MIN_FOR_DISTANCE = 4  # replicates


@hide_inner_results()
def fit_replicate(model: Any, V: Any, observed: dict[str, Any]) -> dict[str, Any]:
    """Fit a model and return the arrays to save."""
    W = np.asarray(model.fit_transform(V, **observed))  # lazy if the rows are on Dask workers
    numbers = np.array([model.kl_divergence_, model.kkt_residual_])
    piece = {"W": W, "H": model.components_, "numbers": numbers, "status": np.array(model.status_)}
    effects = getattr(model, "batch_effects_", None)
    return piece if effects is None else piece | {"batch_effects": effects}


def choose_medoid(fits: list[dict[str, Any]], total: float | None) -> Consensus:
    """Return the medoid of the fits; `total`, the sum of the data, is None if all are kept."""
    count, rank = len(fits), len(fits[0]["H"])
    partners = np.ones((count, count, rank))  # [a, b, k]: component k of a and its partner in b
    for a in range(count):
        for b in range(a + 1, count):
            other, cosine = match(fits[a]["H"], fits[b]["H"])
            partners[a, b] = cosine
            partners[b, a, other] = cosine
    similarity: NDArray[np.float64] = partners.mean(axis=2)
    divergences, gaps = np.stack([piece["numbers"] for piece in fits], axis=1)
    outliers = ("",) * count
    if total is not None:
        outliers = _find_outliers(divergences, similarity, total)
    kept = np.array([not reason for reason in outliers])
    # The replicate nearest to all others; among equals, the one with the lowest divergence.
    centrality = np.where(kept, similarity[:, kept].sum(axis=1), -np.inf)
    medoid = int(np.lexsort((divergences, -centrality))[0])
    is_other = kept & (np.arange(count) != medoid)
    stability = np.full(rank, np.nan)
    if is_other.any():
        stability = partners[medoid, is_other].mean(axis=0)
    W, H = fits[medoid]["W"], fits[medoid]["H"]
    statuses = tuple(str(piece["status"]) for piece in fits)
    effects = fits[medoid].get("batch_effects")
    return Consensus(
        W, H, medoid, stability, similarity, divergences, gaps, statuses, outliers, effects
    )


def _find_outliers(
    divergences: NDArray[np.float64],
    similarity: NDArray[np.float64],
    total: float,
) -> tuple[str, ...]:
    """Return "worse", "far" or "" for each replicate; `total` is the sum of the data."""
    count, lowest = len(divergences), float(divergences.min())
    spread = float(np.quantile(divergences, 0.25)) - lowest  # of the better fits
    is_worse = divergences - lowest > max(
        MAX_EXCESS * lowest, MAX_SPREADS * spread, NEGLIGIBLE * total
    )
    is_far = np.zeros(count, bool)
    if count >= MIN_FOR_DISTANCE:
        nearest = max(1, round(NEAREST * (count - 1)))
        others = similarity - 2 * np.eye(count)  # a replicate is not its own neighbour
        closest = np.sort(others, axis=1)[:, -nearest:].mean(axis=1)
        distance = np.sqrt(np.maximum(2 - 2 * closest, 0))
        is_far = distance > max(MAX_DISTANCE, 2 * float(np.median(distance)))
        is_far &= divergences > lowest  # one fit is always kept
    pairs = zip(is_worse, is_far, strict=True)
    return tuple("worse" if worse else "far" if far else "" for worse, far in pairs)
