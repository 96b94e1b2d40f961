# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of what users pass as data to arrays and names, without a check of the values."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from sipower._files import shorten
from sipower.kernels import Array


def frame_names(V: Any) -> tuple[Array | None, Array | None]:
    """Return the row and column names of a DataFrame; polars has no row names."""
    if not hasattr(V, "columns"):
        return None, None
    index = getattr(V, "index", None)
    return None if index is None else np.asarray(index), np.asarray(V.columns)


def to_array(V: Any) -> Any:
    """Return data as an array or a sparse matrix; other things are refused with what to do."""
    module = type(V).__module__.partition(".")[0]
    if module == "dask":
        raise TypeError(
            "The data are a Dask collection: use sipower.dask.KLNMF, or load them into memory with "
            "V.compute()."
        )
    if module == "anndata" and hasattr(V, "obs"):  # arrays of anndata have no obs
        raise TypeError(
            "The data are an AnnData object: use sipower.tl.nmf, or pass its .X or a layer."
        )
    _refuse_unread(V)
    if isinstance(V, np.ma.MaskedArray):
        raise TypeError("The data are a masked array: fill the masked entries first (V.filled(0)).")
    if hasattr(V, "columns") and hasattr(V, "sparse") and _all_sparse(V):
        V = V.sparse.to_coo()
    if sp.issparse(V):
        return V
    try:
        array = np.asarray(V)
    except ValueError as error:
        raise ValueError("The data must be 2-dimensional: their rows differ in length.") from error
    if array.dtype.kind in "OSUT":  # numbers as Python objects, or texts
        return _numbers(V, array)
    return array


def _refuse_unread(V: Any) -> None:
    """Reject the path of a file and a `Table`, both of which hold data that were not passed."""
    if isinstance(V, str | PathLike):
        path = shorten(repr(str(V)))
        raise TypeError(
            f"The data are a path or a text, {path}: read a file with sipower.io.read({path}) and "
            "pass its .counts; count the words of texts with sipower.io.read_texts([...])."
        )
    if hasattr(V, "counts") and hasattr(V, "samples") and not hasattr(V, "columns"):
        raise TypeError("The data are a Table of sipower.io: pass its .counts.")


def _numbers(V: Any, array: Array) -> Array:
    """Return an array of Python objects as numbers; texts are refused."""
    if hasattr(V, "columns") and array.ndim == 2:
        for name, column in zip(V.columns, array.T, strict=True):
            if any(isinstance(cell, str) for cell in column):
                raise ValueError(
                    f"The data have a column {shorten(name)!r} of text, expected numbers: drop it "
                    f"(V.drop(columns={name!r})) or make it the index (V.set_index({name!r})); "
                    f"count the words of texts with sipower.io.read_texts(V[{name!r}])."
                )
    first = next((cell for cell in array.flat if isinstance(cell, str | bytes)), None)
    if first is not None:
        raise ValueError(
            f"The data must be numbers, got texts such as {shorten(first)!r}: convert numbers with "
            "V.astype(float); count the words of texts with sipower.io.read_texts(texts) or "
            "scikit-learn's CountVectorizer."
        )
    return array if array.dtype.kind != "O" else array.astype(np.float64)


def _all_sparse(frame: Any) -> bool:
    """Return whether all columns are sparse with fill value 0, as `sparse.to_coo` needs."""
    kinds = list(frame.dtypes)
    return bool(kinds) and all(getattr(kind, "fill_value", None) == 0 for kind in kinds)
