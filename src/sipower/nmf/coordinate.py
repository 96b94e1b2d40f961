# SPDX-License-Identifier: BSD-3-Clause
"""Coordinate descent with a Newton step per coordinate (Hsieh & Dhillon 2011): CCD and SCD.

    h_k ← max(0, h_k − t (d_k − Σ_i b_ik v_i/z_i) / Σ_i v_i b_ik²/z_i²)

for one coordinate k after another, in cyclic order (CCD) or at random (SCD). The symbols are those
of `sipower.problems.kl`, with z = Bh. If h_k increases, the full Newton step (t = 1) stops short of
the minimum, so it is safe. If h_k decreases and the full
step has length δ, t = 1/(1 + mδ) with m = max_i b_ik/z_i minimises an upper bound of the objective.
So no step raises the objective and no z reaches zero. Only nonzeros are visited. A sweep over all
coordinates counts as 1.5 passes.

With the order "active", one gradient per update finds the coordinates that are positive or would
increase, and the sweeps visit only those: on text, fewer than half of all coordinates. A coordinate
that would leave zero only after the steps of other coordinates has to wait for the next update.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from sipower import kernels
from sipower.kernels import Array
from sipower.nmf.rule import HalfStep, Rule
from sipower.problems.kl import KLBlock

__all__ = ["CCD", "SCD"]

ORDERS = ("cyclic", "active", "random")


@dataclass(frozen=True)
class CCD(Rule):
    """Cyclic coordinate descent.

    Parameters
    ----------
    sweeps
        Number of sweeps over the coordinates in one update.
    order
        Order of the coordinates: "cyclic" (all in turn), "active" (in turn, but without zeros that
        would stay zero) or "random".
    """

    monotone: ClassVar[bool] = True
    terms: ClassVar[Literal["linear", "prior", "all"]] = "all"
    needs_items: ClassVar[bool] = True
    measures_divergence: ClassVar[bool] = True
    step: float = field(default=1.0, init=False)
    sweeps: int = 1
    order: Literal["cyclic", "active", "random"] = "cyclic"

    def __post_init__(self) -> None:
        if self.sweeps < 1:
            raise ValueError(f"`sweeps` must be a positive integer, got {self.sweeps}.")
        if self.order not in ORDERS:
            raise ValueError(f"`order` must be one of {', '.join(ORDERS)}, got {self.order!r}.")

    def update(self, block: KLBlock, h: Array, half_step: HalfStep) -> Array:
        """Sweep over the coordinates of every item."""
        V, draw = block.V, half_step.draw()
        out, options = np.zeros_like(h), (self.sweeps, self.order, draw.key, draw.place)
        kernel = half_step.with_divergences(kernels.coordinate)
        return V.for_items(kernel, block.basis, h, out, block.c, *options)

    def passes(self, block: KLBlock, half_step: HalfStep) -> float:
        """Return the cost of an update: 1.5 passes per sweep."""
        return 1.5 * self.sweeps


@dataclass(frozen=True)
class SCD(CCD):
    """Stochastic coordinate descent: K coordinates per sweep, drawn uniformly."""

    order: Literal["cyclic", "active", "random"] = "random"
