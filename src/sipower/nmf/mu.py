# SPDX-License-Identifier: BSD-3-Clause
"""`MU`: the multiplicative updates h ← h∘G of Lee & Seung (2001).

An update is a step of the EM algorithm. It never raises the objective and costs one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from sipower import kernels
from sipower.kernels import Array
from sipower.nmf.rule import HalfStep, Rule, floor_factor
from sipower.problems.item_problem import Float, Terms
from sipower.problems.kl import KLBlock

__all__ = ["MU", "minimise_bound"]


@dataclass(frozen=True)
class MU(Rule):
    """Multiplicative updates: h is scaled to its mass and then multiplied by G, elementwise."""

    monotone: ClassVar[bool] = True
    terms: ClassVar[Literal["linear", "prior", "all"]] = "all"
    step: float = field(default=1.0, init=False)

    def update(self, block: KLBlock, h: Array, half_step: HalfStep) -> Array:
        """Return h after one multiplicative update."""
        if block.V.has_items:
            return block.V.for_items(kernels.mu, block.basis, h, np.zeros_like(h), block.c)
        if block.is_scaled:
            return floor_factor(block, block.scale_to_mass(h) * block.multiplier(h), h)
        terms, h = block.item_terms._replace(d=block.d), block.limit_to_mass(h)
        return floor_factor(block, minimise_bound(terms, h * block.ratio_sums(h)), h)


def minimise_bound(terms: Terms, share: Float) -> Float:
    """Return the root of r x² + d x = h∘g + a, which minimises the bound of MU, (items, K).

    Parameters
    ----------
    terms
        The terms d, r and a of the items.
    share
        h∘g with the ratio sums g of the data, (items, K).
    """
    d: Any = terms.d
    if terms.prior is not None:
        share = share + terms.prior
    twice = d + np.sqrt(d**2 + 4 * np.reshape(terms.ridge, (-1, 1)) * share)
    return np.asarray(np.divide(2 * share, twice, out=np.zeros(share.shape), where=twice > 0))
