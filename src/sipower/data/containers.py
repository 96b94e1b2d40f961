# SPDX-License-Identifier: BSD-3-Clause
"""Containers of other libraries: what is read of them, or the sentence that refuses them.

A library is recognised by the module of the type, so that none is imported.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from sipower._files import shorten
from sipower.kernels import Array

__all__ = [
    "as_frame",
    "frame_names",
    "hide_in_frame",
    "is_sparse_frame",
    "library_name",
    "refill",
    "type_name",
]

_ON_DISK = "a sparse matrix on disk: load it with V.to_memory(), or open its file with "
_ON_DISK += "sipower.io.open_on_disk"
# (library, class) -> what it is and what to do. "" stands for any class.
_REFUSED = {
    ("dask", ""): "a Dask collection: use sipower.dask.KLNMF, or load them into memory with "
    "V.compute()",
    ("polars", "LazyFrame"): "a LazyFrame of polars: collect it first, with V.collect()",
    ("xarray", "Dataset"): "a Dataset of xarray: pass one of its variables, such as V['counts']",
    ("anndata", "CSRDataset"): _ON_DISK,
    ("anndata", "CSCDataset"): _ON_DISK,
    ("pyarrow", "SparseCSRMatrix"): "a sparse matrix of Arrow: pass V.to_scipy()",
    ("pyarrow", "SparseCSCMatrix"): "a sparse matrix of Arrow: pass V.to_scipy()",
    ("pyarrow", "SparseCOOTensor"): "a sparse tensor of Arrow: pass V.to_scipy()",
    ("pyarrow", "RecordBatchReader"): "a reader of record batches: pass V.read_all()",
}


def library_name(V: Any) -> str:
    """Return the library that defines the type of an object."""
    return type(V).__module__.partition(".")[0]


def type_name(V: Any) -> str:
    """Return the type of an object as text, with its library."""
    kind = type(V)
    library = library_name(V)
    return kind.__qualname__ if library == "builtins" else f"{library}.{kind.__qualname__}"


def as_frame(V: Any) -> Any:
    """Return data in the form that the other functions read, or refuse them with what to do.

    DataArrays of xarray become data frames with their names, record batches of Arrow become tables.
    No number is converted; everything else is returned as it is.
    """
    library, name = library_name(V), type(V).__name__.lstrip("_")
    advice = _REFUSED.get((library, name)) or _REFUSED.get((library, ""))
    if advice is not None:
        raise TypeError(f"The data are {advice}.")
    if library == "anndata" and hasattr(V, "obs"):  # arrays of anndata have no obs
        raise TypeError(
            "The data are an AnnData object: use sipower.tl.nmf, or pass its .X or a layer."
        )
    _refuse_unread(V)
    if isinstance(V, np.ma.MaskedArray):
        raise TypeError("The data are a masked array: fill the masked entries first (V.filled(0)).")
    if library == "pandas" and hasattr(V, "dtypes"):
        _check_sparse_columns(V)
    if library == "pyarrow" and name == "RecordBatch":
        from pyarrow import Table  # noqa: PLC0415 - optional

        return Table.from_batches([V])
    if library == "xarray" and name == "DataArray":
        if V.chunks is not None:
            raise TypeError(
                "The data are a DataArray in Dask chunks: use sipower.dask.KLNMF with V.data, or "
                "load them into memory with V.compute()."
            )
        return V.to_pandas() if V.ndim == 2 and V.dims[1] in V.coords else V
    return V


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


def _is_sparse(kind: Any) -> bool:
    return type(kind).__name__ == "SparseDtype"


def _check_sparse_columns(frame: Any) -> None:
    """Refuse a DataFrame with sparse columns that could only be read by filling in its zeros."""
    kinds = list(getattr(frame.dtypes, "array", [frame.dtypes]))
    sparse = [kind for kind in kinds if _is_sparse(kind)]
    if not sparse or (len(sparse) == len(kinds) and all(kind.fill_value == 0 for kind in sparse)):
        return
    other = next((kind.fill_value for kind in sparse if kind.fill_value != 0), None)
    what = "sparse and dense columns" if other is None else f"sparse columns of fill value {other}"
    raise TypeError(
        f"The data are a DataFrame with {what}: make all of it sparse with "
        "V.astype(pandas.SparseDtype(float, 0)), or dense with V.astype(float)."
    )


def is_sparse_frame(V: Any) -> bool:
    """Return whether data are a DataFrame of sparse columns, which `as_frame` has accepted."""
    is_frame = library_name(V) == "pandas" and hasattr(V, "columns")
    return is_frame and bool(len(V.dtypes)) and all(map(_is_sparse, V.dtypes))


def frame_names(V: Any) -> tuple[Array | None, Array | None]:
    """Return the row and column names of a DataFrame; polars and Arrow have no row names."""
    if library_name(V) == "pyarrow" and hasattr(V, "column_names"):
        return None, np.array(V.column_names, object)
    if not hasattr(V, "columns"):
        return None, None
    index = getattr(V, "index", None)
    return None if index is None else np.asarray(index), np.asarray(V.columns)


def hide_in_frame(frame: Any, shown: Any) -> Any:
    """Return a DataFrame of pandas with zeros where `shown` is False; booleans become numbers."""
    frame = frame.infer_objects()
    for column in np.flatnonzero([dtype.kind == "b" for dtype in frame.dtypes]):
        frame.isetitem(column, frame.iloc[:, column] * np.uint8(1))
    return frame.where(shown, 0)


def refill(V: Any, array: Array) -> Any:
    """Return an array as a frame of polars or Arrow with the names of V; else the array itself."""
    if library_name(V) == "polars":
        return type(V)(array, schema=list(V.columns))
    if library_name(V) == "pyarrow" and hasattr(V, "column_names"):
        from pyarrow import array as as_column  # noqa: PLC0415 - optional

        return type(V).from_arrays([as_column(column) for column in array.T], V.column_names)
    return array
