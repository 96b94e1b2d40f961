# SPDX-License-Identifier: BSD-3-Clause
"""`Guarded`: a round that made the objective worse is undone; a shorter, safe step follows.

Worse means by more than rounding explains, 8 eps (ΣV + D) for KL. A loss within rounding is taken
but damps the step, down to ½, where SCI-PI cannot cycle: else a cycle of tiny rises and falls would
pass for progress. A round that gained lets the step grow again, up to the solver's `largest_step`.
The objective is evaluated after every round and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from sipower.loop.protocols import Comparable

__all__ = ["Guarded"]

HALF = 0.5


@dataclass(frozen=True)
class Guarded:
    """Make any solver monotone.

    Parameters
    ----------
    solver
        Solver to guard; its ``safe()`` is the solver that follows a failed round.
    shrink, grow
        Factors of the step after a failed and after a successful round.
    """

    solver: Any
    shrink: float = 0.5
    grow: float = 1.1

    @property
    def needs(self) -> tuple[type, ...]:
        """What the guard and its solver need of a problem."""
        return Comparable, *getattr(self.solver, "needs", ())

    def init(self, problem: Any, x0: Any, seed: int) -> Any:
        """State before the first round, its objective known."""
        state = self.solver.init(problem, x0, seed)
        return replace(state, value=problem.quick_value(state.x))

    def advance(self, problem: Any, state: Any) -> Any:
        """One round that never makes the objective worse."""
        if math.isnan(state.value):  # a state that an unguarded run has left
            state = replace(state, value=problem.quick_value(state.x))
        noise = problem.rounding(state.value)
        tried = self._tried(problem, self.solver, state)
        gain, step = self._gain(problem, state, tried), state.step * self.shrink
        if gain > 0:
            largest = max(self.solver.largest_step(problem), state.step)
            return replace(tried, step=min(state.step * self.grow, largest))
        if gain >= -noise:
            return replace(tried, step=max(step, min(state.step, HALF)))
        careful = replace(state, step=min(step, 1.0), passes=tried.passes)
        safe = replace(self._tried(problem, self.solver.safe(), careful), step=step)
        if self._gain(problem, state, safe) >= -noise:
            return safe
        return replace(state, step=step, round=safe.round, passes=safe.passes)

    def _tried(self, problem: Any, solver: Any, state: Any) -> Any:
        new = solver.advance(problem, state)
        value = problem.quick_value(new.x) if problem.is_finite(new.x) else math.nan
        return replace(new, value=value, passes=new.passes + problem.value_passes)

    def _gain(self, problem: Any, old: Any, new: Any) -> float:
        if not math.isfinite(new.value):
            return -math.inf
        return float(new.value - old.value if problem.maximise else old.value - new.value)
