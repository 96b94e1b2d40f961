# SPDX-License-Identifier: BSD-3-Clause
"""What decides how a fit ended: whether the verifier agrees with it, and whether it has stalled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.loop.trace import Record
from sipower.verification import Verification

__all__ = ["agrees", "stall_rounding"]

ALLOWED_ERROR = 1e-9  # of divergence and gap, relative to the sum of the data


def agrees(verification: Verification, divergence: float, gap: float, V: RowBlocks) -> bool:
    """Return whether the verifier confirms the divergence and the gap of the solver.

    Both are sums of rounded terms, and the factors that are verified have been scaled in the
    working type, so eps is that of this type. The solver has the divergence from the objective
    less its other terms, which may be much larger. The gap of the batch effects is left out,
    because it is another bound if their means are fixed.
    """
    error = ALLOWED_ERROR + 8 * float(np.finfo(V.dtype).eps)
    difference = abs(verification.divergence - divergence)
    excess = verification.gap_W + verification.gap_H - gap
    allowed = error + verification.rounding
    return bool(difference <= allowed * (V.total + abs(divergence)) and excess <= allowed)


def stall_rounding(V: RowBlocks) -> Callable[[Record], float]:
    """Return the function for the rounding error of the objective of a record.

    The objective is a sum in float64, and a relative error of eps in the factors, in the working
    type, changes it by at most eps times the gap.
    """
    eps, eps_V = float(np.finfo(np.float64).eps), float(np.finfo(V.dtype).eps)

    def rounding(record: Any) -> float:
        terms = 64 * eps * (V.total + abs(record.objective))
        return float(terms + eps_V * record.gap * V.total)

    return rounding
