# SPDX-License-Identifier: BSD-3-Clause
"""`SciPi`: scale invariant power iteration x ← ∇f(x)/‖∇f(x)‖ (Kim, Kim, Klabjan 2019).

With step size η a round is x ← normalised((1 − η)x + η ∇f(x)/λ), where λ = x·∇f(x); η = 1 is SCI-PI
itself and η < 1 is damped. A round costs one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sipower.loop.protocols import ScaleInvariant
from sipower.problems.base import Point, Problem
from sipower.solvers.state import PointState, check_positive, initial_state


@dataclass(frozen=True)
class SciPi:
    """The scale invariant power iteration, with a fixed step size and no guard.

    Parameters
    ----------
    step
        Step size η; 1 is SCI-PI itself.
    """

    needs: ClassVar = (ScaleInvariant,)
    step: float = 1.0

    def __post_init__(self) -> None:
        check_positive("step", self.step)

    def init(self, problem: Problem, x0: Point | None, seed: int) -> PointState:
        """Return the state before the first round."""
        return initial_state(problem, x0, seed, self.step)

    def advance(self, problem: Problem, state: PointState) -> PointState:
        """Take one power step."""
        x, eta = state.x, state.step
        if problem.sequential:
            x_new = self._sweep(problem, x, eta)
        else:
            g = problem.gradient(x)
            x_new = problem.retract((1 - eta) * x + eta * g / problem.scale(x, g), x, 0.0)
        return replace(state, x=x_new, round=state.round + 1, passes=state.passes + 1)

    def _sweep(self, problem: Problem, x: Point, eta: float) -> Point:
        """Take the step for one item after another, using the new values of the earlier items."""
        x = x.copy()
        for i in range(len(x)):
            g = problem.item_gradient(x, i)
            step = (1 - eta) * x[i] + eta * g / (abs(x[i] @ g) or 1.0)
            x[i] = step / (np.linalg.norm(step) or 1.0)
        return x

    def largest_step(self, problem: Problem) -> float:
        """Return the largest step size that a guard may use."""
        return self.step

    def safe(self) -> SciPi:
        """Return the solver that a guard falls back to: this one, as a smaller step suffices."""
        return self
