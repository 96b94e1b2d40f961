# SPDX-License-Identifier: BSD-3-Clause
"""`Guarded`: undo a round that made the objective worse, and take a shorter, safe step instead.

Worse means worse by more than the rounding error, which is 8 eps (ΣV + D) for KL. A smaller
deterioration is accepted, but the step size shrinks, to no less than ½. With larger steps SCI-PI
may cycle, and a cycle of tiny rises and falls could look like progress; at ½ it cannot cycle. After
a gain the step size grows again, up to the `largest_step` of the solver. The objective is evaluated
after every round, and the cost of these evaluations is included in the passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from sipower.loop.protocols import Comparable

MIN_DAMPED_STEP = 0.5  # a deterioration within rounding reduces the step to no less than this


@dataclass(frozen=True)
class Guarded:
    """A wrapper that makes any solver monotone.

    Parameters
    ----------
    solver
        Solver to guard; its ``safe()`` returns the solver that takes the step after a failed round.
    shrink, grow
        Factors by which the step size is multiplied after a failed and after a successful round.
    """

    solver: Any
    shrink: float = 0.5
    grow: float = 1.1

    @property
    def needs(self) -> tuple[type, ...]:
        """The protocols that a problem must implement for the guard and its solver."""
        return Comparable, *getattr(self.solver, "needs", ())

    def init(self, problem: Any, x0: Any, seed: int) -> Any:
        """Return the state before the first round, including the objective."""
        state = self.solver.init(problem, x0, seed)
        return replace(state, value=problem.quick_value(state.x))

    def advance(self, problem: Any, state: Any) -> Any:
        """Run one round that never makes the objective worse."""
        if math.isnan(state.value):  # the state comes from a run without a guard
            state = replace(state, value=problem.quick_value(state.x))
        noise = problem.rounding(state.value)
        trial = self._try_round(problem, self.solver, state)
        gain, step = self._gain(problem, state, trial), state.step * self.shrink
        if gain > 0:
            largest = max(self.solver.largest_step(problem), state.step)
            return replace(trial, step=min(state.step * self.grow, largest))
        if gain >= -noise:
            return replace(trial, step=max(step, min(state.step, MIN_DAMPED_STEP)))
        careful = replace(state, step=min(step, 1.0), passes=trial.passes)
        safe = replace(self._try_round(problem, self.solver.safe(), careful), step=step)
        if self._gain(problem, state, safe) >= -noise:
            return safe
        return replace(state, step=step, round=safe.round, passes=safe.passes)

    def _try_round(self, problem: Any, solver: Any, state: Any) -> Any:
        new = solver.advance(problem, state)
        value = problem.quick_value(new.x) if problem.is_finite(new.x) else math.nan
        return replace(new, value=value, passes=new.passes + problem.value_passes)

    def _gain(self, problem: Any, old: Any, new: Any) -> float:
        if not math.isfinite(new.value):
            return -math.inf
        return float(new.value - old.value if problem.maximise else old.value - new.value)
