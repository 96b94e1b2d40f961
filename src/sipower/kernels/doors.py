# SPDX-License-Identifier: BSD-3-Clause
"""The types of the compiled kernels, and conversion of arrays to the layout they expect.

A kernel is serial over a range of items and releases the GIL; `threads` runs it on many ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._kernels import BasisFloat32, BasisFloat64

Array = NDArray[Any]
Basis = BasisFloat32 | BasisFloat64
Kernel = Callable[..., None]

FLOOR = 1e-15  # smallest share of an item's mass in a component with d > 0, as in cpp/kernels.hpp


def basis(factor: Array, *, dense: bool, column_sums: Array | None = None) -> Basis:
    """Return a factor (n, K) in the padded layout of the kernels.

    Parameters
    ----------
    factor
        The fixed factor, float32 or float64.
    dense
        Whether the basis will be used with dense data.
    column_sums
        Column sums (K,) of the whole basis, if `factor` holds only a sample of its rows; None: the
        column sums of `factor`.
    """
    kind = BasisFloat32 if factor.dtype == np.float32 else BasisFloat64
    return kind(factor, dense, column_sums)


def as_contiguous(array: Array, dtype: Any = None) -> Array:
    """Return the array in C-contiguous and aligned memory, copied only if necessary.

    Arrays that Dask receives over a connection may be neither contiguous nor aligned.
    """
    return np.require(array, dtype, ["C", "A"])
