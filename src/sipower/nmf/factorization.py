# SPDX-License-Identifier: BSD-3-Clause
"""`Factorization`: KL-NMF as a problem, with its objective and its certificate.

    min D(V ‖ W Hᵀ) = Σ_ij [ V_ij log(V_ij/Z_ij) − V_ij + Z_ij ],  Z = W Hᵀ,  W, H ≥ 0

======  ===================================  ==============
symbol  meaning                              shape
======  ===================================  ==============
V       data, rows are samples               (n, m)
W, H    factors                              (n, K), (m, K)
======  ===================================  ==============

`ModelTerms` adds weights, missing values, batch effects, penalties, prior counts and fixed
entries of H.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.kernels import Array
from sipower.nmf.factors import Factors, balancing_scale, check_shapes
from sipower.nmf.init import initial_factors
from sipower.nmf.rows import (
    FeatureSums,
    RowTask,
    RowUpdate,
    feature_gaps,
    sum_rows,
    uniform_rows,
    update_rows,
)
from sipower.nmf.terms import PLAIN, ModelTerms
from sipower.problems.item_problem import Terms
from sipower.problems.kl import KLBlock

__all__ = ["Factorization"]


class Factorization:
    """The KL-NMF problem of a data matrix V with a given rank.

    Parameters
    ----------
    V
        Data, (n, m), rows are samples; anything `as_matrix` accepts.
    rank
        Number of components K.
    terms
        What the model has besides V, W and H.
    """

    maximise = False
    value_passes = 0.5

    def __init__(self, V: Any, rank: int, terms: ModelTerms = PLAIN) -> None:
        self.V: RowBlocks = as_matrix(V)
        self.rank: int = rank
        self.terms = terms
        if not isinstance(rank, Integral) or rank < 1:
            raise ValueError(f"`rank` must be a positive integer, got {rank}.")

    def __repr__(self) -> str:
        V = self.V
        return f"Factorization({V.shape}, {V.nnz} nonzeros of sum {V.total!r}, rank {self.rank})"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The working type of the factors."""
        return self.V.dtype

    @property
    def column_mass(self) -> Array:
        """The masses of the features: column sums of V, (m,)."""
        return self.V.columns.mass

    @property
    def evaluation_passes(self) -> float:
        """The passes that one evaluation costs: the gap needs two gradients, D needs logarithms."""
        return 3.0 if self.V.dtype == np.float64 else 6.0

    def start(self, seed: int) -> Factors:
        """Draw a random start; fixed components keep their values and get W of a fitting scale."""
        x = Factors(*initial_factors(self.V, self.rank, seed))
        if self.terms.fixed is None:
            return x
        before = x.H.sum(axis=0, dtype=np.float64)
        self.terms.insert_fixed(x.H)
        after = x.H.sum(axis=0, dtype=np.float64)
        scale = np.divide(before, after, out=np.ones_like(after), where=after > 0)
        return Factors((x.W * scale).astype(x.W.dtype), x.H)

    def half(
        self, side: int, x: Factors, *, safe: bool = True, dtype: DTypeLike | None = None
    ) -> KLBlock:
        """Return the convex subproblem in W given H (side 0) or in H given W (side 1).

        With prior counts, the subproblem in H is an upper bound of the objective if `safe`, else an
        approximation that allows longer steps. `dtype` is another type to compute in.
        """
        V, basis = (self.V, x.H) if side == 0 else (self.V.columns, x.W)
        return KLBlock(V, basis, dtype=dtype, terms=self.terms.of_side(side, x, safe=safe))

    def value(self, x: Factors) -> float:
        """Return D(V ‖ W Hᵀ) and the penalties, in float64."""
        return self._objective(x, exact=True)

    def quick_value(self, x: Factors) -> float:
        """Return the value computed in the working type: faster, with an error of `rounding`."""
        return self._objective(x, exact=False)

    def _objective(self, x: Factors, *, exact: bool) -> float:
        value = self.terms.row_objective(self.half(0, x), x, exact=exact)
        return value + self.terms.feature_penalty(x.H) if self.terms.has_penalty else value

    def without_penalties(self, value: float, x: Factors) -> float:
        """Return D(V ‖ W Hᵀ), given the value with the penalties."""
        return value - self.terms.penalty(x) if self.terms.has_penalty else value

    def residual(self, x: Factors) -> float:
        """Return the certified gap of both convex halves, in float64 and relative to ΣV.

        The gap is an upper bound on the possible decrease of D if only W changes plus the possible
        decrease if only H changes. A gap of zero means that the point is stationary, not that it is
        the global minimum.
        """
        gaps = self.half(0, x).gaps(x.W).sum() + self._feature_gaps(x).sum()
        return float(gaps) / max(self.V.total, 1e-300)

    def _feature_gaps(self, x: Factors) -> Array:
        """Return the certified gap of every feature, given W."""
        if self.terms.prior is None:
            return self.half(1, x, dtype=np.float64).gaps(x.H)  # without a basis in float32
        g = KLBlock(self.V.columns, x.W, dtype=np.float64).ratio_sums(x.H)
        return feature_gaps(x.H, g, self.terms.sums(x.W), self.column_mass, self.terms)

    def row_terms(self, x: Factors) -> Terms:
        """Return the terms of the row problems, given H."""
        return self.terms.row_terms(x.H)

    def balancing_scale(self, x: Factors) -> Array | None:
        """Return the numbers (K,) that divide W and multiply H; None: they are balanced.

        They are powers of two or, with penalties, the best numbers. With prior counts, every
        component sums to 1. A component with fixed entries keeps its scale.
        """
        if self.terms.prior is not None:
            return self.terms.normalising_scale(x.H)
        if self.terms.has_penalty:
            return self.terms.best_scale(x.H, self.terms.row_penalties(x.W))
        ones = np.ones(len(x.H), x.H.dtype)  # a matrix product is faster than a sum
        scale = balancing_scale(x.W, (ones @ x.H).astype(np.float64))
        if scale is not None and self.terms.fixed is not None:
            scale[(self.terms.fixed & (x.H > 0)).any(axis=0)] = 1
        return scale

    def penalty_change(self, x: Factors, scale: Array) -> float:
        """Return how much the penalties change if W is divided and H multiplied by `scale`."""
        if not self.terms.has_penalty or self.terms.prior is not None:
            return 0.0
        return self.terms.penalty(Factors(x.W / scale, x.H * scale)) - self.terms.penalty(x)

    def place_rows(self, W: Array | None, H: Array) -> Array:
        """Return W in the working type; None or a row of zeros: the uniform point for H."""
        uniform = uniform_rows(self.V, H)
        if W is None:
            return uniform
        W = np.array(W, self.dtype, order="C")
        check_shapes(Factors(W, H), self.V.shape, self.rank)
        return np.where(W.any(axis=1, keepdims=True), W, uniform)

    def update_rows(self, W: Array, W_ahead: Array, H: Array, task: RowTask) -> RowUpdate:
        """Return the rows of W after one round for H, with the sums over them and the value."""
        update = update_rows(self.V, (W, W_ahead), H, task, self.terms)
        value = update.value + self.terms.feature_penalty(H)
        return update._replace(value=value, passes=update.passes / max(self.V.nnz, 1))

    def sum_rows(self, x: Factors, *, curvatures: bool) -> tuple[FeatureSums, float]:
        """Return the sums over the rows at x, and their cost in passes."""
        sums, cost = sum_rows(self.V, x, self.terms, curvatures=curvatures)
        return sums, cost / max(self.V.nnz, 1)

    def rounding(self, value: float) -> float:
        """Return the rounding error that D = `value` may have: 8 eps (ΣV + D).

        eps is that of the working type.
        """
        return 8 * float(np.finfo(self.V.dtype).eps) * (self.V.total + abs(value))

    def is_finite(self, x: Factors) -> bool:
        """Return whether the factors contain neither NaN nor infinity."""
        return all(bool(np.isfinite(factor.sum(dtype=np.float64))) for factor in x)
