# SPDX-License-Identifier: BSD-3-Clause
"""Containers of other libraries: what is read of them, or the sentence that refuses them.

A library is recognised by the module of the type, so that none is imported.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np

from sipower._files import quote, shorten
from sipower.kernels import Array

__all__ = [
    "as_frame",
    "as_numbers",
    "frame_names",
    "hide_in_frame",
    "is_sparse_frame",
    "is_table",
    "library_name",
    "refill",
    "refuse_cells",
    "refuse_columns",
    "refuse_type",
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

# What the values of a column are, by the name of its type in pandas, polars, Arrow or NumPy. The
# types of polars begin with a capital letter. "object" of pandas and NumPy may hold numbers.
_NO_NUMBERS = {
    re.compile(pattern): word
    for pattern, word in (
        (r"[Dd]ate|timestamp", "dates"),
        (r"[Dd]uration|timedelta", "durations"),
        (r"[Tt]ime(32|64)?\b", "times of day"),
        (r"period", "periods"),
        (r"interval|month_day_nano_interval", "intervals"),
        (r"category", "categories"),
        (r"(large_|fixed_size_)?list|List|Array", "lists"),
        (r"struct|Struct|map<|(dense|sparse)_union", "structures"),
        (r"Object", "Python objects"),
    )
}
# What cells are that NumPy would make numbers of, or refuse without their place.
_CELLS = (
    ((dt.date, np.datetime64), "dates"),  # also datetime, and the timestamps of pandas
    ((dt.timedelta, np.timedelta64), "durations"),
    ((dt.time,), "times of day"),
    ((complex,), "complex numbers"),
    ((list, tuple, set, np.ndarray), "lists"),
    ((str, bytes), "text"),
)
_CELLS_BY_NAME = {"Period": "periods", "Interval": "intervals"}  # of pandas
_LEAVE_OUT = "leave them out, or replace them by numbers"
_ADVICE = {
    "dates": "leave them out, or count days, months or years from a first date",
    "durations": "divide them by a unit, such as numpy.timedelta64(1, 's')",
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
    frame = _as_frame(V)
    refuse_columns(frame)
    if isinstance(frame, np.ndarray):
        refuse_type("The data", frame.dtype)
    return frame


def _as_frame(V: Any) -> Any:
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
    """Reject the path of a file, which holds data that were not passed."""
    if isinstance(V, str | PathLike):
        path = shorten(repr(str(V)))
        raise TypeError(
            f"The data are a path or a text, {path}: read a file with sipower.io.read({path}) and "
            "pass the table; count the words of texts with sipower.io.read_texts([...])."
        )


def is_table(V: Any) -> bool:
    """Return whether data are a `Table` of `sipower.io`: counts with the names of both sides."""
    return library_name(V) == "sipower" and type(V).__name__ == "Table"


# ---- what is no number ---------------------------------------------------------------------------


def as_numbers(
    argument: str, values: Any, expected: str = "an array of numbers", dtype: Any = np.float64
) -> Array:
    """Return the values of an argument beside the data, such as weights, in a type of numbers.

    Dates, which NumPy would convert to nanoseconds, are refused, as are other types that hold no
    numbers. `expected` says what the argument must be.
    """
    name = f"`{argument}`"
    refuse_columns(values, f"{name} has")
    for kind in (getattr(values, "dtype", None), getattr(values, "type", None)):
        refuse_type(name, kind)
    problem = f"{name} must be {expected}."
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise ValueError(problem) from None
    refuse_type(name, array.dtype)
    word, cell = _first_word(array.flat) if array.dtype.kind == "O" else (None, None)
    if word not in (None, "text", "lists"):
        raise ValueError(f"{problem[:-1]}, got {word} such as {shorten(cell)}.")
    try:
        return array.astype(dtype, copy=False)
    except (TypeError, ValueError):
        raise ValueError(problem) from None


def refuse_type(what: str, kind: Any) -> None:
    """Reject a type of values that are no numbers, such as dates, which would become nanoseconds.

    `what` is what holds the values, such as "The data" or "`offsets`".
    """
    if getattr(kind, "names", None) is not None:
        fields = shorten(", ".join(map(repr, kind.names)))
        raise ValueError(
            f"{what} must be an array of numbers, got a structured array with the fields {fields}: "
            "convert it with numpy.lib.recfunctions.structured_to_unstructured."
        )
    word = _word(kind)
    if word is not None:
        raise ValueError(
            f"{what} must be numbers, got {word} ({kind}): {_ADVICE.get(word, _LEAVE_OUT)}."
        )


def refuse_cells(V: Any, array: Array) -> None:
    """Reject Python objects that are no numbers: texts, dates, periods, intervals and others."""
    names = frame_names(V)[1]
    if names is not None and array.ndim == 2:
        for name, column in zip(names.tolist(), array.T, strict=True):
            word, _ = _first_word(column)
            if word is not None:
                raise _column_error("The data have", V, name, word)
        return
    word, cell = _first_word(array.flat)
    if word == "text":
        raise ValueError(
            f"The data must be numbers, got texts such as {quote(cell)}: convert numbers with "
            "V.astype(float); count the words of texts with sipower.io.read_texts(texts) or "
            "scikit-learn's CountVectorizer."
        )
    if word not in (None, "lists"):  # NumPy says what is wrong with lists
        advice = _ADVICE.get(str(word), _LEAVE_OUT)
        raise ValueError(f"The data must be numbers, got {word} such as {shorten(cell)}: {advice}.")


def _first_word(cells: Iterable[Any]) -> tuple[str | None, Any]:
    """Return what the first cell is that is no number, and the cell; None if all may be numbers."""
    words: dict[type, str | None] = {}
    for cell in cells:
        kind = type(cell)
        if kind not in words:
            word = next((word for kinds, word in _CELLS if issubclass(kind, kinds)), None)
            words[kind] = word or _CELLS_BY_NAME.get(kind.__name__)
        if words[kind] is not None:
            return words[kind], cell
    return None, None


def _word(kind: Any) -> str | None:
    """Return what the values of a type are, such as "dates", or None if they may be numbers."""
    text = str(kind)
    return next((word for pattern, word in _NO_NUMBERS.items() if pattern.match(text)), None)


def refuse_columns(V: Any, what: str = "The data have") -> None:
    """Reject a frame that has a column whose type holds no numbers."""
    library = library_name(V)
    if library == "pyarrow" and hasattr(V, "column_names"):
        names, kinds = V.column_names, list(V.schema.types)
    elif library in ("pandas", "polars") and hasattr(V, "columns"):
        names, kinds = list(V.columns), list(getattr(V.dtypes, "array", V.dtypes))
    else:
        return
    for kind in dict.fromkeys(kinds):
        word = _word(kind)
        if word is not None:
            raise _column_error(what, V, names[kinds.index(kind)], word)


def _column_error(what: str, V: Any, name: Any, word: str) -> ValueError:
    """Return the error for a column that does not hold numbers."""
    drop = {"polars": "V.drop({!r})", "pyarrow": "V.drop_columns([{!r}])"}
    advice = f"drop it ({drop.get(library_name(V), 'V.drop(columns={!r})').format(name)})"
    if library_name(V) not in drop:
        advice += f" or make it the index (V.set_index({name!r}))"
    if word == "text":
        advice += f"; count the words of texts with sipower.io.read_texts(V[{name!r}])"
    if word == "categories":
        advice += f"; if they are counts, convert it with V.astype({{{name!r}: float}})"
    return ValueError(f"{what} a column {quote(name)} of {word}, expected numbers: {advice}.")


# ---- pandas ------------------------------------------------------------------------------------


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
