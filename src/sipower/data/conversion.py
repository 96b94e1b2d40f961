# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of what users pass as data to arrays, without a check of the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sipower._files import shorten
from sipower.data.containers import frame_names, is_sparse_frame, library_name, type_name
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


def _numbers(V: Any, array: Array) -> Array:
    """Return an array of Python objects as numbers; texts are refused."""
    _refuse_texts(V, array)
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


def _refuse_texts(V: Any, array: Array) -> None:
    names = frame_names(V)[1]
    if names is not None and array.ndim == 2:
        for name, column in zip(names.tolist(), array.T, strict=True):
            if any(isinstance(cell, str) for cell in column):
                raise ValueError(
                    f"The data have a column {shorten(name)!r} of text, expected numbers: "
                    f"{_how_to_drop(V, name)}; count the words of texts with "
                    f"sipower.io.read_texts(V[{name!r}])."
                )
    first = next((cell for cell in array.flat if isinstance(cell, str | bytes)), None)
    if first is not None:
        raise ValueError(
            f"The data must be numbers, got texts such as {shorten(first)!r}: convert numbers with "
            "V.astype(float); count the words of texts with sipower.io.read_texts(texts) or "
            "scikit-learn's CountVectorizer."
        )


def _how_to_drop(V: Any, name: Any) -> str:
    if library_name(V) == "polars":
        return f"drop it (V.drop({name!r}))"
    if library_name(V) == "pyarrow":
        return f"drop it (V.drop_columns([{name!r}]))"
    return f"drop it (V.drop(columns={name!r})) or make it the index (V.set_index({name!r}))"


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
