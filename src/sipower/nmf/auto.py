# SPDX-License-Identifier: BSD-3-Clause
"""`Auto`: power steps with a line search, then extrapolated second-order steps; D never rises.

Far from a solution, power steps with a line search for every item (`power_search`) lower D quickly
on most data, never raise it and need no step size. They end when they gain less per counted pass
than a share of their average gain. If the data are dense and have many rows or many columns, a
sample of these rows or columns is fitted first instead (`sampled_items`).

With `surplus=True`, a random start is compared with a start that had surplus components, which
were merged (`surplus`): both starts are fitted for a fixed number of counted passes, and the one
with the lower D is continued. If a sample is fitted first, this comparison is skipped, because it
did not lower D on such data (spectrogram, faces, heavy-tailed counts).

Second-order steps with extrapolation follow: Newton steps with a shared Hessian on dense data
(`shared_newton`), two sweeps of coordinate descent on sparse data and for large K. Decisions use D
and counted passes alone, never a clock, so they are the same on every machine and for any number of
threads.

With prior counts and no given start, the problem without them is fitted first, for a fixed number
of counted passes (`guided_start`).

If the data are tall and no start is given, the first H comes from a sample of the rows
(`row_sample`), which lowers D more than power steps do in the same time. Second-order steps follow.
If the data are available by row only, `RowRounds` does the whole fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sipower.loop.protocols import Factorizable, RowSolvable
from sipower.nmf.alternating import Alternating
from sipower.nmf.coordinate import CCD
from sipower.nmf.extrapolated import Extrapolated, ExtrapolatedState
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.guided_start import guide_start
from sipower.nmf.power_search import take_power_steps
from sipower.nmf.row_rounds import RowRounds, RowState
from sipower.nmf.row_sample import ROW_TOL, START_PASSES, fit_sample, is_tall
from sipower.nmf.sampled_items import can_sample_items, fit_sampled_items
from sipower.nmf.shared_newton import SharedNewton
from sipower.nmf.surplus import surplus_start
from sipower.problems.kl import KLBlock

__all__ = ["Auto", "AutoState"]

MAX_SHARED_RANK = 128  # largest K for which `SharedNewton`, with its (K, K) matrix, is used
STEPS_PER_ROUND = 2  # power steps per round
# Power steps end when they gain less per pass than this share of their average gain. On dense data
# Newton steps gain more for the same cost, so the share is larger. Tuned on KOS, docstrings, text,
# ratings and NIPS; digits, spectra, single cells and heavy-tailed counts.
MIN_RELATIVE_GAIN = {"sparse": 0.4, "dense": 1.0}
RACE_PASSES = 70.0  # passes for which each of two starts is fitted before their D is compared


@dataclass(frozen=True)
class AutoState(ExtrapolatedState):
    """The state of `Auto` in any phase.

    `phase` determines the next round: "sample", "rows", "race" or "plain" for a first round that
    makes a start, "power" for power steps, "second order" for extrapolated steps.
    """

    phase: str = "power"
    power_value: float = 0.0  # D before the first power step
    power_passes: float = 0.0  # passes before the first power step


@dataclass(frozen=True)
class Auto:
    """A solver that chooses its steps from the data and its own progress.

    Parameters
    ----------
    near
        Whether the start is near a solution; power steps are then skipped.
    surplus
        Whether a random start is compared with a start that had surplus components.
    sample
        Whether the first H comes from a sample of the rows in place of a random start; for rows on
        workers, of which only a sample should be sent.
    """

    needs: ClassVar = (Factorizable, RowSolvable)
    near: bool = False
    surplus: bool = False
    sample: bool = False

    def init(self, problem: Factorization, x0: Any, seed: int) -> AutoState | RowState:
        """Return the state at x0 = (W, H), or at a random start if x0 is None, with its D."""
        V = problem.V
        if not V.has_columns:
            return RowRounds(self.near).init(problem, x0, seed)
        start = Alternating(CCD()).init(problem, x0, seed)
        (W, H), value = start.x, problem.quick_value(start.x)
        is_plain = problem.terms.is_plain
        if x0 is None and (self.sample or (is_plain and is_tall(V))):
            phase = "rows"
        elif problem.terms.prior is not None and x0 is None:
            phase = "plain"
        elif self.near or not problem.terms.is_linear:
            phase = "second order"
        elif is_plain and can_sample_items(V, problem.rank):
            phase = "sample"
        else:
            phase = "race" if self.surplus and x0 is None else "power"
        return AutoState(W, H, W, H, phase, value, step=start.step, seed=seed, value=value)

    def advance(self, problem: Factorization, state: Any) -> Any:
        """Run one round: make a start, take a few power steps or one extrapolated step."""
        if isinstance(state, RowState):
            return RowRounds(self.near).advance(problem, state)
        if state.phase == "power":
            return self._power_steps(problem, state)
        if state.phase == "race":
            return self._race(problem, state)
        if state.phase == "plain":
            return self._fit_plain(problem, state)
        if state.phase != "second order":
            return self._start(problem, state)
        # A sparse item has few nonzeros and few components: sweeps cost little, and the shared
        # Hessian fits it badly.
        shared = problem.V.dense and problem.rank <= MAX_SHARED_RANK and problem.terms.is_linear
        return Extrapolated(SharedNewton() if shared else CCD(2, "active")).advance(problem, state)

    def _start(self, problem: Factorization, state: AutoState) -> AutoState:
        """Make a start from a sample; if it does not lower D, take power steps."""
        if state.phase == "rows":
            x, passes = start_from_rows(problem, state.seed), START_PASSES
        else:
            x, passes = fit_sampled_items(problem, state.x, state.seed)
        value, passes = problem.quick_value(x), state.passes + passes + problem.value_passes
        lower = value < state.value or not problem.terms.is_linear
        if lower:
            state = _move(state, x, value)
        if lower:
            return replace(state, phase="second order", passes=passes, round=state.round + 1)
        state = replace(state, power_value=state.value, power_passes=passes, passes=passes)
        return self._power_steps(problem, state)  # a round must make progress

    def _race(self, problem: Factorization, state: AutoState) -> AutoState:
        """Fit a random start and one with surplus components; keep the one with lower D."""
        x, cost = surplus_start(problem, state.seed)
        value, cost = problem.quick_value(x), cost + problem.value_passes
        random = replace(state, phase="power")
        surplus = replace(
            _move(random, x, value), power_value=value, power_passes=cost, passes=cost
        )
        runs = [self._fit(problem, start, RACE_PASSES) for start in (random, surplus)]
        passes = sum(run.passes for run in runs)
        winner = min(runs, key=lambda run: run.value)
        return replace(winner, round=state.round + 1, passes=passes)

    def _fit_plain(self, problem: Factorization, state: AutoState) -> AutoState:
        """Fit the problem without its prior counts, and make a start for them from the result."""
        plain = Factorization(problem.V, problem.rank, replace(problem.terms, prior=None))
        run = self._fit(plain, self.init(plain, None, state.seed), RACE_PASSES)
        x, passes = guide_start(problem, run.x)
        passes += run.passes + problem.value_passes
        state = _move(state, x, problem.quick_value(x))
        return replace(state, phase="second order", passes=passes, round=state.round + 1)

    def _fit(self, problem: Factorization, state: Any, passes: float) -> AutoState:
        while state.passes < passes and problem.is_finite(state.x):
            state = self.advance(problem, state)
        return state  # type: ignore[no-any-return]

    def _power_steps(self, problem: Factorization, state: AutoState) -> AutoState:
        new = take_power_steps(problem, state.x, STEPS_PER_ROUND, measure=True)
        x, value, last = new.x, new.value, state.value
        passes = new.passes + state.passes + problem.value_passes
        gain = (last - value) / (passes - state.passes)
        average = (state.power_value - value) / (passes - state.power_passes)
        least = MIN_RELATIVE_GAIN["dense" if problem.V.dense else "sparse"] * average
        state = replace(state, round=state.round + 1, passes=passes)
        if not value <= last + problem.rounding(last):  # D has risen or is NaN: undo
            return replace(state, phase="second order")
        state = _move(state, x, min(value, last))
        return replace(state, phase="power" if gain > least else "second order")


def start_from_rows(problem: Factorization, seed: int) -> Factors:
    """Return the H of a sample of the rows, and a W that is solved to ROW_TOL for it."""
    V, terms = problem.V, problem.terms
    H = fit_sample(V, problem.rank, seed, terms)
    if terms.prior is None:
        H[problem.column_mass == 0] = 0
    terms.insert_fixed(H)
    W = KLBlock(V, H, terms=terms.row_terms(H)).solution(ROW_TOL, exact=False)[0]
    return Factors(W, H)


def _move(state: AutoState, x: Factors, value: float) -> AutoState:
    """Return the state at the point x with the objective `value`, with no extrapolated W."""
    return replace(state, W=x.W, H=x.H, W_ahead=x.W, H_last=x.H, value=value)
