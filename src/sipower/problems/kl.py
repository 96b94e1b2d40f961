# SPDX-License-Identifier: BSD-3-Clause
r"""One half of KL-NMF: the factor of one side, given the other (the basis).

    min over h ≥ 0 of  Σ_i [ (b_i·h) − v_i log(b_i·h) ]       for every item (row v of V)

By Lemma 9 of the paper this is a scale invariant problem of degree p = 0 on the unit sphere:
x_k = d_k h_k / c lies on the simplex, y = √x on the sphere, and

    f(y) = (1/2c) Σ_i v_i log(L_i·y²),   ∇f(y) = y∘G,   G = Lᵀ(v ⊘ Lx)/c,   y·∇f(y) = 1.

======  =======================================================  ===========
symbol  meaning                                                  shape
======  =======================================================  ===========
V       data, items are rows                                     (items, n)
B       basis, the other factor;  L = B/d has columns of sum 1   (n, K)
d       column sums of B                                         (K,)
c       masses: row sums of V                                    (items,)
h, x, y factor, simplex point, sphere point                      (items, K)
G       multiplier of MU; at a solution 1 where x > 0, else ≤ 1  (items, K)
======  =======================================================  ===========

A batch is a random sparser matrix V_S with E[V_S] = V (`RowBlocks.sample`), so ∇f_S needs no
formula of its own. A pass costs 4·K·nnz flops.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import kl_div

from sipower import kernels
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.kernels import Array, Draw, Stream
from sipower.problems.base import Point, Problem, Sampling, register

__all__ = ["KLBlock", "Solution"]

Float = NDArray[np.float64]
SAMPLED_FROM = 40  # terms per K² from which epochs of S-SCI-PI pay (docs/sampling.md)
LARGEST_INTEGER = 2**62


class Solution(NamedTuple):
    """Solved items: the factor h, certified gaps max_k G_k − 1, and passes that each took."""

    h: Array
    gaps: Float
    passes: Float


@register("kl")
class KLBlock(Problem):
    """min D(V ‖ H Bᵀ) over H ≥ 0, as a convex problem in h and on the sphere in y.

    Parameters
    ----------
    V
        Data with the items as rows, (items, n); anything `as_matrix` takes.
    B
        Basis, (n, K), non-negative.
    dtype
        Working type, by default that of V.
    c, d
        Masses and column sums where they are not those of V and B: V is a batch of another block.
    """

    degree = 0.0
    batch_passes = 1.5  # the anchor's quotients are kept: one product instead of two

    def __init__(
        self, V: Any, B: Array, *, dtype: DTypeLike | None = None, c: Any = None, d: Any = None
    ) -> None:
        self.V: RowBlocks = as_matrix(V)
        self.B = kernels.readable(B, self.V.dtype if dtype is None else dtype)
        if self.B.ndim != 2 or self.B.shape[0] != self.V.shape[1]:
            raise ValueError(
                f"The basis has shape {self.B.shape}, expected ({self.V.shape[1]}, rank)."
            )
        self.basis = kernels.basis(self.B, dense=self.V.dense, column_sums=d)
        self.d: Float = self.basis.column_sums
        self.c: Float = self.V.mass if c is None else c

    @property
    def shape(self) -> tuple[int, int]:
        """(items, K)."""
        return self.V.shape[0], self.B.shape[1]

    @property
    def item_weights(self) -> Float:
        """c: the value is Σ_j c_j f_j."""
        return self.c

    # ---- the convex half, in h ---------------------------------------------------------------

    def scale_to_mass(self, h: Array) -> Float:
        """Scale every item to Σ_k d_k h_k = c, its mass at the optimum; dead items start anew."""
        mass = h @ self.d
        alive = self.d > 0
        uniform = np.divide(1.0, alive.sum() * self.d, out=np.zeros_like(self.d), where=alive)
        start = np.where((mass > 0)[:, None], h * alive, uniform)
        scale = np.divide(self.c, mass, out=self.c.copy(), where=mass > 0)
        return np.asarray(start * scale[:, None], np.float64)

    def ratio_sums(self, h: Array) -> Float:
        """g_j = Σ_i b_i v_ij / (b_i·h_j): item by item, or by sums over the other side."""
        h = kernels.readable(h, self.B.dtype)
        if self.V.has_items:
            return self.V.for_items(kernels.gradient, self.basis, h, np.empty(self.shape))
        return self.V.columns.sums(kernels.sums, kernels.basis(h, dense=self.V.dense), self.B)

    def multiplier(self, h: Array) -> Float:
        """G at h scaled to its mass; zero where the basis column is."""
        return self._over_d(self.ratio_sums(self.scale_to_mass(h)))

    def _over_d(self, g: Float) -> Float:
        return np.divide(g, self.d, out=np.zeros_like(g), where=self.d > 0)

    def gaps(self, h: Array) -> Float:
        """How far D can still fall over each item, at most.

        Scaling the item to its mass gains exactly kl_div(c, d·h); from there, by concavity, no more
        than c (max_k G_k − 1) can be gained.
        """
        block, h = self.in_float64(), kernels.readable(h, np.float64)
        off_mass = np.maximum(kl_div(self.c, h @ self.d), 0)  # less is rounding
        if not self.V.has_items:
            largest = np.maximum(block.multiplier(h).max(axis=1), 1)
            return np.asarray(off_mass + self.c * (largest - 1))
        out = np.zeros(self.shape[0])
        return np.asarray(off_mass + self.V.for_items(kernels.gaps, block.basis, h, out, self.c))

    def solution(
        self,
        tol: float,
        most: int = 500,
        *,
        exact: bool = True,
        sampled_from: float = SAMPLED_FROM,
    ) -> Solution:
        """Solve every item from a cold start to max_k G_k − 1 ≤ tol.

        An item's answer depends on its own row of V and the basis alone, to the last bit. Items
        with at least ``sampled_from`` K² terms begin with epochs of S-SCI-PI. In float64, or in the
        working type and to its rounding, which takes less time.
        """
        block = self.in_float64() if exact else self
        cold, h = (np.zeros(self.shape, block.B.dtype) for _ in range(2))
        gaps, passes = np.zeros((2, self.shape[0]))
        sampled = int(min(sampled_from * self.shape[1] ** 2, LARGEST_INTEGER))
        limits = tol, most, sampled
        self.V.for_items(kernels.solve_items, block.basis, cold, h, self.c, *limits, gaps, passes)
        return Solution(h, gaps, passes)

    def divergence(self, h: Array, *, exact: bool = True) -> float:
        """D(V ‖ h Bᵀ), in float64, or faster in the working type and to its rounding."""
        block = self.in_float64() if exact else self
        h = kernels.readable(h, block.B.dtype)
        if not self.V.has_items:  # D is the same from either side
            return KLBlock(self.V.columns, h, dtype=h.dtype).divergence(block.B)
        out = np.empty(self.shape[0])
        total = float(self.V.for_items(kernels.divergence, block.basis, h, out).sum())
        return max(total, 0.0)  # less is rounding

    def in_float64(self) -> KLBlock:
        """The same block for evaluation: the data as they are, the arithmetic in float64."""
        if self.B.dtype == np.float64:
            return self
        return KLBlock(self.V, self.B, dtype=np.float64, c=self.c, d=self.d)

    # ---- Lemma 9 -----------------------------------------------------------------------------

    def to_sphere(self, h: Array) -> Float:
        """h ↦ y = √(d∘h/c), h scaled to its mass; a zero item has y = 0."""
        c = np.where(self.c > 0, self.c, 1)[:, None]
        return np.asarray(np.sqrt(self.scale_to_mass(h) * self.d / c))

    def from_sphere(self, y: Point) -> Float:
        """y ↦ h = c y²/d, no living component under the floor."""
        return self.c[:, None] * self._over_d(np.maximum(y**2, kernels.FLOOR))

    # ---- the scale invariant problem, in y ---------------------------------------------------

    def value(self, y: Point) -> float:
        """Σ_j c_j f_j(y) = −½ D(V ‖ h Bᵀ), up to a constant of the data."""
        return -self.divergence(self.from_sphere(y)) / 2

    def gradient(self, y: Point, S: KLBlock | None = None) -> Point:
        """y∘G(y²), or its estimate y∘G_S(y²)."""
        h = self.c[:, None] * self._over_d(y**2)
        return np.asarray(y * self._over_d((self if S is None else S).ratio_sums(h)))

    def item_curvature(self, y: Point, item: int, S: KLBlock | None = None) -> Float:
        """B = D_y A D_y with A = Lᵀ diag(v ⊘ (Lx)²) L / c and D_y = diag(y): By = G∘y."""
        V, basis = (self if S is None else S).V, (self if S is None else S).B
        row = V.row(item)
        at = np.flatnonzero(row)
        L = self._over_d(basis[at].astype(np.float64)) * y[item]
        quotient = np.sqrt(row[at] / self.c[item]) / (L @ y[item])
        return np.asarray((L.T * quotient**2) @ L)

    def hessian(self, y: Point, S: KLBlock | None = None) -> Float:
        """diag(G) − 2B, item by item."""
        h = self.c[:, None] * self._over_d(y**2)
        G = self._over_d((self if S is None else S).ratio_sums(h))
        return np.stack(
            [np.diag(G[j]) - 2 * self.item_curvature(y, j, S) for j in range(self.shape[0])]
        )

    @property
    def terms(self) -> int:
        """n."""
        return self.V.shape[1]

    def single(self, item: int) -> KLBlock:
        """The block of one item, in float64."""
        if self.shape[0] == 1:
            return self
        return KLBlock(self.V.row(item)[None, :], self.B, dtype=np.float64, d=self.d)

    def batch(self, sampling: Sampling, draw: Draw) -> KLBlock:
        """The block of V_S, E[V_S] = V, with the masses and column sums of this one."""
        scheme, share = sampling.scheme, sampling.share
        part, rows = self.V.sample(scheme, share, draw, replace=sampling.replace)
        return KLBlock(part, self.B if rows is None else self.B[rows], c=self.c, d=self.d)

    def retract(self, x_new: Point, x: Point, threshold: float) -> Point:
        """max(y⁺, θy), back to the sphere: steps keep their sign and revive no exact zero."""
        return self.normalise(np.maximum(x_new, threshold * x))

    def start(self, seed: int) -> Point:
        """A random point of the positive part of the sphere."""
        return self.normalise(Draw(seed, Stream.POINT).uniform(*self.shape) + 0.1)

    def residual(self, y: Point) -> float:
        """Certified gap of all items, relative to ΣV."""
        return float(self.gaps(self.from_sphere(y)).sum()) / max(self.V.total, 1e-300)

    def rounding(self, value: float) -> float:
        """8 eps (ΣV + D), eps of the working type."""
        return 8 * float(np.finfo(self.V.dtype).eps) * (self.V.total + abs(value))
