# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's penalties of W (n, K) and H (K, m), in the scale of the weighted data.

    α_W m [ρ ‖W‖₁ + ½(1 − ρ) ‖W‖²] + α_H n [ρ ‖H‖₁ + ½(1 − ρ) ‖H‖²],   ρ = l1_ratio

Weights and size factors scale the factors (`Prepared`), W' = diag(s) W, so a row of W' has the L1
penalty divided by s_i and the ridge divided by s_i².
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sipower.estimators.prepared import Prepared

__all__ = ["Penalties", "has_penalties", "penalties"]


class Penalties(NamedTuple):
    """The penalties of W' and H', each a number or one for each item."""

    l1: tuple[Any, Any]
    ridge: tuple[Any, Any]


def has_penalties(estimator: Any) -> bool:
    """Return whether the parameters penalise W or H."""
    return bool(estimator.alpha_W) or estimator.alpha_H not in ("same", 0)


def penalties(estimator: Any, prepared: Prepared) -> Penalties:
    """Return the penalties of the parameters `alpha_W`, `alpha_H` and `l1_ratio`."""
    n, m = prepared.V.shape
    alpha_W, alpha_H, share = estimator.alpha_W, estimator.alpha_H, estimator.l1_ratio
    alphas = alpha_W * m, (alpha_W if alpha_H == "same" else alpha_H) * n
    inverses = _inverse(prepared.row_scale), _inverse(prepared.column_scale)
    sides = list(zip(alphas, inverses, strict=True))
    l1_W, l1_H = (share * alpha * inverse for alpha, inverse in sides)
    ridge_W, ridge_H = ((1 - share) * alpha * inverse**2 for alpha, inverse in sides)
    return Penalties((l1_W, l1_H), (ridge_W, ridge_H))


def _inverse(scale: Any) -> Any:
    """Return 1/scale, zero where the scale is zero; 1 without a scale."""
    if scale is None:
        return 1.0
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
