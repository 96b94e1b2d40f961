# SPDX-License-Identifier: BSD-3-Clause
"""`auto`: the rule that suits the data, and the phase of the run.

Far from the optimum power steps make more of a pass, near it coordinate descent does (on sparse
data by an order of magnitude). So the run begins with SCI-PI rounds on sparse data, with S-SCI-PI
epochs on dense data, and goes on with CCD.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sipower.kernels import Array
from sipower.matrix import Columns, Matrix
from sipower.nmf.coordinate import CCD
from sipower.nmf.rule import Rule, Turn
from sipower.nmf.s_sci_pi import SSciPiRule
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.kl import KLBlock

__all__ = ["Auto"]

POWER_ROUNDS = 10  # on sparse data, before coordinate descent takes over
EPOCHS = 30  # on dense data


@dataclass(frozen=True)
class Auto(Rule):
    """Power steps, stochastic on dense data, then CCD."""

    step: float = field(default=1.0, init=False)

    def update(self, block: KLBlock, h: Array, turn: Turn) -> Array:
        """One update by the rule of the phase."""
        return self._rule(block.V, turn.round).update(block, h, turn)

    def _rule(self, V: Matrix | Columns, at_round: int) -> Rule:
        if isinstance(V, Matrix) and at_round >= (EPOCHS if V.dense else POWER_ROUNDS):
            return CCD()
        return SSciPiRule() if V.dense else SciPiRule()

    def largest_step(self, V: Matrix | Columns) -> float:
        """As the rule of dense data has it."""
        return SSciPiRule().largest_step(V)

    def passes(self, block: KLBlock, turn: Turn) -> float:
        """What the rule of the phase costs."""
        return self._rule(block.V, turn.round).passes(block, turn)
