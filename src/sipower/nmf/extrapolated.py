# SPDX-License-Identifier: BSD-3-Clause
"""`Extrapolated`: alternation in which each update starts from an extrapolated factor.

    H ← update(H | Ŵ),   Ĥ = H + β (H − H_last);   W ← update(Ŵ | Ĥ),   Ŵ = W + β (W − W_last)

(Ang & Gillis 2019). If the divergence D(V ‖ W Ĥᵀ) has fallen, the pair (W, Ĥ) is kept and β grows.
Otherwise the round is undone, β shrinks (see `momentum`) and a round without extrapolation follows,
which cannot raise D because the rule is monotone. So D never rises.

======  ======================================  ========
symbol  meaning                                 shape
======  ======================================  ========
W, Ĥ    the pair that is kept                   (n, K), (m, K)
Ŵ       extrapolated W, basis of the next H     (n, K)
H_last  H before extrapolation                  (m, K)
β       momentum                                –
======  ======================================  ========
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from sipower.kernels import Array
from sipower.loop.protocols import Factorizable
from sipower.nmf.alternating import Alternating
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.meter import Meter
from sipower.nmf.momentum import Momentum, extrapolate
from sipower.nmf.rule import HalfStep, Rule

__all__ = ["Extrapolated", "ExtrapolatedState"]


@dataclass(frozen=True)
class ExtrapolatedState(Momentum):
    """The state of `Extrapolated`; the field `H` holds Ĥ and `W_ahead` holds Ŵ."""

    non_negative: ClassVar[bool] = True
    W: Array
    H: Array
    W_ahead: Array
    H_last: Array

    @property
    def x(self) -> Factors:
        """The current point (W, H)."""
        return Factors(self.W, self.H)


S = TypeVar("S", bound=ExtrapolatedState)


@dataclass(frozen=True)
class Extrapolated:
    """A solver that applies a monotone rule to H and W in turn, with extrapolation.

    Parameters
    ----------
    rule
        Monotone update rule for one factor while the other one is fixed.
    """

    needs: ClassVar = (Factorizable,)
    rule: Rule

    def __post_init__(self) -> None:
        if not (isinstance(self.rule, Rule) and self.rule.monotone):
            raise TypeError(f"`rule` must be a monotone rule such as CCD(), got {self.rule!r}.")

    def init(self, problem: Factorization, x0: Any, seed: int) -> ExtrapolatedState:
        """Return the state at x0 = (W, H), or at a random start if x0 is None, with its D."""
        start = Alternating(self.rule).init(problem, x0, seed)
        W, H = start.x
        value = problem.quick_value(start.x)
        return ExtrapolatedState(W, H, W, H, step=start.step, seed=seed, value=value)

    def advance(self, problem: Factorization, state: S) -> S:
        """Update H given the extrapolated W, then W given the extrapolated H."""
        beta = state.beta
        columns = problem.half(1, Factors(state.W_ahead, state.H), safe=state.plain)
        half_step = HalfStep(state.step, state.seed, state.round, 1)
        H_new = self.rule.update(columns, state.H, half_step)
        H = extrapolate(H_new, state.H_last, beta)
        rows = problem.half(0, Factors(state.W, H))
        meter = Meter(problem, self.rule)
        measured = half_step._replace(side=0, divergences=meter.divergences)
        W = self.rule.update(rows, state.W_ahead, measured)
        value = meter.value(Factors(W, H))
        cost = self.rule.passes(columns, half_step) + self.rule.passes(rows, half_step)
        cost += problem.value_passes
        state = replace(state, round=state.round + 1, passes=state.passes + cost)
        allowed = state.value + (problem.rounding(state.value) if state.plain else 0.0)
        if not value <= allowed:
            return replace(state.slow_down(), W_ahead=state.W, H_last=state.H)
        W_ahead = extrapolate(W, state.W, beta)
        scale = problem.balancing_scale(Factors(W, H))
        if scale is not None:
            value += problem.penalty_change(Factors(W, H), scale)
            W, W_ahead, H, H_new = W / scale, W_ahead / scale, H * scale, H_new * scale
            problem.terms.raise_to_floor(H)
        state = replace(state, W=W, H=H, W_ahead=W_ahead, H_last=H_new, value=value)
        return state.accelerate()
