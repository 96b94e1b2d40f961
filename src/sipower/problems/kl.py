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

import numpy as np

from sipower import kernels
from sipower.kernels import Array, Draw, Stream
from sipower.problems.base import Point, Problem, Sampling, register
from sipower.problems.item_problem import Float, ItemProblem, Terms

__all__ = ["KLBlock"]


@register("kl")
class KLBlock(ItemProblem, Problem):
    """The convex problem min D(V ‖ h Bᵀ) over h ≥ 0, also as a problem in y on the sphere.

    Its parameters are those of `ItemProblem`.
    """

    degree = 0.0
    batch_passes = 1.5  # 1 for ∇f_S(x), ½ for ∇f_S(x₀), whose quotients v/z are already known

    @property
    def item_weights(self) -> Float:
        """The weights of the items: their masses c, because the value is Σ_j c_j f_j."""
        return self.c

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
        d = self.d if self.d.ndim == 1 else self.d[item]
        return KLBlock(self.V.row(item)[None, :], self.B, dtype=np.float64, terms=Terms(d))

    def batch(self, sampling: Sampling, draw: Draw) -> KLBlock:
        """Draw V_S with E[V_S] = V and return a block of V_S with the c and d of this block."""
        scheme, share = sampling.scheme, sampling.share
        part, rows = self.V.sample(scheme, share, draw, replace=sampling.replace)
        basis = self.B if rows is None else self.B[rows]
        return KLBlock(part, basis, c=self.c, terms=Terms(self.d))

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
