# SPDX-License-Identifier: BSD-3-Clause
"""Lp-norm kernel PCA: max (1/np) Σ_i |a_i·x|^p over ‖x‖ = 1; degree p ≥ 1.

∇f_i(x) = sign(u)|u|^(p−1) a_i, u = a_i·x. f is convex, so SCI-PI never lowers it; for p = 1 it is
the sign fixed point and stops after finitely many steps. The features a_i = φ(x_i) enter through
their kernel matrix, factored by pivoted Cholesky 𝐊 ≈ A Aᵀ: then it is Lp PCA of the rows of A.

======  ==========================================  ======
symbol  meaning                                     shape
======  ==========================================  ======
𝐊       kernel matrix of the samples                (n, n)
A       its Cholesky factor, a_i as rows            (n, r)
x       direction, one item                         (1, r)
======  ==========================================  ======
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from sipower.kernels import Array, Draw
from sipower.problems.base import Point, Problem, Sampling, drawn_rows, register

__all__ = ["LpKernelPCA", "pivoted_cholesky"]


@register("lp-kernel-pca")
class LpKernelPCA(Problem):
    """Direction of largest Lp-norm dispersion in the feature space of a kernel.

    Parameters
    ----------
    X
        Samples as rows, or their kernel matrix with ``kernel="precomputed"``.
    p
        Norm, at least 1; 2 is kernel PCA without centring.
    kernel, **parameters
        A kernel of `sklearn.metrics.pairwise.pairwise_kernels` ("linear", "rbf", "poly", ...).
    """

    def __init__(self, X: Any, p: float = 1.0, kernel: str = "linear", **parameters: Any) -> None:
        if not p >= 1:
            raise ValueError(f"p is {p}, expected at least 1.")
        # Imported here: scikit-learn's metrics bring in more than the rest of the package.
        from sklearn.metrics.pairwise import pairwise_kernels  # noqa: PLC0415

        X = check_array(X, dtype=np.float64)
        self.degree = float(p)
        K = X if kernel == "precomputed" else pairwise_kernels(X, metric=kernel, **parameters)
        self.A = pivoted_cholesky(K)

    def __repr__(self) -> str:
        return f"LpKernelPCA({self.A.shape}, p {self.degree}, norm {float(abs(self.A).sum())!r})"

    @property
    def shape(self) -> tuple[int, int]:
        """(1, r)."""
        return 1, self.A.shape[1]

    def value(self, x: Point) -> float:
        """(1/np) Σ|a_i·x|^p."""
        return float((np.abs(self.A @ x[0]) ** self.degree).mean() / self.degree)

    def gradient(self, x: Point, S: Array | None = None) -> Point:
        """(1/n) Σ sign(u)|u|^(p−1) a_i."""
        A = self.A if S is None else S
        u = A @ x[0]
        return np.asarray((np.sign(u) * np.abs(u) ** (self.degree - 1) @ A / len(A))[None, :])

    def batch(self, sampling: Sampling, draw: Draw) -> Array:
        """s of the n samples."""
        return np.asarray(drawn_rows(self.A, sampling, draw))


def pivoted_cholesky(K: Array, tol: float = 1e-12) -> Array:
    """A (n, r) with 𝐊 ≈ A Aᵀ, the trace of the rest at most tol of the trace of 𝐊."""
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.allclose(K, K.T):
        raise ValueError(f"The kernel matrix of shape {K.shape} is not symmetric.")
    rest = np.diag(K).astype(np.float64)
    if rest.min() < 0 or not rest.sum() > 0:
        raise ValueError("The kernel matrix has a negative or zero diagonal.")
    limit, columns = tol * rest.sum(), np.zeros((len(K), 0))
    while rest.sum() > limit and columns.shape[1] < len(K):
        pivot = int(np.argmax(rest))
        column = K[:, pivot] - columns @ columns[pivot]
        if not column[pivot] > 0:
            break
        columns = np.column_stack([columns, column / np.sqrt(column[pivot])])
        rest = np.maximum(rest - columns[:, -1] ** 2, 0)
    return columns
