# SPDX-License-Identifier: BSD-3-Clause
r"""One half of KL-NMF: the convex problem in one factor, given the other one (the basis).

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
SAMPLING_THRESHOLD = 40  # S-SCI-PI is faster from 40 K² nonzeros per item (docs/sampling.md)
LARGEST_INTEGER = 2**62


class Solution(NamedTuple):
    """The solution of all items of a block.

    Attributes
    ----------
    h
        Factor, (items, K).
    gaps
        Certified gaps max_k G_k − 1, (items,).
    passes
        Number of passes that each item needed over its own nonzeros, (items,).
    """

    h: Array
    gaps: Float
    passes: Float


@register("kl")
class KLBlock(Problem):
    """The convex problem min D(V ‖ h Bᵀ) over h ≥ 0, also as a problem in y on the sphere.

    Parameters
    ----------
    V
        Data with the items as rows, (items, n); anything `as_matrix` accepts.
    B
        Basis, (n, K), non-negative.
    dtype
        Working type; None: the working type of V.
    c, d
        If V is a batch, the masses (items,) and the column sums (K,) of the block that it was drawn
        from; None: computed from V and B.
    """

    degree = 0.0
    batch_passes = 1.5  # 1 for ∇f_S(x), ½ for ∇f_S(x₀), whose quotients v/z are already known

    def __init__(
        self, V: Any, B: Array, *, dtype: DTypeLike | None = None, c: Any = None, d: Any = None
    ) -> None:
        self.V: RowBlocks = as_matrix(V)
        self.B = kernels.as_contiguous(B, self.V.dtype if dtype is None else dtype)
        if self.B.ndim != 2 or self.B.shape[0] != self.V.shape[1]:
            raise ValueError(f"`B` must have shape ({self.V.shape[1]}, rank), got {self.B.shape}.")
        self.basis = kernels.basis(self.B, dense=self.V.dense, column_sums=d)
        self.d: Float = self.basis.column_sums
        self.c: Float = self.V.mass if c is None else c

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of h, (items, K)."""
        return self.V.shape[0], self.B.shape[1]

    @property
    def item_weights(self) -> Float:
        """The weights of the items: their masses c, because the value is Σ_j c_j f_j."""
        return self.c

    # ---- the convex half, in h ---------------------------------------------------------------

    def scale_to_mass(self, h: Array) -> Float:
        """Return h with every item scaled to its mass, Σ_k d_k h_k = c, as at the optimum.

        An item that is zero is replaced by the uniform point.
        """
        mass = h @ self.d
        alive = self.d > 0
        uniform = np.divide(1.0, alive.sum() * self.d, out=np.zeros_like(self.d), where=alive)
        start = np.where((mass > 0)[:, None], h * alive, uniform)
        scale = np.divide(self.c, mass, out=self.c.copy(), where=mass > 0)
        return np.asarray(start * scale[:, None], np.float64)

    def ratio_sums(self, h: Array) -> Float:
        """Return the ratio sums g_j = Σ_i b_i v_ji / (b_i·h_j) of every item j, (items, K)."""
        h = kernels.as_contiguous(h, self.B.dtype)
        if self.V.has_items:
            return self.V.for_items(kernels.gradient, self.basis, h, np.empty(self.shape))
        return self.V.columns.sums(kernels.sums, kernels.basis(h, dense=self.V.dense), self.B)

    def multiplier(self, h: Array) -> Float:
        """Return G at h scaled to its mass, (items, K); zero where the basis column is zero."""
        return self._divide_by_d(self.ratio_sums(self.scale_to_mass(h)))

    def _divide_by_d(self, g: Float) -> Float:
        return np.divide(g, self.d, out=np.zeros_like(g), where=self.d > 0)

    def gaps(self, h: Array) -> Float:
        """Return the certified gap of every item: how much D can fall at most, (items,).

        Scaling the item to its mass lowers D by exactly kl_div(c, d·h). By convexity, D can then
        fall by at most c (max_k G_k − 1).
        """
        block, h = self.in_float64(), kernels.as_contiguous(h, np.float64)
        mass_gap = np.maximum(kl_div(self.c, h @ self.d), 0)  # negative values are rounding errors
        if not self.V.has_items:
            largest = np.maximum(block.multiplier(h).max(axis=1), 1)
            return np.asarray(mass_gap + self.c * (largest - 1))
        out = np.zeros(self.shape[0])
        return np.asarray(mass_gap + self.V.for_items(kernels.gaps, block.basis, h, out, self.c))

    def solution(
        self,
        tol: float,
        max_rounds: int = 500,
        *,
        exact: bool = True,
        sampling_threshold: float = SAMPLING_THRESHOLD,
    ) -> Solution:
        """Solve every item from the uniform start.

        The solution of an item depends only on its own row of V and on the basis, to the last bit.

        Parameters
        ----------
        tol
            An item is solved when its certified gap max_k G_k − 1 is at most `tol`.
        max_rounds
            Maximum number of rounds per item.
        exact
            Whether to compute in float64; otherwise in the working type, which is faster.
        sampling_threshold
            Items that have at least this many times K² nonzeros begin with epochs of S-SCI-PI.
        """
        block = self.in_float64() if exact else self
        # The kernel replaces an item that is zero in `start` by the uniform point.
        start, h = (np.zeros(self.shape, block.B.dtype) for _ in range(2))
        gaps, passes = np.zeros((2, self.shape[0]))
        min_nonzeros = int(min(sampling_threshold * self.shape[1] ** 2, LARGEST_INTEGER))
        limits = tol, max_rounds, min_nonzeros
        self.V.for_items(kernels.solve_items, block.basis, start, h, self.c, *limits, gaps, passes)
        return Solution(h, gaps, passes)

    def divergence(self, h: Array, *, exact: bool = True) -> float:
        """Return D(V ‖ h Bᵀ), computed in float64 or, if not `exact`, in the working type."""
        block = self.in_float64() if exact else self
        h = kernels.as_contiguous(h, block.B.dtype)
        if not self.V.has_items:  # D is the same for the transposed problem
            return KLBlock(self.V.columns, h, dtype=h.dtype).divergence(block.B)
        out = np.empty(self.shape[0])
        total = float(self.V.for_items(kernels.divergence, block.basis, h, out).sum())
        return max(total, 0.0)  # negative values are rounding errors

    def in_float64(self) -> KLBlock:
        """Return a block that shares the data of this one and computes in float64."""
        if self.B.dtype == np.float64:
            return self
        return KLBlock(self.V, self.B, dtype=np.float64, c=self.c, d=self.d)

    # ---- Lemma 9 -----------------------------------------------------------------------------

    def to_sphere(self, h: Array) -> Float:
        """Return y = √(d∘h/c) with h scaled to its mass; an item without mass has y = 0."""
        c = np.where(self.c > 0, self.c, 1)[:, None]
        return np.asarray(np.sqrt(self.scale_to_mass(h) * self.d / c))

    def from_sphere(self, y: Point) -> Float:
        """Return h = c y²/d with y² raised to at least FLOOR, and h = 0 where d = 0."""
        return self.c[:, None] * self._divide_by_d(np.maximum(y**2, kernels.FLOOR))

    # ---- the scale invariant problem, in y ---------------------------------------------------

    def value(self, y: Point) -> float:
        """Return −½ D(V ‖ h Bᵀ), which is Σ_j c_j f_j(y) up to a constant that depends on V."""
        return -self.divergence(self.from_sphere(y)) / 2

    def gradient(self, y: Point, S: KLBlock | None = None) -> Point:
        """Return y∘G(y²), or its estimate y∘G_S(y²) from a batch."""
        h = self.c[:, None] * self._divide_by_d(y**2)
        return np.asarray(y * self._divide_by_d((self if S is None else S).ratio_sums(h)))

    def item_curvature(self, y: Point, item: int, S: KLBlock | None = None) -> Float:
        """Return M = diag(y) A diag(y) of one item with A = Lᵀ diag(v ⊘ (Lx)²) L / c, (K, K).

        M satisfies M y = G∘y.
        """
        V, basis = (self if S is None else S).V, (self if S is None else S).B
        row = V.row(item)
        nonzeros = np.flatnonzero(row)
        L = self._divide_by_d(basis[nonzeros].astype(np.float64)) * y[item]
        quotient = np.sqrt(row[nonzeros] / self.c[item]) / (L @ y[item])
        return np.asarray((L.T * quotient**2) @ L)

    def hessian(self, y: Point, S: KLBlock | None = None) -> Float:
        """Return diag(G) − 2M of every item, with M from `item_curvature`, (items, K, K)."""
        h = self.c[:, None] * self._divide_by_d(y**2)
        G = self._divide_by_d((self if S is None else S).ratio_sums(h))
        return np.stack(
            [np.diag(G[j]) - 2 * self.item_curvature(y, j, S) for j in range(self.shape[0])]
        )

    @property
    def terms(self) -> int:
        """The number n of columns of V."""
        return self.V.shape[1]

    def single_item(self, item: int) -> KLBlock:
        """Return a block that contains only the given item, in float64."""
        if self.shape[0] == 1:
            return self
        return KLBlock(self.V.row(item)[None, :], self.B, dtype=np.float64, d=self.d)

    def batch(self, sampling: Sampling, draw: Draw) -> KLBlock:
        """Draw V_S with E[V_S] = V and return a block of V_S with the c and d of this block."""
        scheme, share = sampling.scheme, sampling.share
        part, rows = self.V.sample(scheme, share, draw, replace=sampling.replace)
        return KLBlock(part, self.B if rows is None else self.B[rows], c=self.c, d=self.d)

    def retract(self, x_new: Point, x: Point, threshold: float) -> Point:
        """Return max(x_new, θx), normalised, so that the point stays non-negative."""
        return self.normalise(np.maximum(x_new, threshold * x))

    def start(self, seed: int) -> Point:
        """Draw a random point of the positive part of the sphere."""
        return self.normalise(Draw(seed, Stream.POINT).uniform(*self.shape) + 0.1)

    def residual(self, y: Point) -> float:
        """Return the certified gap of all items, relative to ΣV."""
        return float(self.gaps(self.from_sphere(y)).sum()) / max(self.V.total, 1e-300)

    def rounding(self, value: float) -> float:
        """Return the rounding error that `value` may have: 8 eps (ΣV + |value|)."""
        return 8 * float(np.finfo(self.V.dtype).eps) * (self.V.total + abs(value))
