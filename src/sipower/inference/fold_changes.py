# SPDX-License-Identifier: BSD-3-Clause
"""Log fold changes between components, with standard errors by the delta method.

With the profiles f_jk = h_jk/Σ_j h_jk of the components, the fold change of feature j in component
k is

    f_jk / f_jl                       against another component l ("pairwise"),
    f_jk / (c_j/ΣV)                   against all data together ("null"),
    the f_jk / f_jl closest to 1      against the most similar component ("least extreme").

With the gradient q of its logarithm in t = log h, the variance is qᵀ J⁻¹ q, where J is the
information of `regression`. A feature distinguishes a component if it is more frequent, or rarer,
in it than in each of the others. So the error probability of a least extreme change is at least the
largest one over the other components l, P(sign(t_k − t_l) is not that of the change).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sipower.inference.regression import Regression

__all__ = ["CONTRASTS", "FoldChanges", "fold_changes"]

Float = NDArray[np.float64]
CONTRASTS = ("least extreme", "null", "pairwise")


@dataclass(frozen=True, eq=False)
class FoldChanges:
    """Natural logarithms of fold changes, with one row for each contrast.

    Attributes
    ----------
    pairs
        Component and the component that it is compared with (-1: several or all), (contrasts, 2).
    estimates, errors
        Log fold changes and their standard errors, (contrasts, m).
    against
        Component that each estimate compares with, (contrasts, m); -1: all data.
    min_false_sign
        Smallest admissible false sign rate, (contrasts, m).
    """

    pairs: NDArray[np.int64]
    estimates: Float
    errors: Float
    against: NDArray[np.int64]
    min_false_sign: Float


def fold_changes(regression: Regression, contrast: str) -> FoldChanges:
    """Return the log fold changes of all features."""
    t = np.log(regression.h) - np.log(regression.h.sum(axis=0))
    if contrast == "null":
        return _against_all(t, regression)
    difference = t[:, :, None] - t[:, None, :]  # (m, K, K)
    errors = _difference_errors(regression.covariance)
    if contrast == "pairwise":
        first, second = np.triu_indices(t.shape[1], 1)
        estimates, against = difference[:, first, second].T, np.repeat(second[:, None], len(t), 1)
        pairs = np.stack([first, second], axis=1)
        floor = np.zeros(estimates.shape)
        return FoldChanges(pairs, estimates, errors[:, first, second].T, against, floor)
    return _least_extreme(difference, errors)


def _against_all(t: Float, regression: Regression) -> FoldChanges:
    """t_k − log(c_j/ΣV): the gradient of c_j = d·h is the shares of the components."""
    rank = t.shape[1]
    gradient = np.eye(rank) - regression.shares[:, None, :]  # (m, K, K)
    variance = np.einsum("jka,jab,jkb->jk", gradient, regression.covariance, gradient)
    average = np.log(regression.totals / regression.totals.sum())
    estimates, errors = (t - average[:, None]).T, np.sqrt(np.maximum(variance, 0)).T
    return FoldChanges(
        _component_rows(rank),
        estimates,
        errors,
        np.full(estimates.shape, -1),
        np.zeros(estimates.shape),
    )


def _least_extreme(difference: Float, errors: Float) -> FoldChanges:
    m, rank, _ = difference.shape
    is_self = np.eye(rank, dtype=bool)
    against = np.where(is_self, np.inf, np.abs(difference)).argmin(axis=2)
    j, k = np.arange(m)[:, None], np.arange(rank)
    estimates, chosen = difference[j, k, against], errors[j, k, against]
    sign = np.where(estimates > 0, 1.0, -1.0)[:, :, None]
    wrong = np.where(is_self, 0.0, ndtr(-sign * difference / errors))
    return FoldChanges(_component_rows(rank), estimates.T, chosen.T, against.T, wrong.max(axis=2).T)


def _component_rows(rank: int) -> NDArray[np.int64]:
    return np.stack([np.arange(rank), np.full(rank, -1)], axis=1)


def _difference_errors(covariance: Float) -> Float:
    """Return the standard errors of t_k − t_l, (m, K, K), with 1 on the diagonal."""
    variance = np.einsum("jkk->jk", covariance)
    between = variance[:, :, None] + variance[:, None, :] - 2 * covariance
    diagonal = np.arange(covariance.shape[1])
    between[:, diagonal, diagonal] = 1
    return np.asarray(np.sqrt(np.maximum(between, np.finfo(float).tiny)))
