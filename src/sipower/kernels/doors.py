# SPDX-License-Identifier: BSD-3-Clause
"""Typed doors to the compiled kernels.

A kernel is serial over a range of items and releases the GIL; `threads` runs it on many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._kernels import (
    BasisFloat32,
    BasisFloat64,
    Csr,
    Dense,
    EpochPlan,
    coordinate,
    divergence,
    epoch,
    gaps,
    gradient,
    mu,
    newton,
    power,
    projected,
    solve_items,
    sums,
)
from sipower._kernels import level as instruction_set

__all__ = [
    "FLOOR",
    "Array",
    "Basis",
    "Csr",
    "Dense",
    "EpochPlan",
    "Kernel",
    "basis",
    "coordinate",
    "divergence",
    "epoch",
    "gaps",
    "gradient",
    "instruction_set",
    "mu",
    "newton",
    "power",
    "projected",
    "readable",
    "solve_items",
    "sums",
]

Array = NDArray[Any]
Basis = BasisFloat32 | BasisFloat64
Kernel = Callable[..., None]

FLOOR = 1e-15  # share of an item's mass that every living component keeps, as in cpp/kernels.hpp


def basis(factor: Array, *, dense: bool, column_sums: Array | None = None) -> Basis:
    """Return the factor (others, K) in the kernels' own padded layout.

    `column_sums` are those of the whole basis where the factor is a sample of its rows.
    """
    kind = BasisFloat32 if factor.dtype == np.float32 else BasisFloat64
    return kind(factor, dense, column_sums)


def readable(array: Array, dtype: Any = None) -> Array:
    """The array C-ordered and aligned; one that came over a network may be neither."""
    return np.require(array, dtype, ["C", "A"])
