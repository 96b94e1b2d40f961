# SPDX-License-Identifier: BSD-3-Clause
"""Mixture proportions: max (1/Σv) Σ_i v_i log(L_i·x) over the simplex; degree p = 0 in y = √x.

f(y) = (1/2Σv) Σ_i v_i log(L_i·y²), ∇f(y) = y∘G, G = Lᵀ(v ⊘ Lx)/Σv, and y·∇f(y) = 1 for all y. This
is a `KLBlock` with one item whose column sums d are set to 1, so the same kernels and the same
certificate apply: the objective is within max_k G_k − 1 of its maximum.

======  =============================================  ======
symbol  meaning                                        shape
======  =============================================  ======
L       likelihood L_ik of observation i, component k  (n, K)
v       weights of the observations                    (n,)
x, y    proportions, point of the sphere               (1, K)
======  =============================================  ======
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from sipower.data.names import arrange, data_items
from sipower.kernels import Array
from sipower.problems.base import Point, register
from sipower.problems.item_problem import Terms
from sipower.problems.kl import KLBlock


@register("mixture")
class MixtureProportions(KLBlock):
    """The maximum-likelihood problem of the proportions of components with known likelihoods.

    Parameters
    ----------
    L
        Likelihoods, (n, K), non-negative; or their logarithms with ``log=True``. A constant factor
        in a row only adds a constant to the log-likelihood.
    weights
        Weights of the observations, (n,); None: all 1.
    log
        Whether L holds logarithms, which cannot underflow.
    """

    def __init__(self, L: Any, weights: Any = None, *, log: bool = False) -> None:
        observations = data_items(L)[0]
        L = check_array(L, dtype=np.float64, ensure_all_finite=not log)
        self.shift = np.zeros(len(L))
        if log:
            L, self.shift = _exponentials(L)
        elif (L < 0).any():
            row, column = (int(i) for i in np.argwhere(L < 0)[0])
            raise ValueError(
                f"`L` must be non-negative, got {L[row, column]} at ({row}, {column}): use "
                "log=True for logarithms."
            )
        else:
            L, self.shift = _scale_rows(L)
        weights = _check_weights(arrange("weights", weights, observations), len(L))
        impossible = ~(L > 0).any(axis=1) & (weights > 0)
        if impossible.any():
            row = int(np.argmax(impossible))
            raise ValueError(
                f"Row {row} of `L` is zero: no component can explain this observation; remove it."
            )
        self.weights = weights
        super().__init__(weights[None, :], L, terms=Terms(np.ones(L.shape[1])))

    @property
    def item_weights(self) -> Array:
        """The weight of the only item, which is 1: `value` returns f unweighted."""
        return np.ones(1)

    def proportions(self, y: Point) -> Array:
        """Return x = y², (K,)."""
        return np.asarray(y[0] ** 2 / (y[0] ** 2).sum())

    def log_likelihood(self, x: Array) -> float:
        """Return Σ_i v_i log(L_i·x) for proportions x (K,), with L as the caller gave it."""
        v, z = self.weights, self.B @ x
        return float(np.where(v > 0, v * (np.log(np.where(v > 0, z, 1)) + self.shift), 0).sum())

    def value(self, y: Point) -> float:
        """Return f(y) = (1/2Σv) Σ_i v_i log(L_i·y²)."""
        return self.log_likelihood(self.proportions(y)) / (2 * self.V.total)


class Mixture(NamedTuple):
    """Proportions (K,), their log-likelihood, and the certified gap max_k G_k − 1."""

    proportions: Array
    log_likelihood: float
    gap: float


def mixture_proportions(
    L: Any, weights: Any = None, tol: float = 1e-8, *, log: bool = False
) -> Mixture:
    """Return the maximum-likelihood proportions with a certified gap.

    If there are at least 40 K² observations, the method begins with epochs of S-SCI-PI, otherwise
    with steps of SCI-PI; coordinate descent and Newton steps follow. The weighted mean of the
    log-likelihood is within ``gap`` of its maximum.

    Parameters
    ----------
    L, weights, log
        As for `MixtureProportions`.
    tol
        Certified gap at which to stop.

    Returns
    -------
    Mixture
        Proportions, log-likelihood and gap.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower.problems import mixture_proportions
    >>> L = np.random.default_rng(0).gamma(1.0, 1.0, (1000, 5))
    >>> bool(mixture_proportions(L).gap <= 1e-8)
    True
    """
    problem = MixtureProportions(L, weights, log=log)
    h, gaps, _ = problem.solution(tol)
    x = h[0] / h[0].sum()
    return Mixture(x, problem.log_likelihood(x), float(gaps[0]))


def _scale_rows(L: Array) -> tuple[Array, Array]:
    """Return L with each row's maximum scaled to [1, 2), and the logarithms of the scales."""
    exponents = np.frexp(L.max(axis=1, initial=0.0))[1] - 1
    return np.ldexp(L, -exponents[:, None]), exponents * np.log(2)


def _exponentials(logs: Array) -> tuple[Array, Array]:
    """Return exp(logs) with each row's maximum scaled to 1, and the logarithms of the scales."""
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise ValueError("`L` with log=True must not hold NaN or +inf.")
    largest = logs.max(axis=1, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    return np.exp(logs - shift[:, None]), shift


def _check_weights(weights: Any, n: int) -> Array:
    weights = np.ones(n) if weights is None else np.array(weights, np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"`weights` must be {n} finite non-negative numbers.")
    if not weights.any():
        raise ValueError("`weights` must not be all zero.")
    return np.asarray(weights)
