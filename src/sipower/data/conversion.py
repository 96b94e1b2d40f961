# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of what users pass as data to arrays, without a check of the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sipower.data.containers import is_sparse_frame, library_name, refuse_cells, type_name
from sipower.kernels import Array


def to_array(V: Any) -> Any:
    """Return data that `as_frame` has accepted as an array or a sparse matrix."""
    if is_sparse_frame(V):
        return V.sparse.to_coo()
    if sp.issparse(V):
        return V
    try:
        array = np.asarray(V)
    except ValueError as error:
        raise ValueError("The data must be 2-dimensional: their rows differ in length.") from error
    except (TypeError, RuntimeError) as error:
        raise _conversion_error(V) from error
    if array.dtype.kind in "OSUT":  # numbers as Python objects, or texts
        return _numbers(V, array)
    return array


def column_values(V: Any, column: int) -> Any:
    """Return the values of a column of what `to_array` converts, in their own type."""
    if hasattr(V, "iloc"):
        return V.iloc[:, column].to_numpy()
    if library_name(V) == "polars":
        return V.to_series(column).to_list()
    if library_name(V) == "pyarrow":
        return V.column(column).to_pylist()
    return np.asarray(V, object)[:, column]


def _numbers(V: Any, array: Array) -> Array:
    """Return an array of Python objects as numbers; see `refuse_cells`."""
    refuse_cells(V, array)
    if array.dtype.kind != "O":
        return array
    if hasattr(V, "isna") and hasattr(V, "to_numpy"):  # a DataFrame of nullable columns
        return _fill_missing(V)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(V, np.ndarray) and not any(map(sp.issparse, array.flat)):
            raise  # NumPy's message names the type of the entry
        raise _conversion_error(V) from error


def _fill_missing(frame: Any) -> Array:
    """Return a DataFrame of nullable columns as numbers; NaN, so floats, where one is missing."""
    kinds = [getattr(kind, "numpy_dtype", kind) for kind in frame.dtypes]
    common = np.result_type(*(kind if isinstance(kind, np.dtype) else object for kind in kinds))
    if common.kind in "biu" and not frame.isna().to_numpy().any():
        return np.asarray(frame.to_numpy(common))
    kind = common if common.kind == "f" else np.float64
    return np.asarray(frame.to_numpy(kind, na_value=np.nan))


def _conversion_error(V: Any) -> TypeError:
    """Return the error for an object that NumPy makes no array of numbers of."""
    if library_name(V) == "torch":
        return TypeError(
            "The data are a tensor that NumPy cannot read: pass "
            "V.detach().cpu().to_dense().double().numpy()."
        )
    return TypeError(
        f"The data are of type {type_name(V)}, which NumPy does not convert to numbers: pass an "
        "array, a sparse matrix of SciPy or a DataFrame."
    )
