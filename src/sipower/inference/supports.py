# SPDX-License-Identifier: BSD-3-Clause
"""Selection of the components that each sample has, by likelihood-ratio tests.

The counts of a sample are v_j ~ Poisson((w H)_j), and H is known. Leaving component k out of a
support S costs 2(L_S − L_{S∖k}) of log-likelihood. If w_k = 0, this statistic is distributed as
½χ²₀ + ½χ²₁, because w_k cannot be negative (Chernoff 1954; Self and Liang 1987, case 5). With the
quantile q of that mixture,

    backward   drop the component that costs least, if that is less than q,
    forward    add the component that gains most, if that is more than q.

Each step raises 2L − q|S|, so the steps end: no component can then be dropped, and none added. All
samples take a step at the same time, with one solve for all of their candidates.

======  ==================================================  ==========
symbol  meaning                                             shape
======  ==================================================  ==========
V       counts                                              (n, m)
H       known components                                    (K, m)
w       exposures of a sample                               (K,)
d       sums of the rows of H                               (K,)
F       information Σ_j v_j h_j h_jᵀ / z_j², z = w H        (K, K)
======  ==================================================  ==========
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, xlogy

from sipower.data.validate import as_matrix
from sipower.estimators.observation import is_sparse
from sipower.kernels import Array
from sipower.problems.item_problem import ItemProblem, Terms

__all__ = [
    "ExposureProblem",
    "Supports",
    "plain_supports",
    "select_supports",
    "support_covariance",
    "threshold",
]

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]
Index = NDArray[np.intp]
TOL = 1e-10  # certified gap of every sample, relative to its counts
ZERO_SHARE, ZERO_COUNT = 1e-8, 1e-3  # exposures below both are zero, except for rounding
WEAKEST = 3  # candidates of a step while many components have to be dropped
MAX_ENTRIES = 4_000_000  # of the samples that are solved at once
RIDGE = 1e-10  # of the information, relative to its diagonal


def threshold(level: float) -> float:
    """Return the quantile q of ½χ²₀ + ½χ²₁ that noise exceeds with the probability `level`."""
    return float(chdtri(1, 2 * level)) if level < 0.5 else 0.0


@dataclass(frozen=True, eq=False)
class Supports:
    """Exposures of samples and the components that they may have.

    Attributes
    ----------
    w
        Exposures, (n, K); zero outside of the support.
    support
        Components of each sample, (n, K).
    log_likelihood
        Log-likelihoods without the terms that depend on V alone, (n,).
    """

    w: Float
    support: Bool
    log_likelihood: Float


class ExposureProblem:
    """The exposures of samples to known components.

    Parameters
    ----------
    V
        Counts, (n, m): an array, or a CSR array. No component may be zero in all features, and no
        sample may have counts of a feature that no component has.
    H
        Known components, (K, m).
    n_jobs
        Number of threads; None: all cores.
    """

    def __init__(self, V: Any, H: Float, n_jobs: int | None = None) -> None:
        self.V, self.H, self.n_jobs = V, H, n_jobs
        self.dense: Float = np.asarray(V.toarray() if is_sparse(V) else V, np.float64)
        self.B = np.ascontiguousarray(H.T)
        self.d: Float = H.sum(axis=1)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of components."""
        return self.dense.shape[0], len(self.H)

    def fit(self, items: Array, free: Bool, w: Float | None = None) -> Float:
        """Return the best exposures of some samples for given supports, (items, K).

        Parameters
        ----------
        items
            Samples, which may repeat.
        free
            Components that are estimated, (items, K); the others keep their exposures.
        w
            Exposures that are kept; None: zeros.
        """
        out = np.zeros(free.shape)
        start = out if w is None else np.where(free, 0.0, w)
        for part in self._parts(len(items)):
            matrix = as_matrix(self.V[items[part]], n_jobs=self.n_jobs, rows_only=True)
            terms = Terms(fixed=~free[part])
            problem = ItemProblem(matrix, self.B, dtype=np.float64, terms=terms)
            out[part] = problem.solution(TOL, start=start[part]).h
        return out

    def log_likelihood(self, items: Array, w: Float) -> Float:
        """Return Σ_j v_j log z_j − d·w of some samples; −inf if counts are impossible."""
        out = np.empty(len(items))
        for part in self._parts(len(items)):
            logs = xlogy(self.dense[items[part]], w[part] @ self.H)
            out[part] = logs.sum(axis=1)
        return np.asarray(out - w @ self.d)

    def slopes(self, items: Array, w: Float) -> Float:
        """Return the derivatives of the log-likelihood in w, (items, K)."""
        out = np.empty(w.shape)
        for part in self._parts(len(items)):
            out[part] = _ratios(self.dense[items[part]], w[part] @ self.H, 1) @ self.B
        return out - self.d

    def information(self, items: Array, w: Float) -> Float:
        """Return F of some samples, (items, K, K)."""
        ratios = _ratios(self.dense[items], w @ self.H, 2)
        F = np.empty((len(items), len(self.H), len(self.H)))
        for k, profile in enumerate(self.H):
            F[:, k] = (ratios * profile) @ self.B
        return F

    def _parts(self, count: int) -> list[slice]:
        size = max(MAX_ENTRIES // max(self.dense.shape[1], 1), 1)
        return [slice(at, at + size) for at in range(0, count, size)]


def _ratios(v: Float, z: Float, power: int) -> Float:
    """Return v/z or v/z², 0 where v is 0."""
    return np.asarray(np.divide(v, z**power, out=np.zeros(z.shape), where=(v > 0) & (z > 0)))


def support_covariance(F: Float, support: Bool) -> Float:
    """Return the inverse of F on the support of each sample, (n, K, K), and zeros elsewhere."""
    inside = support[:, :, None] & support[:, None, :]
    diagonal = np.einsum("nkk->nk", F)
    scale = np.where(support & (diagonal > 0), np.sqrt(np.maximum(diagonal, 1e-300)), 1.0)
    scaled = np.where(inside, F / scale[:, :, None] / scale[:, None, :], 0.0)
    k = np.arange(F.shape[1])
    scaled[:, k, k] = 1 + RIDGE
    inverse = np.linalg.inv(scaled) / scale[:, :, None] / scale[:, None, :]
    return np.where(inside, inverse, 0.0)


def plain_supports(problem: ExposureProblem) -> Supports:
    """Return the maximum-likelihood exposures to all components."""
    items = np.arange(problem.shape[0])
    w = problem.fit(items, np.ones(problem.shape, bool))
    support = _is_positive(w)
    w = np.where(support, w, 0.0)
    return Supports(w, support, problem.log_likelihood(items, w))


def select_supports(problem: ExposureProblem, plain: Supports, q: float) -> Supports:
    """Select the components of every sample by backward and forward steps with the quantile q.

    `plain` is the result of `plain_supports`.
    """
    state = Supports(plain.w.copy(), plain.support.copy(), plain.log_likelihood.copy())
    items = np.arange(problem.shape[0])
    _eliminate(problem, state, items, q, WEAKEST)
    while len(items):
        _eliminate(problem, state, items, q, len(problem.H))
        items = _add(problem, state, items, q)
    return state


def _is_positive(w: Float) -> Bool:
    return np.asarray(w > np.minimum(ZERO_SHARE * w.sum(axis=1, keepdims=True), ZERO_COUNT))


def _eliminate(
    problem: ExposureProblem, state: Supports, items: Index, q: float, candidates: int
) -> None:
    """Drop the components of some samples that cost least, one by one, while that is below q.

    The candidates of a step are those with the smallest Wald statistics w²/var(w).
    """
    while len(items):
        support = state.support[items]
        if candidates < len(problem.H):
            F = problem.information(items, state.w[items])
            variance = np.einsum("nkk->nk", support_covariance(F, support))
            wald = state.w[items] ** 2 / np.where(variance > 0, variance, 1.0)
            rank = np.where(support, wald, np.inf).argsort(axis=1, kind="stable").argsort(axis=1)
            support = support & (rank < candidates)
        row, k = np.nonzero(support)
        items = _take_step(problem, state, items[row], k, q)


def _add(problem: ExposureProblem, state: Supports, items: Index, q: float) -> Index:
    """Add to some samples the component that gains most, and return the samples that changed.

    By concavity, only components with a positive derivative can gain.
    """
    can_gain = (problem.slopes(items, state.w[items]) > 0) & ~state.support[items]
    row, k = np.nonzero(can_gain)
    return _take_step(problem, state, items[row], k, q)


def _take_step(
    problem: ExposureProblem, state: Supports, items: Index, components: Index, q: float
) -> Index:
    """Move one component of each sample into or out of its support, if 2L − q|S| rises.

    `items` and `components` are the pairs to try, sorted by sample. Of those of a sample, the one
    with the highest likelihood is used. Returns the samples that changed.
    """
    free, pair = state.support[items], np.arange(len(items))
    free[pair, components] ^= True
    w = problem.fit(items, free)
    value = problem.log_likelihood(items, w)
    order = np.lexsort((-value, items))
    best = order[np.unique(items[order], return_index=True)[1]]
    penalty = np.where(free[best, components[best]], q, -q)
    gain = 2 * (value[best] - state.log_likelihood[items[best]]) - penalty
    best = best[gain > 0]
    chosen = items[best]
    state.support[chosen] = free[best] & _is_positive(w[best])
    state.w[chosen] = np.where(state.support[chosen], w[best], 0.0)
    state.log_likelihood[chosen] = value[best]
    return chosen
