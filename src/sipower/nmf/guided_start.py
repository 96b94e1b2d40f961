# SPDX-License-Identifier: BSD-3-Clause
"""Initial factors for a fit with prior counts, from a fit without them.

Prior counts that one component has and others lack, e_jk = a_jk − min_l a_jl, guide that component
to certain features. Which of the fitted components it should be is decided by an assignment: the
sum of e_jk log φ_jl over all pairs (k, l) is the largest possible. Half of the profile of a guided
component is then replaced by its prior, so that a component which the first fit has not found can
still form, and W is solved for these profiles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sipower.kernels import Array
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.prior_counts import PriorCounts
from sipower.nmf.terms import ModelTerms

__all__ = ["guide_components", "guide_start"]

PRIOR_SHARE = 0.5  # of the first profile of a guided component
BACKGROUND = 1e-3  # share of the profile of all data in the profiles that are compared
ROW_TOL = 1e-2  # certified gap to which rows of W are solved
ROW_PASSES = 5.0  # approximate cost of that


def guide_start(problem: Factorization, x: Factors) -> tuple[Factors, float]:
    """Return factors for a problem with prior counts from those without, and the cost in passes.

    Zeros of entries with prior counts, whose objective would be infinite, are raised.
    """
    prior = problem.terms.prior
    if prior is None:
        return x, 0.0
    guided = guide_components(problem.terms, x.H, problem.column_mass)
    H, order = (x.H.copy(), np.arange(problem.rank)) if guided is None else guided
    prior.restart_empty(H, problem.column_mass, problem.terms.fixed)
    prior.lift_unseen(H)
    x = Factors(np.ascontiguousarray(x.W[:, order]), H)
    if guided is None and prior.rows is None:
        return x, 0.0
    W = problem.half(0, x).solution(ROW_TOL, exact=False).h
    return Factors(W.astype(x.W.dtype), x.H), ROW_PASSES


def guide_components(
    terms: ModelTerms, H: Array, c: NDArray[np.float64]
) -> tuple[Array, NDArray[np.int64]] | None:
    """Return guided components, and which of the given components take their places.

    None: no component is guided. `c` holds the masses of the features, (m,).
    """
    guidance = None if terms.prior is None else uneven_counts(terms.prior)
    if guidance is None:
        return None
    given, is_free = H, np.ones(H.shape[1], bool)
    if terms.fixed is not None:
        is_free &= ~(terms.fixed & (H > 0)).any(axis=0)
    order = _assign(guidance, H, c, is_free)
    H = H[:, order].astype(np.float64)
    H /= np.maximum(H.sum(axis=0), np.finfo(float).tiny)
    total = guidance.sum(axis=0)
    guided = total > 0
    H[:, guided] *= 1 - PRIOR_SHARE
    H[:, guided] += PRIOR_SHARE * guidance[:, guided] / total[guided]
    H[:, ~is_free] = given[:, ~is_free]
    if terms.fixed is not None:  # zeros that do not move with their components
        H[terms.fixed & is_free] = 0
        unseen = (c > 0) & ~H.any(axis=1)
        H[unseen] = np.where(terms.fixed[unseen], 0, BACKGROUND)
    return np.ascontiguousarray(H, given.dtype), order


def uneven_counts(prior: PriorCounts) -> NDArray[np.float64] | None:
    """Return e (m, K), or None if it is zero everywhere."""
    if prior.columns is None:
        return None
    uneven = prior.columns - prior.columns.min(axis=1, keepdims=True)
    return uneven if uneven.any() else None


def _assign(
    guidance: NDArray[np.float64],
    H: NDArray[np.floating],
    c: NDArray[np.float64],
    is_free: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return which fitted component takes the place of each component, (K,)."""
    profiles = H / np.maximum(H.sum(axis=0, dtype=np.float64), np.finfo(float).tiny)
    background = c[:, None] / max(float(c.sum()), np.finfo(float).tiny)
    profiles = (1 - BACKGROUND) * profiles + BACKGROUND * background
    free = np.flatnonzero(is_free)
    logs = np.log(np.maximum(profiles[:, free], np.finfo(float).tiny))
    places, chosen = linear_sum_assignment(guidance[:, free].T @ logs, maximize=True)
    order = np.arange(H.shape[1])
    order[free[places]] = free[chosen]
    return order
