# SPDX-License-Identifier: BSD-3-Clause
"""`auto`: the rule that suits the data, and the phase of the run.

Far from the optimum power steps make more of a pass, near it coordinate descent does (on sparse
data by an order of magnitude). So: sparse data get SCI-PI rounds and then CCD; dense data get
S-SCI-PI epochs.
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


@dataclass(frozen=True)
class Auto(Rule):
    """SCI-PI then CCD on sparse data, S-SCI-PI on dense data."""

    step: float = field(default=1.0, init=False)

    def update(self, block: KLBlock, h: Array, turn: Turn) -> Array:
        """One update by the rule of the phase."""
        return self._rule(block.V, turn.round).update(block, h, turn)

    def _rule(self, V: Matrix | Columns, at_round: int) -> Rule:
        if V.dense:
            return SSciPiRule()
        if isinstance(V, Columns) or at_round < POWER_ROUNDS:
            return SciPiRule()
        return CCD()

    def largest_step(self, V: Matrix | Columns) -> float:
        """As the rule of dense data has it."""
        return SSciPiRule().largest_step(V)

    def passes(self, block: KLBlock, turn: Turn) -> float:
        """What the rule of the phase costs."""
        return self._rule(block.V, turn.round).passes(block, turn)
