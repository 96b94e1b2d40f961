# SPDX-License-Identifier: BSD-3-Clause
"""Item problems with every combination of terms, and their objective, minimum and dual in NumPy."""

from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar
from scipy.special import xlogy

from sipower.problems.item_problem import Terms
from sipower.problems.kl import KLBlock

LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}
NAMES = ("d", "prior", "ridge", "fixed")
COMBINATIONS = [
    tuple(name for name, used in zip(NAMES, choice, strict=True) if used)
    for choice in product([False, True], repeat=4)
]


class Item(NamedTuple):
    """One item: its data, the basis, its terms, and the components that may change."""

    v: np.ndarray
    B: np.ndarray
    d: np.ndarray
    a: np.ndarray
    r: float
    free: np.ndarray

    def objective(self, h):
        """d·h + ½r‖h‖² − Σ v log(b·h) − Σ a log h, the penalties over the free components only."""
        ridge = self.r / 2 * (h[self.free] ** 2).sum()
        prior = xlogy(self.a, h)[self.free].sum()
        return self.d @ h + ridge - xlogy(self.v, self.B @ h).sum() - prior

    def gradient(self, h):
        """d + r h − g − a ⊘ h; zero at the fixed components."""
        ratios = np.divide(self.v, self.B @ h, out=np.zeros(len(self.v)), where=self.v > 0)
        prior = np.divide(self.a, h, out=np.zeros(len(h)), where=self.a > 0)
        return np.where(self.free, self.d + self.r * h - self.B.T @ ratios - prior, 0)

    def minimum(self, h):
        """Return the smallest objective with the fixed components of h, by L-BFGS-B."""
        if not self.free.any():
            return self.objective(h)
        scale = (self.v.sum() + self.a.sum() + 1e-300) / max(self.d.sum(), 1e-300)

        def at(x):
            point = h.astype(float)
            point[self.free] = scale * x
            return self.objective(point), scale * self.gradient(point)[self.free]

        x = np.ones(self.free.sum())
        for _ in range(3):
            options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 5000, "maxfun": 50000}
            bounds = [(1e-13, None)] * len(x)
            result = minimize(at, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            x = result.x
        return result.fun

    def dual(self, h):
        """Return the largest dual objective over u = t v/z, by a search in one dimension."""
        free = self.free
        z0 = self.B @ np.where(free, 0, h)
        quotient = np.divide(self.v, self.B @ h, out=np.zeros(len(self.v)), where=self.v > 0)
        g = (self.B.T @ quotient)[free]
        d, a = self.d[free], self.a[free]
        fixed = self.d[~free] @ h[~free]

        def value(t):
            u = t * quotient
            positive = self.v > 0
            data = self.v - xlogy(self.v, self.v / np.where(positive, u, 1))
            return data[positive].sum() - u @ z0 + self.separable(d - t * g, a) + fixed

        limits = [d[k] / g[k] for k in range(len(d)) if self.r == 0 and g[k] > 0]
        edge = min(limits, default=1e3)
        found = minimize_scalar(
            lambda t: -value(t), bounds=(0, edge), method="bounded", options={"xatol": 1e-14}
        )
        return max(-found.fun, value(edge))  # the best t may be the largest one

    def separable(self, c, a):
        """Σ_k min over h ≥ 0 of c h + ½r h² − a log h, for vectors c and a."""
        if self.r == 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where(a > 0, a - xlogy(a, a / np.maximum(c, 0)), 0)
            return terms.sum()
        root = np.sqrt(c**2 + 4 * self.r * a)
        h = np.maximum(root - c, 0) / (2 * self.r)
        h = np.divide(2 * a, c + root, out=h, where=c > 0)  # the same without cancellation
        return (c * h + self.r / 2 * h**2 - xlogy(a, h)).sum()


class Example(NamedTuple):
    """All items of a block: the data, the basis, the terms and a point h."""

    V: np.ndarray
    B: np.ndarray
    terms: Terms
    h: np.ndarray

    def block(self, layout="dense", dtype=np.float64):
        return KLBlock(LAYOUTS[layout](self.V), self.B, dtype=dtype, terms=self.terms)

    def item(self, j):
        shape = self.h.shape
        d, a, r = self.terms.d, self.terms.prior, self.terms.ridge
        d = np.broadcast_to(self.B.sum(axis=0) if d is None else d, shape)[j]
        a = np.broadcast_to(0.0 if a is None else a, shape)[j]
        fixed = self.terms.fixed
        free = ~np.broadcast_to(False if fixed is None else fixed, shape)[j]
        return Item(self.V[j], self.B, d, np.where(free, a, 0.0), r, free)

    @property
    def items(self):
        return [self.item(j) for j in range(len(self.V))]

    def objectives(self, h):
        """Return the objective of every item at h."""
        return np.array([item.objective(row) for item, row in zip(self.items, h, strict=True)])

    def minima(self):
        """Return the smallest objective of every item."""
        return np.array([item.minimum(row) for item, row in zip(self.items, self.h, strict=True)])

    @property
    def free(self):
        return np.array([item.free for item in self.items])


def example(names=(), *, items=4, n=12, rank=4, seed=0):
    """Draw counts, a basis, the named terms and a positive point."""
    rng = np.random.default_rng([seed, len(names), items, n, rank])
    V = rng.poisson(3.0, (items, n)) * 1.0
    V[:, 0] += 1
    B = rng.gamma(1.0, 1.0, (n, rank))
    d = rng.uniform(0.5, 2, (items, rank)) * B.sum(axis=0)
    a = rng.uniform(0, 2, (items, rank)) * (rng.random((items, rank)) < 0.7)
    fixed = rng.random((items, rank)) < 0.4
    fixed[:, 0] = False
    terms = {"d": d, "prior": a, "fixed": fixed, "ridge": float(rng.uniform(0.1, 3))}
    used = Terms(**{name: terms[name] for name in names})
    return Example(V, B, used, rng.gamma(1.0, 1.0, (items, rank)) + 0.01)
