# SPDX-License-Identifier: BSD-3-Clause
"""Profile-likelihood intervals of exposures to known components.

The interval of w_k is {x ≥ 0 : f(x) ≤ 0} with

    f(x) = 2(L − max L(w | w_k = x)) − q,     f'(x) = −2 ∂L/∂w_k,

where the other components are fitted again for every x, L is the log-likelihood of the sample, and
q a quantile of χ²₁. The interval never leaves x ≥ 0, and it contains 0 if the data do not exclude
it. Because f is convex, Newton's method converges from any point with f > 0.

For a component that was selected, all known components may take its place, so the interval includes
the uncertainty of the selection. It is extended to the estimate where that lies outside. For a
component that was not selected, the upper limit is that of adding it to the selected ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from sipower.inference.supports import ExposureProblem, Supports, support_covariance

__all__ = ["profile_intervals"]

Float = NDArray[np.float64]
Pairs = tuple[NDArray[np.intp], ...]
MAX_STEPS = 40
ACCURACY = 0.005  # of f, relative to q
MAX_FALL = 0.2  # factor of one step towards zero


def profile_intervals(
    problem: ExposureProblem, plain: Supports, fit: Supports, confidence: float
) -> tuple[Float, Float]:
    """Return the ends of the intervals of all exposures, each (n, K).

    Parameters
    ----------
    problem
        The counts and the known components.
    plain
        Fit with all components.
    fit
        Fit whose exposures are reported: `plain`, or that of the selected components.
    confidence
        Confidence of the intervals.
    """
    q = float(chdtri(1, 1 - confidence))
    lower, upper = np.zeros(fit.w.shape), np.zeros(fit.w.shape)
    full = Supports(plain.w, np.ones(plain.w.shape, bool), plain.log_likelihood)
    inside, outside = np.nonzero(fit.support), np.nonzero(~fit.support)
    width = _widths(problem, plain, q)
    upper[inside] = _solve(problem, full, inside, (plain.w + width)[inside], q)
    excludes_zero = _profile(problem, full, inside, np.zeros(len(inside[0])), q)[0] > 0
    above = inside[0][excludes_zero], inside[1][excludes_zero]
    start = np.maximum(plain.w - width, MAX_FALL * plain.w)[above]
    lower[above] = _solve(problem, full, above, start, q)
    upper[outside] = _solve(problem, fit, outside, _widths(problem, fit, q)[outside], q)
    return np.minimum(lower, fit.w), np.maximum(upper, fit.w)


def _widths(problem: ExposureProblem, fit: Supports, q: float) -> Float:
    """Return where the quadratic expansion of f has its root, as a distance from w, (n, K).

    The curvature of the profile is c_k = F_kk − F_kS F_SS⁻¹ F_Sk, or 1/(F_SS⁻¹)_kk for k in S.
    """
    items = np.arange(len(fit.w))
    F = problem.information(items, fit.w)
    covariance = support_covariance(F, fit.support)
    variance, diagonal = (np.einsum("nkk->nk", A) for A in (covariance, F))
    explained = np.einsum("nka,nkl,nla->na", F, covariance, F, optimize=True)
    outside = np.maximum(diagonal - explained, 1e-6 * diagonal)
    curvature = np.where(fit.support, 1 / np.where(variance > 0, variance, 1.0), outside)
    slope = np.where(fit.support, 0.0, problem.slopes(items, fit.w))
    return np.asarray(q / (np.sqrt(slope**2 + curvature * q) - slope))


def _profile(
    problem: ExposureProblem, fit: Supports, pairs: Pairs, x: Float, q: float
) -> tuple[Float, Float]:
    """Return f and f' for exposures x of some pairs of a sample and a component."""
    items, k = pairs
    pair = np.arange(len(items))
    free, w = fit.support[items], np.zeros((len(items), len(problem.H)))
    free[pair, k] = False
    w[pair, k] = x
    w = problem.fit(items, free, w)
    value = 2 * (fit.log_likelihood[items] - problem.log_likelihood(items, w)) - q
    return value, -2 * problem.slopes(items, w)[pair, k]


def _solve(problem: ExposureProblem, fit: Supports, pairs: Pairs, x: Float, q: float) -> Float:
    """Return the root of f on the side of w where x is."""
    x, todo = x.copy(), np.arange(len(x))
    side = np.where(x >= fit.w[pairs], 1.0, -1.0)
    for _ in range(MAX_STEPS):
        value, slope = _profile(problem, fit, (pairs[0][todo], pairs[1][todo]), x[todo], q)
        keep = ~(np.abs(value) <= ACCURACY * q)
        todo, value, slope = todo[keep], value[keep], slope[keep]
        if not len(todo):
            break
        # A slope of the wrong sign means that x lies between w and the best value of the profile.
        rises = (slope * side[todo] > 0) & np.isfinite(value)
        step = np.where(rises, -value / np.where(slope == 0, 1.0, slope), x[todo])
        x[todo] = np.maximum(x[todo] + step, MAX_FALL * x[todo])
    return x
