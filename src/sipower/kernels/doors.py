# SPDX-License-Identifier: BSD-3-Clause
"""The types of the compiled kernels, the roles of their arguments, and the layout of arrays.

A kernel is serial over a range of items and releases the GIL; `threads` runs it on many ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._kernels import BasisFloat32, BasisFloat64

Array = NDArray[Any]
Basis = BasisFloat32 | BasisFloat64
Kernel = Callable[..., None]


class Role(Enum):
    """What an argument of a kernel is to the items; whoever divides the items follows it."""

    SHARED = "the same for all items"
    PER_ITEM = "one row for each item"
    WRITTEN = "one row for each item, which the kernel writes"


_OUT = {"out": Role.WRITTEN}
_OUT_AND_MASS = {**_OUT, "mass": Role.PER_ITEM}
_DRAW = {"key": Role.SHARED, "place": Role.SHARED}
# The arguments of each kernel of items after (data, basis, h, begin, end), in their order.
ARGUMENTS: Mapping[str, Mapping[str, Role]] = {
    "gradient": _OUT,
    "curvatures": _OUT,
    "divergence": _OUT,
    "gaps": _OUT_AND_MASS,
    "mu": _OUT_AND_MASS,
    "power": {**_OUT_AND_MASS, "step": Role.SHARED},
    "power_search": {**_OUT_AND_MASS, "exponent": Role.SHARED},
    "coordinate": {**_OUT_AND_MASS, "sweeps": Role.SHARED, "order": Role.SHARED, **_DRAW},
    "newton": {**_OUT_AND_MASS, "steps": Role.SHARED},
    "shared_newton": {**_OUT_AND_MASS, "correlations": Role.SHARED},
    "projected_gradient": _OUT_AND_MASS,
    "solve_items": {
        **_OUT_AND_MASS, "tol": Role.SHARED, "max_rounds": Role.SHARED,
        "min_sampled_nonzeros": Role.SHARED, "gap": Role.WRITTEN, "passes": Role.WRITTEN,
    },
    "epoch": {**_OUT_AND_MASS, "plan": Role.SHARED},
}  # fmt: skip
# The number of dimensions of each term of a basis that has one row for each item; a term with
# fewer is the same for all items.
TERM_DIMENSIONS: Mapping[str, int] = {"d": 2, "prior": 2, "fixed": 2, "ridge": 1}

FLOOR = 1e-15  # smallest share of an item's mass in a component with d > 0, as in cpp/kernels.hpp


def basis(
    factor: Array,
    *,
    dense: bool,
    d: Array | None = None,
    prior: Array | None = None,
    fixed: Array | None = None,
    ridge: float | Array = 0.0,
) -> Basis:
    """Return a factor (n, K) and the other terms of the objective in the layout of the kernels.

    Each of d, prior and fixed has shape (K,), the same for all items, or (items, K).

    Parameters
    ----------
    factor
        The fixed factor, float32 or float64.
    dense
        Whether the basis will be used with dense data.
    d
        Linear term; None: the column sums of `factor`.
    prior
        Prior counts a ≥ 0; None: none.
    fixed
        Components that keep their value, bool; None: none.
    ridge
        Ridge r ≥ 0, one number or one for each item.
    """
    kind = BasisFloat32 if factor.dtype == np.float32 else BasisFloat64
    terms = _as_rows(d, np.float64), _as_rows(prior, np.float64), _as_rows(fixed, np.uint8)
    has_ridge = bool(np.any(ridge))
    ridges = as_contiguous(np.atleast_1d(ridge), np.float64) if has_ridge else None
    return kind(factor, dense, *terms, ridges)


def term_role(name: str, term: Any) -> Role:
    """Return the role of a term of a basis, which its number of dimensions says."""
    return Role.PER_ITEM if np.ndim(term) == TERM_DIMENSIONS[name] else Role.SHARED


def _as_rows(term: Array | None, dtype: Any) -> Array | None:
    return None if term is None else as_contiguous(np.atleast_2d(term), dtype)


def as_contiguous(array: Array, dtype: Any = None) -> Array:
    """Return the array in C-contiguous and aligned memory, copied only if necessary.

    Arrays that Dask receives over a connection may be neither contiguous nor aligned.
    """
    return np.require(array, dtype, ["C", "A"])
