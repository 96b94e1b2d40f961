# SPDX-License-Identifier: BSD-3-Clause
"""`exact_rows`: the exact W for a given H, and counts that no component can explain."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.kernels import Array
from sipower.problems.item_problem import NO_TERMS, Terms
from sipower.problems.kl import KLBlock

__all__ = ["exact_rows", "item_name", "leave_out_unexplained"]


def exact_rows(V: RowBlocks, H: Array, tol: float, terms: Terms = NO_TERMS) -> Array:
    """Solve the convex row problems for a given H (m, K) and return W (n, K).

    Every row starts from the uniform point. Counts of features that no component contains (H is
    zero there) are left out with a warning, because no W can explain them.
    """
    V = leave_out_unexplained(V, H)
    rows, gaps, _ = KLBlock(V, H, terms=terms).solution(tol)
    if gaps.max() > tol:
        warnings.warn(
            f"{int((gaps > tol).sum())} rows of W are certified only to {gaps.max():.1e}, but "
            f"`transform_tol` is {tol:.1e}: increase it, or use float64.",
            ConvergenceWarning,
            stacklevel=3,
        )
    with np.errstate(over="ignore"):
        W = rows.astype(V.dtype)
    if not np.isfinite(W).all():
        raise ValueError(f"W is too large for {V.dtype}: rescale H or the data, or use float64.")
    return W


def leave_out_unexplained(V: RowBlocks, H: Array, *, warn: bool = True) -> RowBlocks:
    """Return V without counts of features that no component contains, and warn if there are any."""
    missing = ~H.any(axis=1)
    if not missing.any() or not V.column_mass[missing].sum() > 0:
        return V
    if not V.is_in_memory:
        first = int(np.flatnonzero(missing & (V.column_mass > 0))[0])
        raise ValueError(
            f"No component has {item_name('feature', first, V.column_names)}, but the data on disk "
            "have counts of it: create a store without it, or read the data into memory."
        )
    if warn:
        _warn_about_unexplained(V, missing)
    explained = V.array * ~missing if V.dense else sp.csr_array(V.array.multiply(~missing))
    return as_matrix(explained, dtype=V.dtype, n_jobs=V.threads)


def _warn_about_unexplained(V: RowBlocks, missing: Any) -> None:
    lost = V.array[:, np.flatnonzero(missing)]
    row, column = (int(i[0]) for i in lost.nonzero())
    feature, count = int(np.flatnonzero(missing)[column]), int(lost.astype(bool).sum())
    entries = "1 such entry is" if count == 1 else f"{count:,} such entries are"
    warnings.warn(
        f"No component has {item_name('feature', feature, V.column_names)}, but "
        f"{item_name('row', row, V.row_names)} has counts of it: {entries} left out.",
        UserWarning,
        stacklevel=5,
    )


def item_name(kind: str, at: int, names: Array | None) -> str:
    """Return the name of a sample or feature for a message."""
    return f"{kind} {at} (counted from 0)" if names is None else f"{kind} {str(names[at])!r}"
