# SPDX-License-Identifier: BSD-3-Clause
"""`regress`: the Poisson regression of every feature on the weights, with its information.

    v_ij ~ Poisson(X_ij w_i·h_j)   for every sample i,   with prior counts a of every h_jk

In t = log h the objective of a feature is Σ_k d_k e^{t_k} − Σ_i v_i log(w_i·e^t) − a Σ_k t_k. At
its minimum, where h_k (d_k − g_k) = a, its Hessian is

    J = a I + diag(h) F diag(h),   F = Σ_i v_i w_i w_iᵀ / z_i²,   z_i = w_i·h,

the observed Fisher information. Prior counts keep h positive and J invertible: a component that the
feature does not have, or one that is collinear with another, has a variance of at most 1/a.

======  ============================================  =========
symbol  meaning                                       shape
======  ============================================  =========
V       data                                          (n, m)
W       weights                                       (n, K)
h       coefficients, the components given W          (m, K)
d       linear terms of the features                  (K,) or (m, K)
======  ============================================  =========
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.row_blocks import RowBlocks
from sipower.estimators.observation import is_sparse
from sipower.estimators.prepared import Prepared, row_chunks
from sipower.problems.item_problem import ItemProblem, Terms

__all__ = ["DEFAULT_PRIOR", "Regression", "information", "regress", "regress_prepared"]

Float = NDArray[np.float64]
TOL = 1e-10  # certified gap of every feature, relative to its counts
DEFAULT_PRIOR = 1.0  # prior counts; with 0.1, features of one component alone were missed
MAX_STEP = 0.1  # of the logarithm of a coefficient


@dataclass(frozen=True, eq=False)
class Regression:
    """The Poisson regressions of all features.

    Attributes
    ----------
    h
        Coefficients, (m, K).
    covariance
        Covariance of log h, (m, K, K).
    shares
        Share of the counts of a feature that every component explains, (m, K).
    totals
        Expected counts of every feature, prior counts included, (m,).
    gap
        Largest certified gap of a feature, relative to its counts.
    """

    h: Float
    covariance: Float
    shares: Float
    totals: Float
    gap: float


def regress(V: RowBlocks, W: Float, prior: float, d: Float | None = None) -> Regression:
    """Regress every feature of V (n, m) on W (n, K) with `prior` counts for each coefficient.

    `d` holds the linear terms of the features if the exposure is not 1 everywhere. A component
    without weights gets the average of the others and the variance 1/prior.
    """
    used = np.asarray(W.any(axis=0))
    if not used.all():
        part = regress(V, W[:, used], prior, d if d is None or d.ndim == 1 else d[:, used])
        return _insert_unused(part, used, prior)
    sums = W.sum(axis=0)
    d = sums if d is None else np.where(d > 0, d, sums)  # a feature that is never observed
    problem = ItemProblem(
        V.columns, W, dtype=np.float64, terms=Terms(d, np.full(W.shape[1], float(prior)))
    )
    solution = problem.solution(TOL)
    h = _polish(problem, V, solution.h, prior)
    covariance = _covariance(V, W, h, prior)
    expected = d * h
    totals = expected.sum(axis=1)
    gap = float(solution.gaps.max())
    return Regression(h, covariance, expected / totals[:, None], totals, gap)


def regress_prepared(prepared: Prepared, W: Float, prior: float) -> Regression:
    """Regress every feature of weighted data on W (n, K), which is in the scale of the user."""
    weights = prepared.scale_rows(W)
    exposure = prepared.exposure
    d = None if exposure is None else exposure.linear_terms(1, weights)
    return regress(prepared.V, weights, prior, d)


def _polish(problem: ItemProblem, V: RowBlocks, h: Float, prior: float) -> Float:
    """Take one Newton step in t, because a small gap is quadratic in the error of t."""
    slope = h * (problem.d - problem.ratio_sums(h)) - prior
    step = np.einsum("jkl,jl->jk", _covariance(V, problem.B, h, prior), slope)
    return np.asarray(h * np.exp(-np.clip(step, -MAX_STEP, MAX_STEP)))


def _covariance(V: RowBlocks, W: Float, h: Float, prior: float) -> Float:
    """Return J⁻¹ of every feature, (m, K, K)."""
    J = h[:, :, None] * information(V, W, h) * h[:, None, :]
    diagonal = np.arange(W.shape[1])
    J[:, diagonal, diagonal] += prior
    return np.asarray(np.linalg.inv(J), np.float64)


def _insert_unused(part: Regression, used: NDArray[np.bool_], prior: float) -> Regression:
    m, rank = len(part.h), len(used)
    h = np.repeat((part.totals / part.totals.sum())[:, None], rank, axis=1)
    h[:, used] = part.h
    covariance, shares = np.zeros((m, rank, rank)), np.zeros((m, rank))
    covariance[:, np.arange(rank), np.arange(rank)] = 1 / prior
    covariance[np.ix_(np.arange(m), used, used)] = part.covariance
    shares[:, used] = part.shares
    return Regression(h, covariance, shares, part.totals, part.gap)


def information(V: RowBlocks, W: Float, h: Float) -> Float:
    """Return F of every feature, (m, K, K): one product of V/z² with all products of weights."""
    rank = W.shape[1]
    first, second = np.triu_indices(rank)
    sums = np.zeros((V.shape[1], len(first)))
    for begin, end, rows in row_chunks(V):
        w = W[begin:end]
        sums += _quotients(rows, w, h).T @ (w[:, first] * w[:, second])
    F = np.empty((V.shape[1], rank, rank))
    F[:, first, second] = F[:, second, first] = sums
    return F


def _quotients(rows: Any, w: Float, h: Float) -> Any:
    """Return v/z² of some rows, sparse if they are."""
    if not is_sparse(rows):
        Z = w @ h.T
        return np.divide(rows, Z**2, out=np.zeros(Z.shape), where=rows > 0)
    csr = rows
    row = np.repeat(np.arange(len(w)), np.diff(csr.indptr))
    z = np.einsum("ik,ik->i", w[row], h[csr.indices])
    return sparse.csr_array((csr.data / z**2, csr.indices, csr.indptr), csr.shape)
