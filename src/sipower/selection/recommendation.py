# SPDX-License-Identifier: BSD-3-Clause
"""The recommended rank: the smallest one within one standard error of the lowest error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["explain", "recommend", "standard_errors"]

Numbers = NDArray[np.float64]
UNSTABLE = 0.8  # the reason warns of components with a lower stability
NEGLIGIBLE = 1e-4  # nats per count


def standard_errors(groups: Numbers) -> Numbers:
    """Return the standard error of the differences from the lowest mean error, (ranks,).

    `groups` are the errors by rank, replicate and group of rows. The larger of two standard errors
    is used. The one over groups of rows measures the randomness of the held-out counts, the one
    over splits the randomness of the fits.
    """
    errors = groups.sum(axis=2)
    excess = groups - groups[int(np.argmin(errors.mean(axis=1)))]
    by_group = excess.mean(axis=1).std(axis=1, ddof=1) * np.sqrt(groups.shape[2])
    replicates = errors.shape[1]
    if replicates == 1:
        return np.asarray(by_group)
    by_split = excess.sum(axis=2).std(axis=1, ddof=1) / np.sqrt(replicates)
    return np.asarray(np.maximum(by_group, by_split))


def recommend(errors: Numbers, standard_error: Numbers) -> int:
    """Return the position of the smallest rank within one standard error of the lowest mean error.

    Differences below `NEGLIGIBLE` are ignored.
    """
    means = errors.mean(axis=1)
    return int(np.argmax(means - means.min() <= np.maximum(standard_error, NEGLIGIBLE)))


def explain(ranks: tuple[int, ...], errors: Numbers, stability: Numbers, at: int) -> str:
    """Return why the rank at position `at` is recommended, in one or two sentences."""
    lowest = int(np.argmin(errors))
    error = f"{errors[at]:.4g} nats per count"
    text = f"K = {ranks[at]} predicts unseen counts with an error of {error}"
    if len(ranks) == 1:
        text += ", the only K tried"
    elif at == lowest:
        text += ", the lowest of all"
    else:
        text += (
            f", within one standard error of the lowest ({errors[lowest]:.4g} at "
            f"K = {ranks[lowest]}{', the largest tried' if lowest == len(ranks) - 1 else ''})"
        )
    if np.isfinite(stability[at]):
        text += f"; its components have a mean cosine of {stability[at]:.2f} between replicates"
    if stability[at] < UNSTABLE:
        text += ", so few of them should be interpreted"
    text += "."
    if 0 < at == len(ranks) - 1:
        text += (
            f" The error is still falling at K = {ranks[-1]}, the largest K tried: try larger ones."
        )
        if np.isfinite(stability).all():
            top = int(np.argmax(stability))
            text += f" Components are most stable at K = {ranks[top]} ({stability[top]:.2f})."
    return text
