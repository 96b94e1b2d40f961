# SPDX-License-Identifier: BSD-3-Clause
"""What decides how a fit ended, and whether data and factors are those of a fit.

A fit is verified if the verifier agrees with it, and has stalled if its objective falls no longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array
from sipower.loop.trace import Record
from sipower.problems.kl import KLBlock
from sipower.verification import Verification

__all__ = [
    "agrees",
    "divergence_remark",
    "fitted_divergence",
    "is_fitted_W",
    "is_same_divergence",
    "stall_rounding",
    "sums_remark",
]

ALLOWED_ERROR = 1e-9  # of divergence and gap, relative to the sum of the data
SAME_DIVERGENCE = 1e-5  # of what was fitted, from factors that were stored in float32
SAME_SUMS = 1e-3  # of the weights of the components
MIN_DIFFERENCE = 0.05  # of the sums of the rows of W H from those of V, which is worth a remark


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


# ---- whether data and factors belong together ----------------------------------------------------


def is_fitted_W(model: Any, W: Array) -> bool:  # noqa: N802 - W is the name of the factor
    """Return whether W has the column sums of the W that the fit of a model has returned.

    True if the model does not know them.
    """
    sums = getattr(model, "_weight_sums", None)
    if sums is None or np.shape(W)[1:] != sums.shape:
        return True
    mass = np.asarray(model.components_).sum(axis=1, dtype=np.float64)
    given = np.asarray(W).sum(axis=0, dtype=np.float64)
    return bool(np.abs(given - sums) @ mass <= SAME_SUMS * (sums @ mass))


def fitted_divergence(model: Any) -> float | None:
    """Return the divergence of a fitted model if it is that of V from W H, else None.

    With weights, missing values, size factors or batches it is not.
    """
    is_plain = not getattr(model, "_observed", None) and not hasattr(model, "batch_effects_")
    is_plain = is_plain and getattr(model, "missing", None) is None
    return getattr(model, "kl_divergence_", None) if is_plain else None


def divergence_remark(V: RowBlocks, W: Array, H: Array, fitted: float | None) -> str | None:
    """Return a sentence if D(V ‖ W H) is not the divergence that a fit has stored, or None."""
    if fitted is None or hasattr(V, "client"):  # the rows are on workers
        return None
    factors = [np.ascontiguousarray(part, V.dtype) for part in (np.transpose(H), W)]
    found = KLBlock(V, factors[0]).divergence(factors[1])
    if is_same_divergence(found, fitted, V):
        return None
    return (
        f"`V`, W and H are not those of one fit: D(V ‖ W H) is {found:.6g}, that of the fit is "
        f"{fitted:.6g}. Use the samples and features of the fit, in its order, and its W."
    )


def is_same_divergence(found: float, fitted: float, V: RowBlocks) -> bool:
    """Return whether two divergences are those of the same data and factors."""
    return abs(found - fitted) <= SAME_DIVERGENCE * (V.total + abs(fitted))


def sums_remark(V: RowBlocks, W: Array, H: Array) -> str | None:
    """Return a sentence if the rows of W H do not sum to those of V, or None."""
    sums = np.asarray(W, np.float64) @ np.asarray(H).sum(axis=1, dtype=np.float64)
    difference = np.abs(sums - V.mass)
    if difference.sum() <= MIN_DIFFERENCE * V.total:
        return None
    at = int(difference.argmax())
    return (
        f"W H does not have the totals of `V`: it sums to {sums[at]:.6g} in sample {at} (counted "
        f"from 0), where `V` has {V.mass[at]:.6g}. Either W is of other data, or the fit had "
        "another loss than KL; sizes and shares are those of W H."
    )
