# SPDX-License-Identifier: BSD-3-Clause
"""`Momentum`: the extrapolation parameter β of a state and its updates (Ang & Gillis 2019).

β grows after a round that was kept, up to a limit that grows more slowly. After a round that was
undone, β shrinks, its previous value becomes the limit, and the next round does not extrapolate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from sipower.kernels import Array
from sipower.loop.protocols import Progress

__all__ = ["Momentum", "extrapolate"]

# First value of β and the factors by which β and its limit change, from Ang & Gillis.
INITIAL, GROW, LIMIT_GROW, SHRINK = 0.5, 1.05, 1.01, 1 / 1.5
MIN_SHARE = 0.01  # an extrapolated value is at least this share of the original value


@dataclass(frozen=True, kw_only=True)
class Momentum(Progress):
    """The part of a state that determines how far the next round extrapolates."""

    momentum: float = INITIAL
    momentum_limit: float = 1.0
    plain: bool = False  # whether the next round does not extrapolate

    @property
    def beta(self) -> float:
        """The β of the next round."""
        return 0.0 if self.plain else self.momentum

    def accelerate(self) -> Self:
        """Return the state after a round that was kept."""
        if self.plain:
            return replace(self, plain=False)
        return replace(
            self,
            momentum=min(self.momentum_limit, GROW * self.momentum),
            momentum_limit=min(1.0, LIMIT_GROW * self.momentum_limit),
        )

    def slow_down(self) -> Self:
        """Return the state after a round that was undone."""
        if self.plain:
            return self
        momentum, limit = self.momentum * SHRINK, self.momentum
        return replace(self, momentum=momentum, momentum_limit=limit, plain=True)


def extrapolate(new: Array, last: Array, beta: float) -> Array:
    """Return new + β(new − last), but at least MIN_SHARE times new.

    The lower bound avoids exact zeros, which could make D infinite.
    """
    if beta == 0:
        return new
    ahead = new + new.dtype.type(beta) * (new - last)
    return np.asarray(np.maximum(ahead, new.dtype.type(MIN_SHARE) * new, out=ahead))
