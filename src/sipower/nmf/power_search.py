# SPDX-License-Identifier: BSD-3-Clause
"""`PowerSearch`: power steps with an exact line search for every item.

    p = normalised(x∘G^γ) − x,   x ← x + t p,   t = argmax over 0 < t ≤ limit of f(x + t p)

x∘G^γ is MU for γ = 1 and SCI-PI for γ = 2. Long steps pay off where the curvature is small, but no
fixed γ > 1 is stable on all data (`sipower.theory.kl`). Here γ is large, and every item shortens or
lengthens its own step: along p the objective Σ_i v_i log(1 + t e_i), e = Bp ⊘ Bx, is
concave in one variable, and its maximum costs one or two divisions for each nonzero. So every step
descends, and no step size has to be chosen. Where the searched step is short (t < 0.2), the item
tries γ = 2 as well and takes the step with the larger predicted gain, t times the slope at x. An
update counts as 2 passes: one for the gradient, half a pass for Bp and half a pass for the search.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sipower import kernels
from sipower.kernels import Array
from sipower.nmf.alternating import Alternating, NMFState
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.rule import HalfStep, Rule
from sipower.problems.kl import KLBlock

__all__ = ["PowerSearch", "take_power_steps"]


@dataclass(frozen=True)
class PowerSearch(Rule):
    """Power steps with an exact line search.

    Parameters
    ----------
    exponent
        The exponent γ, an integer from 1 to 64.
    """

    monotone: ClassVar[bool] = True
    needs_items: ClassVar[bool] = True
    measures_divergence: ClassVar[bool] = True
    step: float = field(default=1.0, init=False)
    exponent: int = 8

    def __post_init__(self) -> None:
        if not 1 <= self.exponent <= 64:
            raise ValueError(f"`exponent` must be between 1 and 64, got {self.exponent}.")

    def update(self, block: KLBlock, h: Array, half_step: HalfStep) -> Array:
        """Return h after one power step with a line search."""
        out = np.zeros_like(h)
        kernel = half_step.with_divergences(kernels.power_search)
        return block.V.for_items(kernel, block.basis, h, out, block.c, self.exponent)

    def passes(self, block: KLBlock, half_step: HalfStep) -> float:
        """Return the cost of an update: 2 passes."""
        return 2.0


def take_power_steps(
    problem: Factorization, x: Factors, rounds: int, *, measure: bool = False
) -> NMFState:
    """Take `rounds` rounds of power steps from x; return the state.

    If `measure` is true, it has the quick value of the problem; see `Alternating.advance`.
    """
    power = Alternating(PowerSearch())
    state = NMFState(x.W, x.H, step=1.0, seed=0)
    for number in range(1, rounds + 1):
        state = power.advance(problem, state, measure=measure and number == rounds)
    return state
