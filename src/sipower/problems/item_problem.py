# SPDX-License-Identifier: BSD-3-Clause
"""`ItemProblem`: the convex problem of all items of V given a basis, with every term of the model.

    min over h ≥ 0 of  d·h + ½r‖h‖² − Σ_i v_i log(b_i·h) − Σ_k a_k log h_k     for every item

In the plain problem d holds the column sums of B and the other terms are absent. Weights, missing
values and batch effects give every item its own d; penalties give r and add to d; prior counts
give a. Components of h may be fixed: what they explain is the constant part of b_i·h. The form on
the sphere exists if r = 0 and nothing is fixed: a prior count is an observation of one component,
so c and g become c + Σ_k a_k and g + a ⊘ h.

======  =======================================================  ==================
symbol  meaning                                                  shape
======  =======================================================  ==================
V       data, items are rows                                     (items, n)
B       basis, the other factor                                  (n, K)
d       linear term                                              (K,) or (items, K)
r       ridge                                                    – or (items,)
a       prior counts                                             (K,) or (items, K)
c       masses: row sums of V                                    (items,)
h       factor                                                   (items, K)
g       ratio sums Σ_i b_i v_i / (b_i·h)                         (items, K)
======  =======================================================  ==================
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import kl_div

from sipower import kernels
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.kernels import Array
from sipower.problems.item_terms import NO_TERMS, Terms, certify

__all__ = ["NO_TERMS", "ItemProblem", "Solution", "Terms"]

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
        Certified gaps relative to the masses, (items,): max_k G_k − 1 if d is the only term.
    passes
        Number of passes that each item needed over its own nonzeros, (items,).
    """

    h: Array
    gaps: Float
    passes: Float


class ItemProblem:
    """The convex problem of all items of V given the basis B.

    Parameters
    ----------
    V
        Data with the items as rows, (items, n); anything `as_matrix` accepts.
    B
        Basis, (n, K), non-negative.
    dtype
        Working type; None: the working type of V.
    c
        Masses of the data (items,); None: those of V. A batch has the masses of its block.
    terms
        The terms of the objective besides the data.
    """

    def __init__(
        self,
        V: Any,
        B: Array,
        *,
        dtype: DTypeLike | None = None,
        c: Any = None,
        terms: Terms = NO_TERMS,
    ) -> None:
        self.V: RowBlocks = as_matrix(V)
        self.B = kernels.as_contiguous(B, self.V.dtype if dtype is None else dtype)
        if self.B.ndim != 2 or self.B.shape[0] != self.V.shape[1]:
            raise ValueError(f"`B` must have shape ({self.V.shape[1]}, rank), got {self.B.shape}.")
        self.item_terms = terms
        self.basis = self.V.basis(self.B, **terms._asdict())
        self.d: Float = self.basis.column_sums if terms.d is None else terms.d
        if terms.prior is not None and not terms.has_ridge:
            self._require_bounded(terms.prior, terms.fixed)
        self.c: Float = self.V.mass if c is None else c

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of h, (items, K)."""
        return self.V.shape[0], self.B.shape[1]

    @property
    def is_linear(self) -> bool:
        """Whether d is the only term: no ridge, no prior counts, no fixed components."""
        return self.item_terms.is_linear

    @property
    def is_scaled(self) -> bool:
        """Whether the best multiple of h has a known mass: no ridge, no fixed components."""
        return self.item_terms.fixed is None and not self.item_terms.has_ridge

    @property
    def mass(self) -> Float:
        """The masses of the items with their prior counts, (items,)."""
        prior = self.item_terms.prior
        return self.c if prior is None else self.c + prior.sum(axis=-1)

    def scale_to_mass(self, h: Array) -> Float:
        """Return h with every item scaled to its mass, Σ_k d_k h_k = c, as at the optimum.

        An item that is zero is replaced by the uniform point.
        """
        self._require_sphere()
        current, mass = self._linear_term(h), self.mass
        alive = self.d > 0
        count = np.maximum(alive.sum(axis=-1, keepdims=True), 1)
        uniform = np.divide(1.0, count * self.d, out=np.zeros_like(self.d), where=alive)
        start = np.where((current > 0)[:, None], h * alive, uniform)
        scale = np.divide(mass, current, out=mass.copy(), where=current > 0)
        return np.asarray(start * scale[:, None], np.float64)

    def limit_to_mass(self, h: Array) -> Array:
        """Return h with the components that may change scaled down to at most the mass of the item.

        They never have more at the optimum, and scaling them down to it lowers the objective all
        the way.
        """
        fixed = self.item_terms.fixed
        current = self._linear_term(h if fixed is None else np.where(fixed, 0, h))
        scale = np.divide(self.mass, current, out=np.ones(len(h)), where=current > self.mass)
        scaled = h * scale[:, None]
        return scaled if fixed is None else np.where(fixed, h, scaled)

    def _linear_term(self, h: Array) -> Float:
        """Return d·h of every item, (items,)."""
        return h @ self.d if self.d.ndim == 1 else np.einsum("jk,jk->j", h, self.d)

    def _require_sphere(self) -> None:
        if not self.is_scaled:
            raise ValueError(
                "A problem with fixed components or a ridge has no form on the sphere: use "
                "solver='auto', 'ccd', 'newton' or 'mu'."
            )

    def _require_bounded(self, prior: Array, fixed: Array | None) -> None:
        free = True if fixed is None else ~np.asarray(fixed, bool)
        if ((prior > 0) & (self.d <= 0) & free).any():
            raise ValueError(
                "A component with `prior` counts needs a positive linear term `d` or a `ridge`; "
                "otherwise the objective has no lower bound."
            )

    def ratio_sums(self, h: Array) -> Float:
        """Return the ratio sums g_j = Σ_i b_i v_ji / (b_i·h_j) of every item j, (items, K)."""
        h = kernels.as_contiguous(h, self.B.dtype)
        if self.V.has_items:
            return self.V.for_items(kernels.gradient, self.basis, h, np.empty(self.shape))
        return self.V.columns.sums(kernels.sums, kernels.basis(h, dense=self.V.dense), self.B)

    def multiplier(self, h: Array) -> Float:
        """Return G at h scaled to its mass, (items, K); zero where the basis column is zero."""
        h = self.scale_to_mass(h)
        return self._divide_by_d(self.ratio_sums(h) + self._prior_ratios(h))

    def _prior_ratios(self, h: Array) -> Float | float:
        """Return a ⊘ h: prior counts are observations of single components."""
        prior = self.item_terms.prior
        return 0.0 if prior is None else np.divide(prior, h, out=np.zeros(h.shape), where=h > 0)

    def _divide_by_d(self, g: Float) -> Float:
        return np.divide(g, self.d, out=np.zeros_like(g), where=self.d > 0)

    def gaps(self, h: Array) -> Float:
        """Return the certified gap of every item: how much the objective can fall, (items,).

        Scaling the item to its mass lowers D by exactly kl_div(c, d·h). By convexity, D can then
        fall by at most c (max_k G_k − 1). With terms besides d, the gap is that of the dual
        problem (docs/general_model.md).
        """
        block, h = self.in_float64(), kernels.as_contiguous(h, np.float64)
        if not self.is_linear:
            return certify(self.item_terms._replace(d=block.d), block.ratio_sums(h), h, self.c)
        # negative values are rounding errors
        mass_gap = np.maximum(kl_div(self.c, self._linear_term(h)), 0)
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
        start: Array | None = None,
    ) -> Solution:
        """Solve every item.

        The solution of an item depends only on its own row of V and on the basis, to the last bit.

        Parameters
        ----------
        tol
            An item is solved when its certified gap is at most `tol` times its mass.
        max_rounds
            Maximum number of rounds per item.
        exact
            Whether to compute in float64; otherwise in the working type, which is faster.
        sampling_threshold
            Items that have at least this many times K² nonzeros begin with epochs of S-SCI-PI.
        start
            First h, (items, K), positive where there are prior counts; it also holds the values of
            the fixed components. An item whose other components are zero starts at the uniform
            point; None: all items do.
        """
        block = self.in_float64() if exact else self
        h = np.zeros(self.shape, block.B.dtype)
        # Zeros that are only read take no memory, a copy of h does.
        start = np.zeros_like(h) if start is None else kernels.as_contiguous(start, h.dtype)
        gaps, passes = np.zeros((2, self.shape[0]))
        min_nonzeros = int(min(sampling_threshold * self.shape[1] ** 2, LARGEST_INTEGER))
        limits = tol, max_rounds, min_nonzeros
        self.V.for_items(kernels.solve_items, block.basis, start, h, self.c, *limits, gaps, passes)
        return Solution(h, gaps, passes)

    def divergence(self, h: Array, *, exact: bool = True) -> float:
        """Return D(V ‖ h Bᵀ), computed in float64 or, if not `exact`, in the working type.

        Σ_i b_i·h is replaced by d·h.
        """
        block = self.in_float64() if exact else self
        h = kernels.as_contiguous(h, block.B.dtype)
        if not self.V.has_items:  # D is the same for the transposed problem
            plain = ItemProblem(self.V.columns, h, dtype=h.dtype).divergence(block.B)
            if self.item_terms.d is None:
                return plain
            return plain + float((self._linear_term(h) - h @ block.B.sum(axis=0)).sum())
        out = np.empty(self.shape[0])
        total = float(self.V.for_items(kernels.divergence, block.basis, h, out).sum())
        # Negative values are rounding errors if d holds the column sums of the basis.
        return max(total, 0.0) if self.item_terms.d is None else total

    def in_float64(self) -> Self:
        """Return a block that shares the data of this one and computes in float64."""
        if self.B.dtype == np.float64:
            return self
        return type(self)(self.V, self.B, dtype=np.float64, c=self.c, terms=self.item_terms)
