# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method on every item: the best step of the quadratic model over h ≥ 0, made safe.

    p = argmin r·p + ½ p·Hp over h + p ≥ 0,   r = d − Bᵀ(v ⊘ z),   H = Bᵀ diag(v ⊘ z²) B,   z = Bh

over the coordinates that are positive or pushed upwards. −v log z is self-concordant along p: with
s = −r·p, κ = p·Hp and m = max_i −(b_i·p)/z_i the length s/(κ + ms) minimises an upper bound of the
objective, so every step descends, without a line search. Few coordinates are positive on sparse
data, and H is formed for those alone, on items of more than 100 K terms from every so-manieth term
with the true diagonal (κ is always of all terms). Counted as 2 + K/4 passes, what all of H costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sipower import kernels
from sipower.kernels import Array
from sipower.nmf.rule import Rule, Turn
from sipower.problems.kl import KLBlock

__all__ = ["Newton"]

LARGEST = 2048  # components of a model


@dataclass(frozen=True)
class Newton(Rule):
    """Newton steps on every item.

    Parameters
    ----------
    steps
        Steps in one update.
    """

    monotone: ClassVar[bool] = True
    needs_items: ClassVar[bool] = True
    step: float = field(default=1.0, init=False)
    steps: int = 1

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}, expected at least 1.")

    def update(self, block: KLBlock, h: Array, turn: Turn) -> Array:
        """Steps on every item."""
        V, rank = block.V, block.shape[1]
        if rank > LARGEST:
            raise ValueError(f"A Hessian of {rank} components is too large: use solver='ccd'.")
        return V.for_items(kernels.newton, block.basis, h, np.zeros_like(h), block.c, self.steps)

    def passes(self, block: KLBlock, turn: Turn) -> float:
        """2 + K/4 a step."""
        return self.steps * (2 + block.shape[1] / 4)
