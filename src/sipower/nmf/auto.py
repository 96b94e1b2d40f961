# SPDX-License-Identifier: BSD-3-Clause
"""`auto`: power steps while they pay, then extrapolated second-order steps; D never rises.

A SCI-PI round is cheap and far from a solution makes more of its work than anything else; near one
second-order steps with extrapolation win by orders of magnitude: Newton's on dense data, two sweeps
of coordinate descent on sparse data and for large K. The change comes when a bout of power rounds
gains less of D per counted pass than a share of the average so far, or next to nothing of D.
Decisions use D and counted passes alone, never a clock: the same on every machine, for any number
of threads.

Tall data without a given start get their first H from a sample and one pass over batches of rows
(`online`), which comes further than power steps in the same time; second-order steps follow. Where
only the rows are held, all of it is `Profiled`.

A bout that raised D is undone and the power step halved. On dense data the step starts at 6, not 1:
b₂ is of the order of 0.1 there, and steps up to 1/b₂ are stable (`sipower.theory.kl`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from sipower.matrix import Columns
from sipower.nmf.alternating import Alternating, Factorization, Factors, NMFState
from sipower.nmf.coordinate import CCD
from sipower.nmf.extrapolated import Extrapolated, ExtrapolatedState
from sipower.nmf.newton import Newton
from sipower.nmf.online import averaged_pass, is_tall, sampled_start
from sipower.nmf.profile import ROW_PASSES, Profiled, ProfileState
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.kl import KLBlock

__all__ = ["Auto", "AutoState"]

BOUT = 4  # power rounds between two looks at D
TIRED = 0.5  # of the average gain per pass: a bout with less is the last one
NOTHING = 0.01  # of D: the same
DENSE_STEP, LEAST_STEP = 6.0, 0.5  # of power steps on dense data; under the other they are given up
ROW_TOL = 1e-2  # certified gap of the rows after a pass over batches
LARGEST_MODEL = 64  # K up to which the Hessian of a dense item is worth its cost


@dataclass(frozen=True)
class AutoState(ExtrapolatedState):
    """The state of both phases."""

    first_value: float = math.nan
    refined: bool = False  # the second phase has begun
    online: bool = False  # the first round is one over batches


@dataclass(frozen=True)
class Auto:
    """The solver that needs no choice.

    Parameters
    ----------
    near
        Whether the start is near a solution: then there is no phase of power steps.
    """

    near: bool = False

    def init(self, problem: Factorization, x0: Any, seed: int) -> AutoState | ProfileState:
        """State at x0 = (W, H), or at a random start; its objective is known."""
        if isinstance(problem.V.columns, Columns):
            return Profiled().init(problem, x0, seed)
        start = Alternating(SciPiRule()).init(problem, x0, seed)
        step = DENSE_STEP if problem.V.dense else 1.0
        (W, H), value = start.x, problem.quick_value(start.x)
        state = AutoState(W, H, W, H, step, seed, value=value, first_value=value)
        return replace(state, refined=self.near, online=x0 is None and is_tall(problem.V))

    def advance(self, problem: Factorization, state: Any) -> Any:
        """A pass over batches, a bout of power rounds or one extrapolated round."""
        if isinstance(state, ProfileState):
            return Profiled().advance(problem, state)
        if state.online:
            return self._online(problem, state)
        if not state.refined:
            return self._bout(problem, state)
        # A sparse item has few terms and few components: two sweeps cost less than a model.
        newton = problem.V.dense and problem.rank <= LARGEST_MODEL
        return Extrapolated(Newton() if newton else CCD(2, "active")).advance(problem, state)

    def _online(self, problem: Factorization, state: AutoState) -> AutoState:
        H = sampled_start(problem.V, problem.rank, state.seed)
        H = averaged_pass(problem.V, H, state.seed)
        H[problem.column_mass == 0] = 0
        W = KLBlock(problem.V, H).solution(ROW_TOL, exact=False)[0]
        value = problem.quick_value(Factors(W, H))
        passes = state.passes + 2 * ROW_PASSES + problem.value_passes
        state = replace(state, round=1, passes=passes, online=False)
        if not value <= state.value:
            return state  # bouts of power steps do it
        return replace(state, W=W, H=H, W_ahead=W, H_last=H, value=value, refined=True)

    def _bout(self, problem: Factorization, state: AutoState) -> AutoState:
        power = Alternating(SciPiRule())
        inner = NMFState(state.W, state.H, state.step, state.seed, state.round)
        for _ in range(BOUT):
            inner = power.advance(problem, inner)
        W, H = inner.x
        value = problem.quick_value(inner.x) if problem.is_finite(inner.x) else math.inf
        passes = inner.passes + problem.value_passes
        state = replace(state, round=state.round + 1, passes=state.passes + passes)
        if not value <= state.value + problem.rounding(state.value):
            step = state.step / 2
            return replace(state, step=step, refined=step < LEAST_STEP)
        gain, average = state.value - value, (state.first_value - value) * passes / state.passes
        tired = gain < TIRED * average or gain < NOTHING * value
        state = replace(state, W=W, H=H, W_ahead=W, H_last=H, value=min(value, state.value))
        return replace(state, refined=tired)
