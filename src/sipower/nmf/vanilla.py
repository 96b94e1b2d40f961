# SPDX-License-Identifier: BSD-3-Clause
"""`Vanilla`: the stochastic power step without variance reduction.

The multiplier G of the power step is replaced by its estimate G_S from a batch. A batch is a random
matrix V_S that is scaled so that E[V_S] = V, hence E[G_S] = G. The rule takes power steps on such
matrices: h ← h∘((1 − η) + ηG_S)², rescaled to its mass. It stalls at the noise level of the
batches. One update costs m s/n passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from sipower.data.sampling import Scheme
from sipower.kernels import Array
from sipower.nmf.rule import HalfStep, Rule, default_scheme
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.base import Sampling
from sipower.problems.kl import KLBlock
from sipower.solvers.s_sci_pi import check_epoch
from sipower.solvers.state import check_positive

__all__ = ["Vanilla"]


@dataclass(frozen=True)
class Vanilla(Rule):
    """Power steps on random batches, without variance reduction.

    Parameters
    ----------
    step
        Step size η.
    batch
        Share s/n of the data in a batch.
    epoch
        Number m of steps in one update, each on a new batch.
    scheme
        How batches are drawn; None: "vectors" for dense data, "stratified" for sparse data.
    replace
        Whether batches are drawn with replacement.
    """

    step: float = 0.1
    batch: float = 0.1
    epoch: int = 10
    scheme: Scheme | None = None
    replace: bool = False

    def __post_init__(self) -> None:
        check_positive("step", self.step)
        check_epoch(self.batch, self.epoch, self.scheme or "vectors")

    def update(self, block: KLBlock, h: Array, half_step: HalfStep) -> Array:
        """Return h after m power steps, each on a new batch."""
        scheme = self.scheme or default_scheme(block.V)
        sampling = Sampling(self.batch, scheme, self.replace)
        power = SciPiRule(half_step.step)
        for t in range(self.epoch):
            part = block.batch(sampling, half_step.draw(inner=t))
            h = power.update(part, h, half_step)
        return h

    def passes(self, block: KLBlock, half_step: HalfStep) -> float:
        """Return the cost of an update: m s/n passes."""
        return self.epoch * self.batch
