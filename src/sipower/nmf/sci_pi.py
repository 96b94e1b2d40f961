# SPDX-License-Identifier: BSD-3-Clause
"""F-SCI-PI: x ← normalised(x∘((1 − η) + ηG)²); η = 1 is SCI-PI. One pass, worth two of MU.

In h: the multiplicative update's factor squared, then every item rescaled to its mass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sipower import kernels
from sipower.kernels import Array
from sipower.nmf.rule import Rule, Turn, put
from sipower.problems.kl import KLBlock
from sipower.solvers.state import check_positive

__all__ = ["SciPiRule"]


@dataclass(frozen=True)
class SciPiRule(Rule):
    """Full-batch power step with step η."""

    step: float = 1.0

    def __post_init__(self) -> None:
        check_positive("step", self.step)

    def update(self, block: KLBlock, h: Array, turn: Turn) -> Array:
        """One damped power step."""
        if block.V.has_items:
            out = np.zeros_like(h)
            return block.V.for_items(kernels.power, block.basis, h, out, block.c, turn.step)
        bracket = np.maximum((1 - turn.step) + turn.step * block.multiplier(h), 0)
        return put(block, block.scale_to_mass(block.scale_to_mass(h) * bracket**2), h)
