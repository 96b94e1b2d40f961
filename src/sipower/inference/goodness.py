# SPDX-License-Identifier: BSD-3-Clause
"""Goodness of fit of Poisson counts, by a deviance whose moments are exact for small counts.

The deviance of a sample is D = Σ_j u(v_j; z_j) with u(v; z) = 2(v log(v/z) − v + z). The χ²
distribution with m − p degrees of freedom describes D only if all z_j are large: u has the mean
1.15 for z = 1, and 0.09 for z = 0.01. So D is compared with a gamma distribution that has its mean
and variance,

    E D = Σ_j E u(v_j; z_j) − p,     Var D = Σ_j Var u(v_j; z_j) − 2p,

for p estimated exposures. For large z_j this is the χ² distribution. The moments of u are summed
over the Poisson distribution and interpolated (compare McCullagh 1985).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln, xlogy

__all__ = ["deviances", "goodness_of_fit"]

Float = NDArray[np.float64]
SMALLEST, LARGEST = 1e-10, 100.0  # expected counts between which the moments are summed
MIN_VARIANCE = 0.1  # of the variance of D that the estimated exposures leave


def deviances(v: Float, z: Float) -> Float:
    """Return u(v; z) of every entry; 0 where z is 0."""
    is_possible = z > 0
    z = np.where(is_possible, z, 1.0)
    unit = 2 * (xlogy(v, v) - xlogy(v, z) - v + z)
    return np.where(is_possible, np.maximum(unit, 0.0), 0.0)


@lru_cache(maxsize=1)
def _moments() -> tuple[Float, Float, Float]:
    """Return log z, and the logarithms of mean and variance of u for a table of z."""
    z = np.geomspace(SMALLEST, LARGEST, 1000)[:, None]
    v = np.arange(300.0)
    probability = np.exp(xlogy(v, z) - z - gammaln(v + 1))
    unit = deviances(np.broadcast_to(v, probability.shape), np.broadcast_to(z, probability.shape))
    mean = (probability * unit).sum(axis=1)
    variance = (probability * unit**2).sum(axis=1) - mean**2
    # For large z, the mean is 1 + 1/(6z) + O(z⁻²) and the variance 2 + 2/(3z) + O(z⁻²).
    large = np.geomspace(LARGEST, 1e8, 100)[1:]
    mean = np.concatenate([mean, 1 + 1 / (6 * large)])
    variance = np.concatenate([variance, 2 + 2 / (3 * large)])
    return np.log(np.concatenate([z[:, 0], large])), np.log(mean), np.log(variance)


def goodness_of_fit(v: Float, z: Float, parameters: NDArray[np.int64]) -> tuple[Float, Float]:
    """Return the deviance of every sample and its p-value, each (n,).

    Parameters
    ----------
    v, z
        Counts and expected counts, (n, m). Entries with the expected count 0 are left out.
    parameters
        Number of estimated exposures of each sample, (n,).
    """
    at, log_mean, log_variance = _moments()
    log_z = np.log(np.maximum(z, SMALLEST))
    is_used = z > 0
    mean = np.exp(np.interp(log_z, at, log_mean)).sum(axis=1, where=is_used)
    variance = np.exp(np.interp(log_z, at, log_variance)).sum(axis=1, where=is_used)
    D = deviances(v, z).sum(axis=1)
    mean, total = np.maximum(mean - parameters, MIN_VARIANCE * mean), variance
    variance = np.maximum(variance - 2 * parameters, MIN_VARIANCE * total)
    has_moments = (mean > 0) & (variance > 0)
    scale = np.where(has_moments, variance / np.where(has_moments, mean, 1.0), 1.0)
    p = gammaincc(np.where(has_moments, mean / scale, 1.0), D / scale)
    return D, np.where(has_moments, p, 1.0)
