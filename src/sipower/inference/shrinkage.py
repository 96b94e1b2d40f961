# SPDX-License-Identifier: BSD-3-Clause
"""Adaptive shrinkage of estimates towards zero (Stephens 2017), with certified mixture weights.

    β̂_j | β_j ~ Normal(β_j, s_j²),   β_j ~ π_0 δ_0 + Σ_m π_m Normal(0, σ_m²)

The proportions π maximise the likelihood of all estimates: a problem of mixture proportions, the
paper's second example, with L_jm = Normal(β̂_j; 0, s_j² + σ_m²). Given π, the posterior of β_j is a
mixture of normals. Its local false sign rate is the smaller of P(β_j ≤ 0) and P(β_j ≥ 0).

References
----------
M. Stephens (2017), False discovery rates: a new deal, Biostatistics 18, 275-294.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sipower.problems.mixture import mixture_proportions

__all__ = ["ShrunkenEffects", "shrink"]

Float = NDArray[np.float64]
GRID_FACTOR = np.sqrt(2)  # ratio of successive standard deviations of the prior
TOL = 1e-8  # certified gap of the mean log-likelihood
BISECTIONS = 40
LARGEST_SCORE = 12.0  # standard deviations within which a quantile lies
ITEMS_AT_ONCE = 20_000


@dataclass(frozen=True, eq=False)
class ShrunkenEffects:
    """The posterior of all effects.

    Attributes
    ----------
    mean, lower, upper
        Posterior mean and credible interval, (m,).
    false_sign
        Local false sign rate, (m,).
    scales, proportions
        Standard deviations σ of the prior, the first of them 0, and their proportions π.
    gap
        Certified gap of the mean log-likelihood of the proportions.
    """

    mean: Float
    lower: Float
    upper: Float
    false_sign: Float
    scales: Float
    proportions: Float
    gap: float


def shrink(estimates: Float, errors: Float, level: float = 0.95) -> ShrunkenEffects:
    """Shrink estimates (m,) with standard errors (m,) > 0.

    Parameters
    ----------
    estimates, errors
        β̂ and s.
    level
        Posterior probability of the intervals.
    """
    scales = _grid(estimates, errors)
    variance = errors[:, None] ** 2 + scales**2
    log_likelihood = -0.5 * (np.log(variance) + estimates[:, None] ** 2 / variance)
    mixture = mixture_proportions(log_likelihood, tol=TOL, log=True)
    parts = [
        _posterior(
            estimates[at], errors[at], log_likelihood[at], scales, mixture.proportions, level
        )
        for at in _slices(len(estimates))
    ]
    mean, lower, upper, false_sign = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ShrunkenEffects(mean, lower, upper, false_sign, scales, mixture.proportions, mixture.gap)


def _grid(estimates: Float, errors: Float) -> Float:
    """Return the standard deviations of the prior: 0, then a geometric grid.

    It reaches from a tenth of the smallest error to twice the largest effect.
    """
    smallest = errors.min() / 10
    excess = float(np.max(estimates**2 - errors**2, initial=0.0))
    largest = max(2 * np.sqrt(excess), 8 * smallest)
    count = int(np.ceil(np.log(largest / smallest) / np.log(GRID_FACTOR)))
    return np.append(0.0, largest / GRID_FACTOR ** np.arange(count, -1, -1))


def _slices(count: int) -> list[slice]:
    return [slice(at, at + ITEMS_AT_ONCE) for at in range(0, count, ITEMS_AT_ONCE)]


def _posterior(
    estimates: Float,
    errors: Float,
    log_likelihood: Float,
    scales: Float,
    proportions: Float,
    level: float,
) -> tuple[Float, Float, Float, Float]:
    """Return mean, interval and local false sign rate of some effects."""
    weights = proportions * np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    shrinkage = scales**2 / (errors[:, None] ** 2 + scales**2)
    centre, spread = shrinkage * estimates[:, None], np.sqrt(shrinkage) * errors[:, None]
    mean = (weights * centre).sum(axis=1)
    null, rest = weights[:, 0], weights[:, 1:]
    centre, spread = centre[:, 1:], spread[:, 1:]
    below = (rest * ndtr(-centre / spread)).sum(axis=1)
    false_sign = null + np.minimum(below, rest.sum(axis=1) - below)
    tail = (1 - level) / 2
    lower, upper = (_quantile(p, null, rest, centre, spread) for p in (tail, 1 - tail))
    return mean, lower, upper, np.clip(false_sign, 0.0, 1.0)


def _quantile(p: float, null: Float, weights: Float, centre: Float, spread: Float) -> Float:
    """Return the p-quantiles of mixtures of normals with a point mass `null` at zero."""
    low = np.minimum((centre - LARGEST_SCORE * spread).min(axis=1), 0.0)
    high = np.maximum((centre + LARGEST_SCORE * spread).max(axis=1), 0.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        mass = (weights * ndtr((middle[:, None] - centre) / spread)).sum(axis=1)
        is_above = mass + null * (middle >= 0) >= p
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return np.asarray((low + high) / 2)
