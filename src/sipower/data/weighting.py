# SPDX-License-Identifier: BSD-3-Clause
"""`apply_weights`: multiply data by weights of samples, of features and of single entries."""

from __future__ import annotations

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import check_total
from sipower.data.weights import Weights

__all__ = ["Weights", "apply_weights"]


def apply_weights(V: RowBlocks, weights: Weights) -> RowBlocks:
    """Return ρ_i φ_j ω_ij V_ij, in memory or on disk as V is.

    Entries that become 0 are not stored, unless V is dense. Data on disk are multiplied whenever
    they are read; they are read once at the start for their sums, in each orientation.
    """
    if weights.rows is None and weights.columns is None and weights.entries is None:
        return V
    _check(weights, V.shape)
    weighted = V.weighted(weights)
    check_total(weighted.total, weighted.dtype)
    return weighted


def _check(weights: Weights, shape: tuple[int, int]) -> None:
    largest = 1.0
    for name, expected in (("rows", shape[:1]), ("columns", shape[1:]), ("entries", shape)):
        part = getattr(weights, name)
        if part is None:
            continue
        if part.shape != expected:
            raise ValueError(f"`weights.{name}` must have shape {expected}, got {part.shape}.")
        values = part.data if name == "entries" else part
        if not (values.min(initial=0) >= 0 and values.max(initial=0) < np.inf):
            raise ValueError(f"`weights.{name}` must be non-negative and finite.")
        largest *= float(values.max(initial=1))
    if largest == np.inf:
        raise ValueError("The products of `weights` must be finite: rescale them.")
