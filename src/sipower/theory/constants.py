# SPDX-License-Identifier: BSD-3-Clause
"""The constants of the convergence theorem at a point near an optimum: λ*, λ̄, σ, K, L, M.

All constants but λ* are computed for f/λ*, because S-SCI-PI divides the gradient by λ. The
conditions of the theorem are therefore used with λ* = 1.

======  =========================================================================================
symbol  meaning
======  =========================================================================================
p       degree of f
λ*      multiplier, ∇f(x*) = λ* x*
λ̄, σ    largest |eigenvalue| of ∇²f(x*) on the tangent space; norm of ∇²f(x*)
K, L    mean and largest ‖G_S‖² over batches S with G_S = ∇²f_S − ∇²f; L₀: L for batches of 1 term
M       bound on the third derivatives: how fast the Hessian changes near x*
======  =========================================================================================

The paper defines K, L and M over the whole unit ball. Because the ball contains 0, they are
infinite unless f is quadratic or p ≥ 3. Here they are computed over the neighbourhood of x* in
which the iterates stay.
`method` describes how a constant was computed, and whether it is exact.
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

MAX_ENUMERATED = 3000  # up to this number of possible batches, all of them are evaluated
DRAWS = 100  # number of batches that are drawn if more batches are possible
POINTS = 5  # number of points in a neighbourhood of x*, including x*

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LocalSpectrum:
    """The eigenvalues of the Hessian of one item at x*, divided by λ*.

    Attributes
    ----------
    multiplier
        λ* itself.
    residual
        ‖∇f/λ* − x‖, which is zero at a solution.
    radial
        x·∇²f x, divided by λ*.
    tangent
        Eigenvalues of ∇²f on the tangent space, divided by λ*, (d − 1,).
    """

    multiplier: float
    residual: float
    radial: float
    tangent: Array

    @property
    def bar(self) -> float:
        """The largest |eigenvalue| on the tangent space, λ̄/λ*."""
        return float(np.abs(self.tangent).max(initial=0.0))

    @property
    def sigma(self) -> float:
        """The norm of the Hessian, σ/λ*."""
        return max(abs(self.radial), self.bar)

    @property
    def rate(self) -> float:
        """The factor (λ̄/λ*)² by which a round of SCI-PI multiplies 1 − (x·x*)² near x*."""
        return self.bar**2


def local_spectrum(problem: Problem, x: Point, item: int = 0) -> LocalSpectrum:
    """Return λ* and the eigenvalues of the Hessian of one item at x (items, d).

    x* is an eigenvector of ∇²f(x*) with eigenvalue (p − 1)λ*; λ̄ is the largest absolute value of
    the other eigenvalues.
    """
    one, x = _single_item(problem, x, item)
    g = one.gradient(x)
    multiplier = float(one.inner(x, g)[0])
    if not multiplier > 0:
        raise ValueError(
            f"λ = x·∇f(x) must be positive at `x`, got {multiplier:.3g}: solve the problem first, "
            "or maximise −f."
        )
    H = one.hessian(x)[0] / multiplier
    basis = np.linalg.svd(x)[2][1:]  # orthonormal basis of the tangent space
    radial = float(x[0] @ H @ x[0])
    tangent = np.linalg.eigvalsh(basis @ H @ basis.T)
    return LocalSpectrum(
        multiplier, float(np.linalg.norm(g[0] / multiplier - x[0])), radial, tangent
    )


@dataclass(frozen=True)
class Variance:
    """The constants K, L and L₀ in units of λ*², and how they were computed."""

    K: float
    L: float
    L0: float
    method: str


class _FixedBatch:
    """A replacement for `Draw` that returns given terms, for the enumeration of all batches."""

    def __init__(self, terms: tuple[int, ...]) -> None:
        self.terms = np.array(terms, np.int32)

    def batch(self, n: int, s: int, *, replace: bool = False) -> NDArray[np.int32]:
        return self.terms


def variance(
    problem: Problem, x: Point, batch: float, *, item: int = 0, radius: float = 0.0
) -> Variance:
    """Return K = E‖G_S‖² and L = max‖G_S‖² over batches without replacement, near x.

    The constants are exact for quadratic problems with at most 3,000 possible batches. Otherwise
    batches or points are drawn, and L and L₀ are the largest values found, which are lower bounds.

    Parameters
    ----------
    problem, x
        A problem and its solution (items, d).
    batch
        Share s/n of the terms in a batch.
    item
        Number of the item for which the constants are computed.
    radius
        Distance from x within which points are drawn; 0: x alone.
    """
    one, x = _single_item(problem, x, item)
    scale = float(one.inner(x, one.gradient(x))[0])
    points = [x] if one.quadratic else _points_near(one, x, radius)
    squares, all_batches = _squares(one, points, batch)
    single, all_terms = _squares(one, points, 1e-12)
    what = "all" if all_batches and all_terms else f"{DRAWS} drawn"
    where = "the Hessian is constant" if one.quadratic else f"{len(points)} points near x*"
    exact = "exact: " if what == "all" and one.quadratic else "estimated: "
    K, L = float(squares.mean(axis=1).max()), float(squares.max())
    method = f"{exact}{what} batches, {where}"
    return Variance(K / scale**2, L / scale**2, max(float(single.max()), L) / scale**2, method)


def _squares(one: Problem, points: list[Point], share: float) -> tuple[NDArray[Any], bool]:
    """Return ‖G_S‖², (points, batches), and whether all possible batches are included."""
    n, sampling = one.terms, Sampling(share)
    s = 0 if n is None else batch_size(share, n)
    enumerated = n is not None and math.comb(n, s) <= MAX_ENUMERATED
    draws: list[Any] = (
        [_FixedBatch(chosen) for chosen in itertools.combinations(range(n), s)]
        if n is not None and enumerated
        else [Draw(0, Stream.THEORY, r) for r in range(DRAWS)]
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
    """The constant M in units of λ*, and how it was computed."""

    M: float
    method: str


def curvature(problem: Problem, x: Point, *, item: int = 0, radius: float = 0.0) -> Curvature:
    """Return a bound M on the third derivatives near x; `variance` has the same parameters.

    M is the maximum of ‖T(y)‖₂ + |λ* − λ₁| over points y near x, divided by λ*. T(y) holds the
    third derivatives as a (d, d²) matrix, and ‖T[u, u]‖ ≤ ‖T‖₂ for unit u. λ₁ = (p − 1)λ* is the
    eigenvalue of ∇²f(x*) along x*, so |λ* − λ₁|/λ* = |2 − p|. This term is needed because in the
    paper's definition of M the matrix F₁, which belongs to the direction x*, contains (λ* − λ₁)I.
    """
    one, x = _single_item(problem, x, item)
    scale = float(one.inner(x, one.gradient(x))[0])
    if one.quadratic:
        return Curvature(0.0, "exact: f is quadratic")
    points, largest = _points_near(one, x, radius), 0.0
    for y in points:
        steps = DIFFERENCE * 10 * np.eye(y.shape[1])
        T = np.array([(one.hessian(y + e)[0] - one.hessian(y - e)[0]) for e in steps])
        largest = max(largest, float(np.linalg.norm(T.reshape(len(T), -1), 2)))
    largest /= 20 * DIFFERENCE
    return Curvature(
        largest / scale + abs(2 - one.degree), f"bound at {len(points)} points near x*"
    )


def _single_item(problem: Problem, x: Point, item: int) -> tuple[Problem, Point]:
    """Return the problem of one item, and its point in float64 with unit norm."""
    if not 0 <= item < problem.shape[0]:
        raise ValueError(f"`item` must be an integer from 0 to {problem.shape[0] - 1}, got {item}.")
    one = problem.single_item(item)
    y = np.asarray(x[item : item + 1], np.float64)
    if x.shape != problem.shape or not np.isfinite(y).all() or not y.any():
        raise ValueError(f"`x` must be finite, not all zero and of shape {problem.shape}.")
    return one, one.normalise(y)


def _points_near(one: Problem, x: Point, radius: float) -> list[Point]:
    """Return x and, for a positive radius, random points of the sphere at that distance."""
    if radius == 0:
        return [x]
    cosine = 1 - radius**2 / 2
    sine = math.sqrt(1 - cosine**2)
    moves = (one.start(r) for r in range(1, POINTS))
    tangents = (v - one.inner(v, x)[:, None] * x for v in moves)
    norms = ((v, max(float(np.linalg.norm(v)), 1e-300)) for v in tangents)
    return [x, *(one.normalise(cosine * x + sine * v / size) for v, size in norms)]
