# SPDX-License-Identifier: BSD-3-Clause
"""`auto`: power steps while they pay, then extrapolated second-order steps; D never rises.

A round of power steps is cheap and far from a solution makes more of its work than anything else:

    sparse data    SCI-PI
    dense data     S-SCI-PI where one side is long, so that batches cost next to nothing, or where
                   the terms are uneven; else SCI-PI with step 6, which comes as far in as many
                   passes and takes less time. Steps up to 1/b₂ are stable (`sipower.theory.kl`);
                   b₂ is of the order of 0.1 on even data, but not on uneven ones.

Near a solution second-order steps with extrapolation win by orders of magnitude: Newton's on dense
data, two sweeps of coordinate descent on sparse data and for large K. D is compared every few
rounds; the change comes when they gained less of D per counted pass than a share of the average so
far, or next to nothing of D. If D rose they are undone and the step is halved. Decisions use D and
counted passes alone, never a clock: the same on every machine, for any number of threads.

Tall data without a given start get their first H from a sample and one pass over batches of rows
(`online`), which comes further than power steps in the same time; second-order steps follow. Where
only the rows are held, all of it is `Profiled`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from sipower.data.row_blocks import RowBlocks
from sipower.loop.protocols import Factorizable, Profilable
from sipower.nmf.alternating import Alternating, NMFState
from sipower.nmf.coordinate import CCD
from sipower.nmf.extrapolated import Extrapolated, ExtrapolatedState
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.newton import Newton
from sipower.nmf.online import averaged_pass, is_tall, sampled_start
from sipower.nmf.profile import ROW_PASSES, Profiled, ProfileState
from sipower.nmf.rule import Rule
from sipower.nmf.s_sci_pi import SSciPiRule
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.kl import KLBlock

__all__ = ["Auto", "AutoState"]

LEAST_STEP = 0.5  # a shorter power step is given up
ROW_TOL = 1e-2  # certified gap of the rows after a pass over batches
LARGEST_MODEL = 64  # K up to which the Hessian of a dense item is worth its cost
# Dense data are sampled from so many terms per component on, and from such an unevenness: between
# MITF and image patches (120 and 300; up to 1.35), where long full steps took less time, and WT
# (960), digits (2.4), heavy-tailed counts (11) and a spectrogram (17), where they took more passes.
MIN_SAMPLED_TERMS, MIN_UNEVENNESS = 500, 1.5


class Early(NamedTuple):
    """Settings of the early phase."""

    rule: Rule
    rounds: int  # between two comparisons of D
    min_relative_gain: float  # of the average gain per pass: with less the phase ends
    min_gain: float  # of D: the same


# The first two tuned on the paper's four sets, the third on WT, digits and heavy-tailed counts.
SPARSE = Early(SciPiRule(), 4, 0.5, 0.01)
DENSE = Early(SciPiRule(6.0), 4, 0.5, 0.01)
SAMPLED = Early(SSciPiRule(), 2, 0.25, 0.003)


def early_phase(V: RowBlocks, rank: int) -> Early:
    """Choose the power steps of the early phase from the data."""
    if not V.dense:
        return SPARSE
    uneven = max(V.unevenness, V.columns.unevenness) >= MIN_UNEVENNESS
    return SAMPLED if uneven or max(V.shape) >= MIN_SAMPLED_TERMS * rank else DENSE


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

    needs: ClassVar = (Factorizable, Profilable)
    near: bool = False

    def init(self, problem: Factorization, x0: Any, seed: int) -> AutoState | ProfileState:
        """State at x0 = (W, H), or at a random start; its objective is known."""
        if not problem.V.has_columns:
            return Profiled().init(problem, x0, seed)
        early = early_phase(problem.V, problem.rank)
        start = Alternating(early.rule).init(problem, x0, seed)
        (W, H), value = start.x, problem.quick_value(start.x)
        online = x0 is None and is_tall(problem.V)
        return AutoState(
            W, H, W, H, value, self.near, online, step=start.step, seed=seed, value=value
        )

    def advance(self, problem: Factorization, state: Any) -> Any:
        """A pass over batches, a few rounds of power steps or one extrapolated round."""
        if isinstance(state, ProfileState):
            return Profiled().advance(problem, state)
        if state.online:
            return self._online(problem, state)
        if not state.refined:
            return self._early_rounds(problem, state)
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
            return state  # power steps do it
        return replace(state, W=W, H=H, W_ahead=W, H_last=H, value=value, refined=True)

    def _early_rounds(self, problem: Factorization, state: AutoState) -> AutoState:
        early = early_phase(problem.V, problem.rank)
        power = Alternating(early.rule)
        first = early.rounds * state.round
        inner = NMFState(state.W, state.H, step=state.step, seed=state.seed, round=first)
        for _ in range(early.rounds):
            inner = power.advance(problem, inner)
        W, H = inner.x
        value = problem.quick_value(inner.x) if problem.is_finite(inner.x) else math.inf
        passes = inner.passes + problem.value_passes
        state = replace(state, round=state.round + 1, passes=state.passes + passes)
        if not value <= state.value + problem.rounding(state.value):
            step = state.step / 2
            return replace(state, step=step, refined=step < LEAST_STEP)
        gain, average = state.value - value, (state.first_value - value) * passes / state.passes
        refined = gain < early.min_relative_gain * average or gain < early.min_gain * value
        state = replace(state, W=W, H=H, W_ahead=W, H_last=H, value=min(value, state.value))
        return replace(state, refined=refined)
