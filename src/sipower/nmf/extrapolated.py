# SPDX-License-Identifier: BSD-3-Clause
"""Extrapolated alternation: each factor's update starts ahead, along the way it last went.

    H ← update(H | Ŵ),   Ĥ = H + β (H − H_last);   W ← update(Ŵ | Ĥ),   Ŵ = W + β (W − W_last)

(Ang & Gillis 2019). The pair (W, Ĥ) is taken where D fell, and β grows; otherwise the round is
undone, β shrinks and a plain round follows, which a monotone rule cannot fail. So D never rises.
Ahead means at most down to a hundredth of a value: a zero may meet a count, where D is infinite.

======  ======================================  ========
symbol  meaning                                 shape
======  ======================================  ========
W, Ĥ    the pair that is kept                   (n, K), (m, K)
Ŵ       W ahead, basis of the next update of H  (n, K)
H_last  H as it was updated, not ahead          (m, K)
β, β̄    momentum, and how far it may grow       –
======  ======================================  ========
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from sipower.kernels import Array
from sipower.nmf.alternating import Alternating, Factorization, Factors, drift
from sipower.nmf.rule import Rule, Turn
from sipower.problems.kl import KLBlock

__all__ = ["Extrapolated", "ExtrapolatedState", "ahead"]

FIRST, GROW, CAP_GROW, SHRINK = 0.5, 1.05, 1.01, 1 / 1.5  # of β, as Ang & Gillis have them
LEAST = 0.01  # share of a value that extrapolation leaves


@dataclass(frozen=True)
class ExtrapolatedState:
    """Everything that influences the future of a run."""

    non_negative: ClassVar[bool] = True
    W: Array
    H: Array
    W_ahead: Array
    H_last: Array
    step: float
    seed: int
    round: int = 0
    passes: float = 0.0
    value: float = math.nan
    momentum: float = FIRST
    most: float = 1.0
    plain: bool = False  # the next round does not extrapolate

    @property
    def x(self) -> Factors:
        """The point."""
        return Factors(self.W, self.H)


S = TypeVar("S", bound=ExtrapolatedState)


@dataclass(frozen=True)
class Extrapolated:
    """Alternate a monotone update rule over H and W with extrapolation; D never rises.

    Parameters
    ----------
    rule
        What happens to one factor while the other is the basis.
    """

    rule: Rule

    def __post_init__(self) -> None:
        if not (isinstance(self.rule, Rule) and self.rule.monotone):
            raise TypeError(f"rule is {self.rule!r}, expected a monotone rule such as CCD().")

    def init(self, problem: Factorization, x0: Any, seed: int) -> ExtrapolatedState:
        """State at x0 = (W, H), or at a random start; its objective is known."""
        start = Alternating(self.rule).init(problem, x0, seed)
        W, H = start.x
        return ExtrapolatedState(W, H, W, H, start.step, seed, value=problem.quick_value(start.x))

    def advance(self, problem: Factorization, state: S) -> S:
        """H given W ahead, then W given H ahead."""
        beta = 0.0 if state.plain else state.momentum
        columns = KLBlock(problem.V.columns, state.W_ahead)
        turn = Turn(state.step, state.seed, state.round, 1)
        H_new = self.rule.update(columns, state.H, turn)
        H = ahead(H_new, state.H_last, beta)
        rows = KLBlock(problem.V, H)
        W = self.rule.update(rows, state.W_ahead, turn._replace(side=0))
        value = problem.quick_value(Factors(W, H))
        cost = self.rule.passes(columns, turn) + self.rule.passes(rows, turn) + problem.value_passes
        state = replace(state, round=state.round + 1, passes=state.passes + cost)
        allowed = state.value + (problem.rounding(state.value) if state.plain else 0.0)
        if not value <= allowed:
            return self._undone(state)
        W_ahead = ahead(W, state.W, beta)
        scale = drift(W, rows)
        if scale is not None:
            W, W_ahead, H, H_new = W / scale, W_ahead / scale, H * scale, H_new * scale
        state = replace(state, W=W, H=H, W_ahead=W_ahead, H_last=H_new, value=value, plain=False)
        if beta == 0:
            return state
        momentum, most = min(state.most, GROW * beta), min(1.0, CAP_GROW * state.most)
        return replace(state, momentum=momentum, most=most)

    def _undone(self, state: S) -> S:
        """The pair as it was, nothing ahead, less momentum."""
        if not state.plain:
            state = replace(state, most=state.momentum, momentum=state.momentum * SHRINK)
        return replace(state, W_ahead=state.W, H_last=state.H, plain=True)


def ahead(new: Array, last: Array, beta: float) -> Array:
    """new + β(new − last), at least a hundredth of new."""
    if beta == 0:
        return new
    further = new + new.dtype.type(beta) * (new - last)
    return np.asarray(np.maximum(further, new.dtype.type(LEAST) * new, out=further))
