# SPDX-License-Identifier: BSD-3-Clause
"""Values that were not observed: they become zeros, and a mask says where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sipower.data.containers import as_frame, hide_in_frame, is_sparse_frame, library_name, refill
from sipower.estimators.observation import as_boolean, is_sparse, match_arguments
from sipower.kernels import Array

__all__ = ["hide_unobserved", "split_missing", "without_missing"]


def hide_unobserved(X: Any, mask: Any) -> Any:
    """Return X with zeros where a mask is False: values that are not observed may be anything."""
    observed, X = as_boolean("mask", mask), as_frame(X)
    X = np.asarray(X) if isinstance(X, list | tuple) else X
    shape = getattr(X, "shape", None)
    if shape is None or observed.dtype != bool or observed.shape not in (shape, shape[1:]):
        return X  # data on disk, or a mask that is refused
    observed = np.broadcast_to(observed, shape)
    if is_sparse(X):
        visible = sp.csr_array(X, copy=True)
        rows = np.repeat(np.arange(shape[0]), np.diff(visible.indptr))
        visible.data[~observed[rows, visible.indices]] = 0
        return visible
    if hasattr(X, "where"):  # a DataFrame keeps its names
        return hide_in_frame(X, observed)
    is_table = library_name(X) in ("polars", "pyarrow")
    return refill(X, np.where(observed, X, 0)) if isinstance(X, np.ndarray) or is_table else X


def split_missing(X: Any) -> tuple[Any, Any]:
    """Return X with zeros for NaN, and where X is NaN as a boolean CSR array, or None."""
    X = as_frame(X)
    if is_sparse_frame(X):
        missing = split_missing(X.sparse.to_coo())[1]
        return (X, None) if missing is None else (X.fillna(0), missing)
    if is_sparse(X):
        filled = sp.csr_array(X, copy=True)
        at = np.flatnonzero(np.isnan(filled.data))
        rows = np.searchsorted(filled.indptr, at, side="right") - 1
        missing = sp.csr_array((np.ones(len(at)), (rows, filled.indices[at])), filled.shape)
        filled.data[at] = 0
        return (filled, missing) if len(at) else (X, None)
    if not (isinstance(X, list | tuple) or hasattr(X, "__array__")):  # data on disk
        return X, None
    is_frame = hasattr(X, "isna")
    is_nan = X.isna().to_numpy() if is_frame else _is_nan(np.asarray(X))
    if not is_nan.any():
        return X, None
    filled = hide_in_frame(X, ~is_nan) if is_frame else refill(X, np.where(is_nan, 0, X))
    return filled, sp.csr_array(is_nan)


def _is_nan(array: Array) -> NDArray[np.bool_]:
    if array.dtype.kind == "O" and array.ndim:  # NaN is the only value that differs from itself
        return np.not_equal(array, array, dtype=object).astype(bool)
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(1, bool)


def without_missing(model: Any, X: Any, observed: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return X without NaN and the arguments of a fit, with a mask that hides them.

    The arguments are in the order of X.
    NaN means not observed if the model says so (``missing="nan"``).
    """
    observed = match_arguments(X, observed)
    if model.missing != "nan":
        return X, observed
    X, missing = split_missing(X)
    if missing is not None:
        mask = observed.get("mask")
        seen = ~missing.toarray().astype(bool)
        observed["mask"] = seen if mask is None else seen & as_boolean("mask", mask)
    return X, observed
