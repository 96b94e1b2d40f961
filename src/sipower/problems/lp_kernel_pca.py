# SPDX-License-Identifier: BSD-3-Clause
"""Lp-norm kernel PCA: max (1/np) Σ_i |a_i·x|^p over ‖x‖ = 1; degree p ≥ 1.

∇f_i(x) = sign(u)|u|^(p−1) a_i with u = a_i·x. f is convex, so SCI-PI never lowers it. For p = 1 a
step depends only on the signs of a_i·x, and SCI-PI ends after finitely many steps. The features
a_i = φ(x_i) of a kernel are replaced by the rows of the pivoted Cholesky factor of the kernel
matrix, 𝐊 ≈ A Aᵀ, so that the problem is Lp PCA of the rows of A. The rows of the pivots, A_P, form
a triangular matrix, so a new point z has the features a(z) = A_P⁻¹ k(z, P).

======  ==========================================  ======
symbol  meaning                                     shape
======  ==========================================  ======
𝐊       kernel matrix of the samples                (n, n)
A       Cholesky factor of 𝐊 with the a_i as rows   (n, r)
P       pivots: samples that span all features      (r,)
x       direction, one item                         (1, r)
======  ==========================================  ======
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils import check_array

from sipower.kernels import Array
from sipower.problems.base import DirectionProblem, Point, register

MIN_TRACE = 1e-280  # with a smaller trace of 𝐊, products of entries underflow
MAX_ASYMMETRY = 1e-8  # allowed asymmetry from rounding, as a share of the largest entry


@register("lp-kernel-pca")
class LpKernelPCA(DirectionProblem):
    """The direction of largest Lp-norm dispersion in the feature space of a kernel.

    Parameters
    ----------
    X
        Samples as rows, (n, d), or their kernel matrix (n, n) with ``kernel="precomputed"``.
    p
        Exponent of the norm, at least 1; 2 is kernel PCA without centring.
    kernel, **parameters
        Name and parameters of a kernel of `sklearn.metrics.pairwise.pairwise_kernels` ("linear",
        "rbf", "poly", ...).
    orthogonal_to
        Directions (k, r) that the solution must be orthogonal to (deflation); None: none.
    """

    def __init__(
        self,
        X: Any,
        p: float = 1.0,
        kernel: str = "linear",
        *,
        orthogonal_to: Any = None,
        **parameters: Any,
    ) -> None:
        # Imported here: sklearn.metrics takes longer to import than the rest of the package.
        from sklearn.metrics.pairwise import pairwise_kernels  # noqa: PLC0415

        X = check_array(X, dtype=np.float64)
        K = X if kernel == "precomputed" else pairwise_kernels(X, metric=kernel, **parameters)
        self._set(pivoted_cholesky(K).A, p, orthogonal_to)

    @classmethod
    def from_features(cls, A: Array, p: float = 1.0, *, orthogonal_to: Any = None) -> Self:
        """Return the problem for given features, the rows a_i of A (n, r), without a kernel."""
        problem = cls.__new__(cls)
        problem._set(check_array(A, dtype=np.float64), p, orthogonal_to)
        return problem

    def _set(self, A: Array, p: Any, orthogonal_to: Any) -> None:
        if not isinstance(p, Real) or not 1 <= float(p) < np.inf:
            raise ValueError(f"`p` must be a finite number of at least 1, got {p}.")
        self.degree = float(p)
        largest = float(np.abs(A).max())
        size = largest * float(np.sqrt(((A / (largest or 1)) ** 2).sum(axis=1).max()))
        limit = float(np.finfo(np.float64).max) ** (0.5 / self.degree)
        if not 1 / limit < size < limit:
            raise ValueError(
                f"The largest sample has norm {size}: its powers with p={p} are outside the range "
                "of float64; rescale the data or choose a smaller p."
            )
        self.smooth = self.degree >= 2
        super().__init__(A, orthogonal_to)

    def __repr__(self) -> str:
        norm, removed = float(abs(self.A).sum()), len(self.removed)
        settings = f"p {self.degree}, norm {norm!r}, {removed} directions removed"
        return f"LpKernelPCA({self.A.shape}, {settings})"

    def value(self, x: Point) -> float:
        """Return (1/np) Σ|a_i·x|^p."""
        return float((np.abs(self.A @ x[0]) ** self.degree).mean() / self.degree)

    def gradient(self, x: Point, S: Array | None = None) -> Point:
        """Return (1/n) Σ sign(u)|u|^(p−1) a_i, deflated."""
        A = self.A if S is None else S
        u = A @ x[0]
        g = np.sign(u) * np.abs(u) ** (self.degree - 1) @ A / len(A)
        return self.project(g[None, :])

    def hessian(self, x: Point, S: Array | None = None) -> Array:
        """Return ((p − 1)/n) Σ |u|^(p−2) a_i a_iᵀ, deflated, for p ≥ 2, (1, r, r)."""
        A = self.A if S is None else S
        if not self.smooth:
            return np.asarray(super().hessian(x, S))
        weights = np.abs(A @ self.project(x)[0]) ** (self.degree - 2)
        H = (self.degree - 1) * (A.T * weights) @ A / len(A)
        return self.project_hessian(H)


class Cholesky(NamedTuple):
    """A pivoted Cholesky factor A (n, r) with 𝐊 ≈ A Aᵀ; A[pivots] is lower triangular."""

    A: Array
    pivots: Array

    def features(self, k: Array) -> Array:
        """Return the features a(z) as rows, given the kernel values k(z, P) of new points z."""
        block = self.A[self.pivots]
        return np.asarray(solve_triangular(block, k.T, lower=True, check_finite=False).T)


def pivoted_cholesky(K: Array, tol: float = 1e-12) -> Cholesky:
    """Return A (n, r) with 𝐊 ≈ A Aᵀ, and its pivots; tr(𝐊 − A Aᵀ) is at most tol · tr(𝐊)."""
    check_kernel_matrix(K)
    rest = np.diag(K).astype(np.float64)
    trace = float(rest.sum())
    if rest.min() < -tol * trace or not trace > 0:
        raise ValueError(
            "The diagonal of the kernel matrix `K` must be non-negative and not all zero: choose "
            "another kernel."
        )
    if trace < MIN_TRACE:
        raise ValueError(
            f"The trace {trace} of the kernel matrix `K` is too small: rescale the data."
        )
    rows = np.empty_like(K, dtype=np.float64)  # Aᵀ, row by row
    pivots: list[int] = []
    while rest.sum() > tol * trace and len(pivots) < len(K):
        pivot, previous = int(np.argmax(rest)), rows[: len(pivots)]
        row = K[pivot] - previous[:, pivot] @ previous
        if not row[pivot] > 0:
            break
        row /= np.sqrt(row[pivot])
        row[pivots] = 0  # the remainders at earlier pivots are rounding errors only
        rows[len(pivots)] = row
        pivots.append(pivot)
        rest = np.maximum(rest - row**2, 0)
        rest[pivots] = 0
    A = np.ascontiguousarray(rows[: len(pivots)].T)
    # If 𝐊 is positive semi-definite, |𝐊 − AAᵀ|_ij ≤ √(rest_i rest_j).
    if np.abs(K - A @ A.T).max() > max(np.sqrt(tol), MAX_ASYMMETRY) * trace:
        raise ValueError(
            "The kernel matrix `K` must be positive semi-definite: choose another kernel."
        )
    return Cholesky(A, np.array(pivots, np.intp))


def check_kernel_matrix(K: Array) -> None:
    """Check that a kernel matrix is square, finite and symmetric."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"The kernel matrix `K` must be square, got shape {K.shape}.")
    if not np.isfinite(K).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(K))[0])
        raise ValueError(f"Entry ({row}, {column}) of the kernel matrix `K` must be finite.")
    asymmetry = np.abs(K - K.T)
    if asymmetry.max() > MAX_ASYMMETRY * np.abs(K).max():
        row, column = (int(i) for i in np.unravel_index(np.argmax(asymmetry), K.shape))
        raise ValueError(
            f"The kernel matrix `K` must be symmetric, but entries ({row}, {column}) and "
            f"({column}, {row}) differ."
        )
