# SPDX-License-Identifier: BSD-3-Clause
"""The constants of the convergence theorem at a point near an optimum: λ*, λ̄, σ, K, L, M.

All are those of f/λ*, because S-SCI-PI divides f by λ: so λ* = 1 in every condition.

======  =========================================================================================
symbol  meaning
======  =========================================================================================
λ*      multiplier, ∇f(x*) = λ* x*
λ̄, σ    largest |eigenvalue| of ∇²f(x*) on the tangent space; norm of ∇²f(x*)
K, L    mean and largest ‖G_S‖² over the batches, G_S = ∇²f_S − ∇²f;  L₀ is L for one term
M       bound on the third derivatives: how fast the Hessian changes near x*
======  =========================================================================================

The paper takes K, L, M over the whole unit ball. They are infinite there unless f is quadratic or
p ≥ 3, as the ball contains 0; here they belong to the neighbourhood that the iterates stay in. What
is no exact maximum says so (`how`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Draw, Stream, batch_size
from sipower.problems.base import DIFFERENCE, Point, Problem, Sampling

__all__ = ["Curvature", "Local", "Variance", "curvature", "local", "variance"]

ENUMERATED = 3000  # up to so many batches are all looked at
DRAWS = 100  # else so many are drawn
POINTS = 5  # points of a neighbourhood, x* among them

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Local:
    """The Hessian at one item's x*, in units of λ*."""

    multiplier: float
    residual: float
    radial: float
    tangent: Array

    @property
    def bar(self) -> float:
        """λ̄/λ*."""
        return float(np.abs(self.tangent).max(initial=0.0))

    @property
    def sigma(self) -> float:
        """σ/λ*."""
        return max(abs(self.radial), self.bar)

    @property
    def rate(self) -> float:
        """(λ̄/λ*)²: 1 − (x·x*)² shrinks by it in a SCI-PI round."""
        return self.bar**2

    def damped_rate(self, step: float) -> float:
        """The same with step η: max |1 − η + ηλ_k/λ*|²."""
        return float(np.abs(1 - step + step * self.tangent).max(initial=0.0)) ** 2


def local(problem: Problem, x: Point, item: int = 0) -> Local:
    """λ* and the spectrum of ∇²f at an item's x, by the eigenvector property split in two.

    x* is an eigenvector of ∇²f(x*) with eigenvalue (p − 1)λ*; λ̄ belongs to the rest.
    """
    one, x = _one(problem, x, item)
    g = one.gradient(x)
    multiplier = float(one.inner(x, g)[0])
    if not multiplier > 0:
        raise ValueError(
            f"λ = x·∇f(x) is {multiplier:.3g} at this point: the theorem is about maxima with "
            "λ* > 0; solve the problem first, or maximise −f."
        )
    H = one.hessian(x)[0] / multiplier
    basis = np.linalg.svd(x)[2][1:]  # of the tangent space
    radial = float(x[0] @ H @ x[0])
    tangent = np.linalg.eigvalsh(basis @ H @ basis.T)
    return Local(multiplier, float(np.linalg.norm(g[0] / multiplier - x[0])), radial, tangent)


@dataclass(frozen=True)
class Variance:
    """K, L and L₀ in units of λ*², and whether they are exact."""

    K: float
    L: float
    L0: float
    how: str


class _Chosen:
    """Stands in for a `Draw` where every batch is enumerated: these terms and no others."""

    def __init__(self, terms: tuple[int, ...]) -> None:
        self.terms = np.array(terms, np.int32)

    def batch(self, n: int, s: int, *, replace: bool = False) -> NDArray[np.int32]:
        return self.terms


def variance(
    problem: Problem, x: Point, batch: float, *, item: int = 0, radius: float = 0.0, seed: int = 0
) -> Variance:
    """K = E‖G_S‖² and L = max‖G_S‖² over batches without replacement, within `radius` of x.

    Exact for quadratic problems with at most 3,000 batches. Else batches or points are drawn: then
    L and L₀ are what was seen, and the truth may be larger.
    """
    one, x = _one(problem, x, item)
    scale = float(one.inner(x, one.gradient(x))[0])
    points = [x] if one.quadratic else _near(one, x, radius, seed)
    squares, all_batches = _squares(one, points, batch, seed)
    single, all_terms = _squares(one, points, 1e-12, seed)
    what = "all" if all_batches and all_terms else f"{DRAWS} drawn"
    where = "the Hessian is constant" if one.quadratic else f"{len(points)} points near x*"
    exact = "exact: " if what == "all" and one.quadratic else "seen: "
    K, L = float(squares.mean(axis=1).max()), float(squares.max())
    how = f"{exact}{what} batches, {where}"
    return Variance(K / scale**2, L / scale**2, max(float(single.max()), L) / scale**2, how)


def _squares(
    one: Problem, points: list[Point], share: float, seed: int
) -> tuple[NDArray[Any], bool]:
    """‖G_S‖² of every point and batch, and whether these are all batches."""
    n, sampling = one.terms, Sampling(share)
    s = 0 if n is None else batch_size(share, n)
    enumerated = n is not None and math.comb(n, s) <= ENUMERATED
    draws: list[Any] = (
        [_Chosen(chosen) for chosen in itertools.combinations(range(n), s)]
        if n is not None and enumerated
        else [Draw(seed, Stream.THEORY, r) for r in range(DRAWS)]
    )
    full = [one.hessian(y)[0] for y in points]
    batches = [one.batch(sampling, draw) for draw in draws]
    norms = [
        [np.linalg.norm(one.hessian(y, S)[0] - H, 2) for S in batches]
        for y, H in zip(points, full, strict=True)
    ]
    return np.array(norms) ** 2, enumerated


@dataclass(frozen=True)
class Curvature:
    """M in units of λ*, and whether it is exact."""

    M: float
    how: str


def curvature(
    problem: Problem, x: Point, *, item: int = 0, radius: float = 0.0, seed: int = 0
) -> Curvature:
    """M ≤ max over y near x of ‖T(y)‖ + |λ* − λ₁|, T the third derivatives as a (d, d²) matrix.

    ‖T[u, u]‖ ≤ ‖T‖₂ for unit u, and F₁ has λ* − λ₁ on top (the paper's M₁, M₂).
    """
    one, x = _one(problem, x, item)
    scale = float(one.inner(x, one.gradient(x))[0])
    if one.quadratic:
        return Curvature(0.0, "exact: f is quadratic")
    points, largest = _near(one, x, radius, seed), 0.0
    for y in points:
        steps = DIFFERENCE * 10 * np.eye(y.shape[1])
        T = np.array([(one.hessian(y + e)[0] - one.hessian(y - e)[0]) for e in steps])
        largest = max(largest, float(np.linalg.norm(T.reshape(len(T), -1), 2)))
    largest /= 20 * DIFFERENCE
    return Curvature(
        largest / scale + abs(2 - one.degree), f"bound at {len(points)} points near x*"
    )


def _one(problem: Problem, x: Point, item: int) -> tuple[Problem, Point]:
    """One item as a problem of its own, with its point in float64 and of unit norm."""
    if not 0 <= item < problem.shape[0]:
        raise ValueError(f"item is {item}, expected 0 to {problem.shape[0] - 1}.")
    one = problem.single(item)
    y = np.asarray(x[item : item + 1], np.float64)
    if x.shape != problem.shape or not np.isfinite(y).all() or not y.any():
        raise ValueError(f"x must be a finite point of shape {problem.shape}, not 0.")
    return one, one.normalise(y)


def _near(one: Problem, x: Point, radius: float, seed: int) -> list[Point]:
    """x and, for a radius, points of the sphere at that distance from it."""
    if radius == 0:
        return [x]
    cosine = 1 - radius**2 / 2
    sine = math.sqrt(1 - cosine**2)
    moves = (one.start(seed + r) for r in range(1, POINTS))
    tangents = (v - one.inner(v, x)[:, None] * x for v in moves)
    norms = ((v, max(float(np.linalg.norm(v)), 1e-300)) for v in tangents)
    return [x, *(one.normalise(cosine * x + sine * v / size) for v, size in norms)]
