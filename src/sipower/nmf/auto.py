# SPDX-License-Identifier: BSD-3-Clause
"""`Auto`: power steps first, then extrapolated second-order steps; D never rises.

Far from a solution, power steps lower D by more per pass than any other rule:

    sparse data    SCI-PI
    dense data     S-SCI-PI where one side is long, so that batches are cheap, or where the entries
                   are uneven; else SCI-PI with step 6, which lowers D as much per pass and takes
                   less time. Steps up to 1/b₂ are stable (`sipower.theory.kl`); b₂ is of the order
                   of 0.1 on even data, but not on uneven data.

Near a solution, second-order steps with extrapolation are faster by orders of magnitude: Newton's
on dense data, two sweeps of coordinate descent on sparse data and for large K. D is compared every
few rounds. The second phase begins when these rounds gained less D per counted pass than a share of
the average so far, or only a small share of D. If D rose, the rounds are undone and the step is
halved. Decisions use D and counted passes alone, never a clock: they are the same on every machine
and for any number of threads.

Tall data without a given start get their first H from a sample and one pass over batches of rows
(`online`), which lowers D further than power steps in the same time; second-order steps follow.
If the data hold their rows only, the whole fit is `Profiled`.
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
from sipower.nmf.online import fit_sample, is_tall, run_averaged_pass
from sipower.nmf.profile import ROW_PASSES, Profiled, ProfileState
from sipower.nmf.rule import Rule
from sipower.nmf.s_sci_pi import SSciPiRule
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.kl import KLBlock

__all__ = ["Auto", "AutoState"]

MIN_STEP = 0.5  # the phase of power steps ends when its step falls below this
ROW_TOL = 1e-2  # certified gap of the rows after a pass over batches
MAX_HESSIAN_RANK = 64  # K up to which the Hessian of a dense item is worth its cost
# Sample dense data if the longer side has at least this many entries per component, or if the
# unevenness is at least this. Compared with sampling, full steps took less time on MITF and image
# patches (120 and 300 entries per component; unevenness up to 1.35), but more passes on WT (960
# entries per component), digits (unevenness 2.4), heavy-tailed counts (11) and a spectrogram (17).
MIN_SAMPLED_ENTRIES, MIN_UNEVENNESS = 500, 1.5


class EarlyPhase(NamedTuple):
    """The settings of the phase of power steps."""

    rule: Rule
    rounds: int  # rounds between two comparisons of D
    min_relative_gain: float  # the phase ends below this share of the average gain per pass
    min_gain: float  # the phase ends below this gain, as a share of D


# The first two are tuned on the paper's four sets, the third on WT, digits and
# heavy-tailed counts.
SPARSE = EarlyPhase(SciPiRule(), 4, 0.5, 0.01)
DENSE = EarlyPhase(SciPiRule(6.0), 4, 0.5, 0.01)
SAMPLED = EarlyPhase(SSciPiRule(), 2, 0.25, 0.003)


def choose_early_phase(V: RowBlocks, rank: int) -> EarlyPhase:
    """Choose the settings of the early phase from the data and the rank."""
    if not V.dense:
        return SPARSE
    uneven = max(V.unevenness, V.columns.unevenness) >= MIN_UNEVENNESS
    return SAMPLED if uneven or max(V.shape) >= MIN_SAMPLED_ENTRIES * rank else DENSE


@dataclass(frozen=True)
class AutoState(ExtrapolatedState):
    """The state of `Auto` in either phase."""

    first_value: float = math.nan
    refined: bool = False  # whether the second phase has begun
    online: bool = False  # whether the first round is a pass over batches of rows


@dataclass(frozen=True)
class Auto:
    """Solver that chooses its steps from the data and its own progress.

    Parameters
    ----------
    near
        Whether the start is near a solution; the phase of power steps is then skipped.
    """

    needs: ClassVar = (Factorizable, Profilable)
    near: bool = False

    def init(self, problem: Factorization, x0: Any, seed: int) -> AutoState | ProfileState:
        """Return the state at x0 = (W, H), or at a random start, with its objective."""
        if not problem.V.has_columns:
            return Profiled().init(problem, x0, seed)
        early = choose_early_phase(problem.V, problem.rank)
        start = Alternating(early.rule).init(problem, x0, seed)
        (W, H), value = start.x, problem.quick_value(start.x)
        online = x0 is None and is_tall(problem.V)
        return AutoState(
            W, H, W, H, value, self.near, online, step=start.step, seed=seed, value=value
        )

    def advance(self, problem: Factorization, state: Any) -> Any:
        """Run a pass over batches, a few rounds of power steps or one extrapolated round."""
        if isinstance(state, ProfileState):
            return Profiled().advance(problem, state)
        if state.online:
            return self._online_round(problem, state)
        if not state.refined:
            return self._early_rounds(problem, state)
        # A sparse item has few nonzeros and few components: two sweeps cost less than a Hessian.
        newton = problem.V.dense and problem.rank <= MAX_HESSIAN_RANK
        return Extrapolated(Newton() if newton else CCD(2, "active")).advance(problem, state)

    def _online_round(self, problem: Factorization, state: AutoState) -> AutoState:
        H = fit_sample(problem.V, problem.rank, state.seed)
        H = run_averaged_pass(problem.V, H, state.seed)
        H[problem.column_mass == 0] = 0
        W = KLBlock(problem.V, H).solution(ROW_TOL, exact=False)[0]
        value = problem.quick_value(Factors(W, H))
        passes = state.passes + 2 * ROW_PASSES + problem.value_passes
        state = replace(state, round=1, passes=passes, online=False)
        if not value <= state.value:
            return state  # continue with power steps from the random start
        return replace(state, W=W, H=H, W_ahead=W, H_last=H, value=value, refined=True)

    def _early_rounds(self, problem: Factorization, state: AutoState) -> AutoState:
        early = choose_early_phase(problem.V, problem.rank)
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
            return replace(state, step=step, refined=step < MIN_STEP)
        gain, average = state.value - value, (state.first_value - value) * passes / state.passes
        refined = gain < early.min_relative_gain * average or gain < early.min_gain * value
        state = replace(state, W=W, H=H, W_ahead=W, H_last=H, value=min(value, state.value))
        return replace(state, refined=refined)
