# SPDX-License-Identifier: BSD-3-Clause
"""Mixture proportions: max (1/Σv) Σ_i v_i log(L_i·x) over the simplex; degree p = 0 in y = √x.

f(y) = (1/2Σv) Σ_i v_i log(L_i·y²), ∇f(y) = y∘G, G = Lᵀ(v ⊘ Lx)/Σv, and y·∇f(y) = 1 for all y. This
is one item of a `KLBlock` whose column sums d are taken as 1: the same kernels and certificate,
F* − F(x) ≤ Σv (max_k G_k − 1).

======  =============================================  ======
symbol  meaning                                        shape
======  =============================================  ======
L       L_ik: likelihood of observation i under k      (n, K)
v       weights of the observations                    (n,)
x, y    proportions, point of the sphere               (1, K)
======  =============================================  ======
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from sipower.kernels import Array
from sipower.problems.base import Point, register
from sipower.problems.kl import KLBlock

__all__ = ["Mixture", "MixtureProportions", "mixture_proportions"]


@register("mixture")
class MixtureProportions(KLBlock):
    """Proportions of known components from the likelihoods of observations.

    Parameters
    ----------
    L
        Likelihoods, (n, K), non-negative; or their logarithms with ``log=True``. Scaling a row
        only shifts the log-likelihood.
    weights
        Weights of the observations; None: one each.
    log
        Whether L holds logarithms; nothing underflows then.
    """

    def __init__(self, L: Any, weights: Any = None, *, log: bool = False) -> None:
        L = check_array(L, dtype=np.float64, ensure_all_finite=not log)
        self.shift = np.zeros(len(L))
        if log:
            L, self.shift = _exponentials(L)
        elif (L < 0).any():
            row, column = (int(i) for i in np.argwhere(L < 0)[0])
            raise ValueError(f"Likelihood ({row}, {column}) is negative; use log=True for logs.")
        else:
            L, self.shift = _scaled(L)
        weights = _checked_weights(weights, len(L))
        impossible = ~(L > 0).any(axis=1) & (weights > 0)
        if impossible.any():
            row = int(np.argmax(impossible))
            raise ValueError(f"Row {row} of L is zero: no component explains the observation.")
        self.weights = weights
        super().__init__(weights[None, :], L, d=np.ones(L.shape[1]))

    @property
    def item_weights(self) -> Array:
        """The value is f itself."""
        return np.ones(1)

    def proportions(self, y: Point) -> Array:
        """x = y²."""
        return np.asarray(y[0] ** 2 / (y[0] ** 2).sum())

    def log_likelihood(self, x: Array) -> float:
        """Σ v log(L·x), the scaling of the rows undone."""
        v, z = self.weights, self.B @ x
        return float(np.where(v > 0, v * (np.log(np.where(v > 0, z, 1)) + self.shift), 0).sum())

    def value(self, y: Point) -> float:
        """(1/2Σv) Σ v log(L·y²)."""
        return self.log_likelihood(self.proportions(y)) / (2 * self.V.total)


class Mixture(NamedTuple):
    """Proportions, their log-likelihood, and the certified gap max_k G_k − 1."""

    proportions: Array
    log_likelihood: float
    gap: float


def mixture_proportions(
    L: Any, weights: Any = None, tol: float = 1e-8, *, log: bool = False
) -> Mixture:
    """Maximum-likelihood proportions, certified.

    With at least 40 K² observations epochs of S-SCI-PI come first, else steps of SCI-PI; coordinate
    descent and Newton steps do the rest. The mean log-likelihood is within ``gap`` of its maximum.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower.problems import mixture_proportions
    >>> L = np.random.default_rng(0).gamma(1.0, 1.0, (1000, 5))
    >>> bool(mixture_proportions(L).gap <= 1e-8)
    True
    """
    problem = MixtureProportions(L, weights, log=log)
    found = problem.solution(tol)
    x = found.h[0] / found.h[0].sum()
    return Mixture(x, problem.log_likelihood(x), float(found.gaps[0]))


def _scaled(L: Array) -> tuple[Array, Array]:
    """Likelihoods with each row's largest in [1, 2), and the logs of what was taken off."""
    exponents = np.frexp(L.max(axis=1, initial=0.0))[1] - 1
    return np.ldexp(L, -exponents[:, None]), exponents * np.log(2)


def _exponentials(logs: Array) -> tuple[Array, Array]:
    """exp of the logs with each row's largest at 1, and what was taken off."""
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise ValueError("Log-likelihoods must not be NaN or +inf.")
    largest = logs.max(axis=1, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    return np.exp(logs - shift[:, None]), shift


def _checked_weights(given: Any, n: int) -> Array:
    weights: Array = np.ones(n) if given is None else np.array(given, np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"weights must be {n} finite non-negative numbers.")
    if not weights.any():
        raise ValueError("All weights are zero: there is nothing to fit.")
    return weights
