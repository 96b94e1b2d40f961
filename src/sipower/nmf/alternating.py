# SPDX-License-Identifier: BSD-3-Clause
"""`Alternating`: a KL-NMF solver that applies an update rule to H and W in turn.

A round either takes one half-step on H and one on W (one-step alternation), or solves each of the
two convex subproblems to a certified gap by a nested `solve` (exact alternation). Both factors are
stored as (items, K) and updated by the same code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sipower.kernels import Array
from sipower.loop.protocols import Factorizable, Progress
from sipower.loop.solve import Stop, solve
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors, check_shapes, lift_zeros
from sipower.nmf.meter import Meter
from sipower.nmf.mu import MU
from sipower.nmf.rule import Half, HalfStep, OnBlock, Rule, check_terms
from sipower.problems.kl import KLBlock

__all__ = ["Alternating", "NMFState"]


@dataclass(frozen=True)
class NMFState(Progress):
    """The state of `Alternating`: the factors W of shape (n, K) and H of shape (m, K)."""

    non_negative: ClassVar[bool] = True
    W: Array
    H: Array

    @property
    def x(self) -> Factors:
        """The current point (W, H)."""
        return Factors(self.W, self.H)


@dataclass(frozen=True)
class Alternating:
    """A solver that applies an update rule to H and W in turn.

    Parameters
    ----------
    rule
        Update rule for one factor while the other one is fixed.
    tol
        Each subproblem is solved until its certified gap is at most `tol`. If None, each half-step
        takes one update instead.
    max_updates
        Maximum number of updates per half-step if `tol` is given.
    """

    needs: ClassVar = (Factorizable,)
    rule: Rule
    tol: float | None = None
    max_updates: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise TypeError(
                f"`rule` must be an update rule such as MU() or CCD(), got {self.rule!r}."
            )

    def init(self, problem: Factorization, x0: Any, seed: int) -> NMFState:
        """Return the state at x0 = (W, H), or at a random start if x0 is None."""
        V = problem.V
        if self.rule.needs_items and not V.has_columns:
            raise ValueError(
                f"The data are available by row only, but {type(self.rule).__name__} also needs "
                "their columns: use solver='sci-pi' or 'auto'."
            )
        check_terms(self.rule, problem.terms)
        start = problem.start(seed) if x0 is None else x0
        W, H = x = Factors(*(np.array(factor, V.dtype, order="C") for factor in start))
        check_shapes(x, V.shape, problem.rank)
        given = H if problem.terms.fixed is None else H.copy()
        sums = H.sum(axis=0, dtype=np.float64), W.sum(axis=0, dtype=np.float64)
        for factor, d, mass in zip(x, sums, (V.mass, V.columns.mass), strict=True):
            lift_zeros(factor, d, mass)
        problem.terms.insert_fixed(H, given)
        if problem.terms.prior is not None:
            problem.terms.prior.restart_empty(H, V.columns.mass, problem.terms.fixed)
            problem.terms.prior.lift_unseen(H)
        return NMFState(W, H, step=self.rule.step, seed=seed)

    def advance(
        self, problem: Factorization, state: NMFState, *, measure: bool = False
    ) -> NMFState:
        """Update H given W, then W given H.

        If `measure` is true, the new state has the quick value of the problem, which costs
        `problem.value_passes` more but, if possible, no further read of data on disk.
        """
        columns = problem.half(1, state.x)
        H, cost_h = self._half(columns, HalfStep(state.step, state.seed, state.round, 1), state)
        rows = problem.half(0, Factors(state.W, H))
        meter = Meter(problem, self.rule) if measure and self.tol is None else None
        half_step = HalfStep(state.step, state.seed, state.round, 0)
        if meter is not None:
            half_step = half_step._replace(divergences=meter.divergences)
        W, cost_w = self._half(rows, half_step, state)
        passes = state.passes + cost_h + cost_w
        scale = problem.balancing_scale(Factors(W, H))
        if scale is not None:  # powers of two for the problems that a meter measures
            W, H = W / scale, H * scale
            problem.terms.raise_to_floor(H)
        value = math.nan if meter is None else meter.value(Factors(W, H))
        return replace(state, W=W, H=H, round=state.round + 1, passes=passes, value=value)

    def _half(self, block: KLBlock, half_step: HalfStep, state: NMFState) -> tuple[Array, float]:
        side = half_step.side
        if self.tol is None:
            h = self.rule.update(block, state.x[side], half_step)
            return h, self.rule.passes(block, half_step)
        half, first = Half(block), state.round * self.max_updates
        solver = OnBlock(self.rule, side, first, state.step)
        stop = Stop(self.tol, rounds=first + self.max_updates)
        result = solve(half, solver, state.x[side], stop=stop, seed=state.seed)
        return result.x, result.passes + half.evaluation_passes * len(result.trace)

    def largest_step(self, problem: Factorization) -> float:
        """Return the largest step size that a guard may use."""
        return self.rule.largest_step(problem.V)

    def safe(self) -> Alternating:
        """Return the solver that a guard falls back to: multiplicative updates (monotone)."""
        return Alternating(MU(), self.tol, self.max_updates)
