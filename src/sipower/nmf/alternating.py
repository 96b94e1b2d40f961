# SPDX-License-Identifier: BSD-3-Clause
"""KL-NMF as a problem, and the alternating driver that makes a solver of an update rule.

    min D(V ‖ W Hᵀ) = Σ_ij [ V_ij log(V_ij/Z_ij) − V_ij + Z_ij ],  Z = W Hᵀ,  W, H ≥ 0

A round is one half-step on H and one on W (one-step alternation), or each half solved to a
certified gap by a nested `solve` (exact alternation). Both factors are stored (items, K) and
updated by the same code.

======  ===================================  ========
symbol  meaning                              shape
======  ===================================  ========
V       data, rows are samples               (n, m)
W, H    factors                              (n, K), (m, K)
======  ===================================  ========
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sipower.data.memory import Matrix
from sipower.data.validate import as_matrix
from sipower.kernels import FLOOR, Array
from sipower.loop.solve import Stop, solve
from sipower.nmf.init import initial_factors
from sipower.nmf.mu import MU
from sipower.nmf.rows import Profile, profile
from sipower.nmf.rule import Half, OnBlock, Rule, Turn
from sipower.problems.kl import KLBlock

DRIFT = 24  # the factors' column sums may differ by this power of two

__all__ = ["Alternating", "Factorization", "Factors", "NMFState", "drift"]


class Factors(NamedTuple):
    """The point of KL-NMF: V ≈ W Hᵀ."""

    W: Array
    H: Array


class Factorization:
    """KL-NMF of V with a given rank.

    Parameters
    ----------
    V
        Data, (n, m); anything `as_matrix` takes, or a `Matrix`.
    rank
        K.
    """

    maximise = False
    value_passes = 0.5

    def __init__(self, V: Any, rank: int) -> None:
        self.V: Matrix = as_matrix(V)
        self.rank: int = rank
        if not isinstance(rank, Integral) or rank < 1:
            raise ValueError(f"The rank is {rank}, expected a whole number of at least 1.")

    def __repr__(self) -> str:
        V = self.V
        return f"Factorization({V.shape}, {V.nnz} nonzeros of sum {V.total!r}, rank {self.rank})"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Working type of the factors."""
        return self.V.dtype

    @property
    def column_mass(self) -> Array:
        """Masses of the features."""
        return self.V.columns.mass

    @property
    def evaluation_passes(self) -> float:
        """What value and gap cost: two gradients and the logarithms, always in float64."""
        return 3.0 if self.V.dtype == np.float64 else 6.0

    def half(self, side: int, x: Factors) -> KLBlock:
        """The block of W given H (side 0) or of H given W (side 1)."""
        return KLBlock(self.V, x.H) if side == 0 else KLBlock(self.V.columns, x.W)

    def value(self, x: Factors) -> float:
        """D(V ‖ W Hᵀ), in float64."""
        return self.half(0, x).divergence(x.W)

    def quick_value(self, x: Factors) -> float:
        """D in the working type, to its rounding: what solvers decide by between evaluations."""
        return self.half(0, x).divergence(x.W, exact=False)

    def residual(self, x: Factors) -> float:
        """Certified gap of both convex halves, in float64 and relative to ΣV.

        It bounds how far D can fall by changing W alone plus by changing H alone. Zero means a
        stationary point; it says nothing about other local minima.
        """
        gaps = self.half(0, x).gaps(x.W).sum() + self.half(1, x).gaps(x.H).sum()
        return float(gaps) / max(self.V.total, 1e-300)

    def profile(self, H: Array) -> Profile:
        """The exact rows for H and the sums over them."""
        return profile(self.V, H)

    def rounding(self, value: float) -> float:
        """8 eps (ΣV + D), eps of the working type."""
        return 8 * float(np.finfo(self.V.dtype).eps) * (self.V.total + abs(value))

    def is_finite(self, x: Factors) -> bool:
        """Whether the factors hold neither NaN nor infinity."""
        return all(bool(np.isfinite(factor.sum(dtype=np.float64))) for factor in x)


def drift(W: Array, rows: KLBlock) -> Array | None:
    """Powers of two that W is to be divided and H multiplied by where their scales have drifted."""
    w, h = (np.ones(len(W), W.dtype) @ W).astype(np.float64), rows.d  # a product: sooner than a sum
    alive = (w > 0) & (h > 0) & np.isfinite(w)
    apart = np.log2(np.where(alive, w, 1.0)) - np.log2(np.where(alive, h, 1.0))
    far = np.abs(apart) > DRIFT
    if not far.any():
        return None
    return np.asarray(np.where(far, np.exp2(np.round(apart / 2)), 1.0).astype(W.dtype))


def _lift_zeros(factor: Array, d: Array, mass: Array) -> None:
    """An exact zero may meet a count, where D is infinite: lift it to FLOOR of its item's mass."""
    largest = factor.max()
    for k in range(factor.shape[1]):
        zero = factor[:, k] == 0
        least = FLOOR * mass[zero] / d[k] if d[k] > 0 else FLOOR * largest
        factor[zero, k] = np.minimum(least, largest)
    factor[mass == 0] = 0


@dataclass(frozen=True)
class NMFState:
    """Everything that influences the future of a run."""

    non_negative: ClassVar[bool] = True
    W: Array
    H: Array
    step: float
    seed: int
    round: int = 0
    passes: float = 0.0
    value: float = math.nan

    @property
    def x(self) -> Factors:
        """The point."""
        return Factors(self.W, self.H)


@dataclass(frozen=True)
class Alternating:
    """Alternate an update rule over H and W.

    Parameters
    ----------
    rule
        What happens to one factor while the other is the basis.
    tol
        None: one update a half. Otherwise each half is solved to this certified gap.
    most
        Updates that an exactly solved half may take.
    """

    rule: Rule
    tol: float | None = None
    most: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise TypeError(f"rule is {self.rule!r}, expected a rule such as MU() or CCD().")

    def init(self, problem: Factorization, x0: Any, seed: int) -> NMFState:
        """State at x0 = (W, H), or at a random start."""
        V = problem.V
        W, H = initial_factors(V, problem.rank, seed) if x0 is None else x0
        W, H = (np.array(factor, V.dtype, order="C") for factor in (W, H))
        expected = ((V.shape[0], problem.rank), (V.shape[1], problem.rank))
        if (W.shape, H.shape) != expected:
            raise ValueError(f"W and H have shapes {W.shape} and {H.shape}, expected {expected}.")
        if not all(np.isfinite(factor).all() and (factor >= 0).all() for factor in (W, H)):
            raise ValueError("W and H must be finite and non-negative.")
        sums = H.sum(axis=0, dtype=np.float64), W.sum(axis=0, dtype=np.float64)
        for factor, d, mass in zip((W, H), sums, (V.mass, V.columns.mass), strict=True):
            _lift_zeros(factor, d, mass)
        return NMFState(W, H, self.rule.step, seed)

    def advance(self, problem: Factorization, state: NMFState) -> NMFState:
        """H given W, then W given H."""
        columns = problem.half(1, state.x)
        H, cost_h = self._half(columns, 1, state)
        rows = problem.half(0, Factors(state.W, H))
        W, cost_w = self._half(rows, 0, state)
        passes = state.passes + cost_h + cost_w
        scale = drift(W, rows)
        if scale is not None:
            W, H = W / scale, H * scale
        return replace(state, W=W, H=H, round=state.round + 1, passes=passes, value=math.nan)

    def _half(self, block: KLBlock, side: int, state: NMFState) -> tuple[Array, float]:
        if self.tol is None:
            turn = Turn(state.step, state.seed, state.round, side)
            h = self.rule.update(block, state.x[side], turn)
            return h, self.rule.passes(block, turn)
        half, first = Half(block), state.round * self.most
        solver = OnBlock(self.rule, side, first, state.step)
        stop = Stop(self.tol, rounds=first + self.most)
        result = solve(half, solver, state.x[side], stop=stop, seed=state.seed)
        return result.x, result.passes + half.evaluation_passes * len(result.trace)

    def largest_step(self, problem: Factorization) -> float:
        """A guard lets the step grow up to this."""
        return self.rule.largest_step(problem.V)

    def safe(self) -> Alternating:
        """What a guard falls back to: multiplicative updates are monotone."""
        return Alternating(MU(), self.tol, self.most)
