# SPDX-License-Identifier: BSD-3-Clause
"""`Newton`: Newton's method on every item, with a step length that guarantees descent.

    p = argmin r·p + ½ p·Hp over h + p ≥ 0,   r = d − Bᵀ(v ⊘ z),   H = Bᵀ diag(v ⊘ z²) B,   z = Bh

over the coordinates that are positive or would increase. An exact line search finds the length of
the step, so every step descends. Where rounding errors hide the slope, the length is s/(κ + ms)
with s = −r·p, κ = p·Hp and m = max_i −(b_i·p)/z_i instead, which minimises an upper bound of the
objective, because −v log z is self-concordant along p. H is formed only for the coordinates named
above, which are few on sparse data. On items with at least 100 K nonzeros H is formed from evenly
spaced nonzeros, but with the exact diagonal; κ and the search always use all nonzeros. A step
counts as 2 + K/4 passes, the cost of the full H. The other symbols are those of
`sipower.problems.kl`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from sipower import kernels
from sipower.kernels import Array
from sipower.nmf.rule import HalfStep, Rule, lift_free_zeros
from sipower.problems.kl import KLBlock

__all__ = ["Newton", "check_rank"]

MAX_COMPONENTS = 2048  # largest K for which a Hessian is formed, as in cpp/kernels.hpp


@dataclass(frozen=True)
class Newton(Rule):
    """Newton steps on every item.

    Parameters
    ----------
    steps
        Number of Newton steps in one update.
    """

    monotone: ClassVar[bool] = True
    terms: ClassVar[Literal["linear", "prior", "all"]] = "all"
    needs_items: ClassVar[bool] = True
    step: float = field(default=1.0, init=False)
    steps: int = 1

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"`steps` must be a positive integer, got {self.steps}.")

    def update(self, block: KLBlock, h: Array, half_step: HalfStep) -> Array:
        """Return h after Newton steps on every item."""
        check_rank(block.shape[1])
        h, out = lift_free_zeros(block, h), np.zeros_like(h)
        return block.V.for_items(kernels.newton, block.basis, h, out, block.c, self.steps)

    def passes(self, block: KLBlock, half_step: HalfStep) -> float:
        """Return the cost of an update: 2 + K/4 passes per Newton step."""
        return self.steps * (2 + block.shape[1] / 4)


def check_rank(rank: int) -> None:
    """Check that K = `rank` is not too large for Hessians of shape (K, K)."""
    if rank > MAX_COMPONENTS:
        raise ValueError(
            f"Newton takes at most {MAX_COMPONENTS} components, got {rank}: use solver='ccd'."
        )
