# SPDX-License-Identifier: BSD-3-Clause
"""Burer-Monteiro form of a diagonally constrained SDP: max ⟨C, XXᵀ⟩ over unit rows σ_i of X.

The SDP max ⟨C, Z⟩ over Z ⪰ 0, Z_ii = 1 is a relaxation of max-cut and of other problems in ±1
variables; here Z = XXᵀ, where X has r columns. The objective is linear in each row, so the step
σ_i ← Σ_j C_ij σ_j, normalised, maximises the objective exactly over that row (degree p = 1 per row,
for positive scalings). Rows interact, so they are updated one after another. With r > √(2n) a
second-order stationary point is globally optimal (Boumal, Voroninski, Bandeira 2016). The dual
certifies this: with y_i = σ_i·(CX)_i, Σy − n λ_min(Diag(y) − C) is an upper bound on the SDP.

======  =============================================  ======
symbol  meaning                                        shape
======  =============================================  ======
C       symmetric costs; the diagonal adds a constant  (n, n)
X       one item per row σ_i                           (n, r)
======  =============================================  ======
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from sklearn.utils import check_array

from sipower.kernels import Array, Draw, Stream
from sipower.problems.base import Point, Problem, Sampling, register

MAX_DENSE_SIZE = 1500  # up to this n the dense eigenvalue solver, which is robust, is also fast


@register("burer-monteiro")
class BurerMonteiro(Problem):
    """The maximisation of ⟨C, XXᵀ⟩ over matrices X with unit rows, with an upper bound.

    Parameters
    ----------
    C
        Symmetric matrix (n, n), dense or sparse.
    rank
        Number r of columns of X; None: ⌈√(2n)⌉ + 1.
    """

    degree = 1.0
    sequential = True

    def __init__(self, C: Any, rank: int | None = None) -> None:
        C = sp.csr_array(check_array(C, accept_sparse="csr", dtype=np.float64))
        if C.shape[0] != C.shape[1] or abs(C - C.T).max() > 1e-12 * abs(C).max():
            raise ValueError(
                f"`C` must be a symmetric matrix, got one of shape {C.shape} that is not symmetric."
            )
        self.diagonal = C.diagonal()
        self.C = sp.csr_array(C - sp.diags_array(self.diagonal))
        self.C.eliminate_zeros()
        if self.C.nnz == 0:
            raise ValueError(
                "`C` must have a nonzero off its diagonal: otherwise every X is optimal."
            )
        if rank is not None and not (isinstance(rank, Integral) and rank >= 1):
            raise ValueError(f"`rank` must be a positive integer, got {rank!r}.")
        n = C.shape[0]
        self.rank = int(np.ceil(np.sqrt(2 * n))) + 1 if rank is None else int(rank)

    def __repr__(self) -> str:
        return f"BurerMonteiro({self.C.shape}, {self.C.nnz} nonzeros, rank {self.rank})"

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of X, (n, r)."""
        return self.C.shape[0], self.rank

    @property
    def item_weights(self) -> Array:
        """The weights of the items: all 2, because every pair of rows occurs twice in ⟨C, XXᵀ⟩."""
        return np.full(self.shape[0], 2.0)

    def value(self, X: Point) -> float:
        """Return ⟨C, XXᵀ⟩."""
        return float((X * (self.C @ X)).sum() + self.diagonal.sum())

    def gradient(self, X: Point, S: Any = None) -> Point:
        """Return CX, with a zero diagonal in C; row i, normalised, is the best new σ_i."""
        return np.asarray(self.C @ X)

    def item_gradient(self, X: Point, item: int) -> Array:
        """Return row `item` of the gradient."""
        row = slice(self.C.indptr[item], self.C.indptr[item + 1])
        return np.asarray(self.C.data[row] @ X[self.C.indices[row]])

    def batch(self, sampling: Sampling, draw: Draw) -> Any:
        """Raise ValueError, because the rows interact and batches are not defined."""
        raise ValueError(
            "The rows of a Burer-Monteiro problem interact: use `SciPi`, not `SSciPi`."
        )

    def upper_bound(self, X: Point) -> float:
        """Return Σy − n min(λ_min(Diag(y) − C), 0), an upper bound on ⟨C, Z⟩ for feasible Z."""
        y = (X * (self.C @ X)).sum(axis=1)
        slack = sp.csr_array(sp.diags_array(y) - self.C)
        n = len(y)
        if n <= MAX_DENSE_SIZE:
            smallest = float(np.linalg.eigvalsh(slack.toarray())[0])
        else:
            # Without `v0`, `eigsh` would draw a different start in every call.
            start = Draw(0, Stream.EIGENVECTOR).uniform(n) - 0.5
            values, vectors = eigsh(slack, k=1, which="SA", tol=1e-8, v0=start)
            # An eigenvalue lies within the residual norm of the computed value.
            residual = slack @ vectors[:, 0] - values[0] * vectors[:, 0]
            smallest = float(values[0] - np.linalg.norm(residual))
        return float(y.sum() - n * min(smallest, 0.0) + self.diagonal.sum())


class Cut(NamedTuple):
    """A cut of a graph.

    Attributes
    ----------
    sides
        Side of every vertex, ±1, (n,).
    weight
        Sum of the weights of the edges that cross the cut.
    bound
        Upper bound on the weight of every cut.
    """

    sides: Array
    weight: float
    bound: float


def round_to_cut(
    weights: Any, problem: BurerMonteiro, X: Point, seed: int, rounds: int = 100
) -> Cut:
    """Return the best of `rounds` cuts by random hyperplanes (Goemans & Williamson 1995)."""
    total = weights.sum()
    best: tuple[float, Array] = (-np.inf, np.ones(len(X)))
    for r in range(rounds):
        u, v = Draw(seed, Stream.CUT, r).uniform(2, X.shape[1])
        normal = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
        sides = np.where(X @ normal >= 0, 1.0, -1.0)
        best = max(best, (float(total - sides @ (weights @ sides)) / 4, sides), key=lambda b: b[0])
    return Cut(best[1], best[0], float(total + problem.upper_bound(X)) / 4)
