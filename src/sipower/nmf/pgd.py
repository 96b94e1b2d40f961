# SPDX-License-Identifier: BSD-3-Clause
"""`PGD`: projected gradient descent (Lin 2007), h ← max(0, h − α(d − g)), g_k = Σ_i b_ik v_i/z_i.

Each item has its own step size α. It starts at the minimiser of the second-order model along the
gradient and is halved until the objective falls by a hundredth of what the slope predicts (Armijo).
With α_k = h_k/d_k the same formula is the multiplicative update; with α_k = 1/Σ_i v_i b_ik²/z_i² on
one coordinate it is CCD's step. An update counts as 2.5 passes: gradient, curvature and about two
trial points. The symbols are those of `sipower.problems.kl`, with z = Bh.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sipower import kernels
from sipower.kernels import Array
from sipower.nmf.rule import HalfStep, Rule
from sipower.problems.kl import KLBlock

__all__ = ["PGD", "projected_step"]


@dataclass(frozen=True)
class PGD(Rule):
    """Projected gradient descent with one step size per item and backtracking."""

    monotone: ClassVar[bool] = True
    needs_items: ClassVar[bool] = True
    step: float = field(default=1.0, init=False)

    def update(self, block: KLBlock, h: Array, half_step: HalfStep) -> Array:
        """Return h after one step of every item."""
        V = block.V
        return V.for_items(kernels.projected_gradient, block.basis, h, np.zeros_like(h), block.c)

    def passes(self, block: KLBlock, half_step: HalfStep) -> float:
        """Return the cost of an update: 2.5 passes."""
        return 2.5


def projected_step(block: KLBlock, h: Array, alpha: Array | float) -> Array:
    """Return max(0, h − α(d − g)), of which MU and CCD are special cases.

    `alpha` is one step size for all items, or an array with one step size per item, (items, 1), or
    per coordinate, (items, K).
    """
    return np.maximum(h - alpha * (block.d - block.ratio_sums(h)), 0)
