# SPDX-License-Identifier: BSD-3-Clause
"""The paper's stochastic rule without variance reduction: x ← normalised(x∘((1 − η) + ηG_S)²).

In its correct scaling, with E[G_S] = G: V_S is a random matrix with E[V_S] = V, and the rule is the
power step on it. It stalls at the noise of the batches. One update costs m s/n passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from sipower.data.sampling import Scheme
from sipower.kernels import Array
from sipower.nmf.rule import Rule, Turn, natural_scheme
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.base import Sampling
from sipower.problems.kl import KLBlock
from sipower.solvers.s_sci_pi import check_epoch
from sipower.solvers.state import check_positive

__all__ = ["Vanilla"]


@dataclass(frozen=True)
class Vanilla(Rule):
    """m power steps, each on a fresh batch."""

    step: float = 0.1
    batch: float = 0.1
    epoch: int = 10
    scheme: Scheme | None = None
    replace: bool = False

    def __post_init__(self) -> None:
        check_positive("step", self.step)
        check_epoch(self.batch, self.epoch, self.scheme or "vectors")

    def update(self, block: KLBlock, h: Array, turn: Turn) -> Array:
        """m steps on m batches."""
        scheme = self.scheme or natural_scheme(block.V)
        sampling = Sampling(self.batch, scheme, self.replace)
        power = SciPiRule(turn.step)
        for t in range(self.epoch):
            part = block.batch(sampling, turn.draw(inner=t))
            h = power.update(part, h, turn)
        return h

    def passes(self, block: KLBlock, turn: Turn) -> float:
        """m s/n."""
        return self.epoch * self.batch
