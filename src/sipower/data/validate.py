# SPDX-License-Identifier: BSD-3-Clause
"""`as_matrix`: validate data and return them as row blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from sipower.data.containers import as_frame, frame_names, is_table, refuse_type
from sipower.data.conversion import column_values, to_array
from sipower.data.memory import Matrix, read_only
from sipower.data.row_blocks import RowBlocks
from sipower.data.value_range import smallest_distinguishable
from sipower.kernels import Array, count_threads

EXACT = 2**53  # float64 holds all whole numbers up to here
INEXACT = (
    "Entry {} is {}, a whole number beyond 2^53 that {} would round: rescale the data, or convert "
    "them with V.astype(float)."
)
KERNEL_TYPES = (np.uint8, np.uint16, np.float32, np.float64)  # dense types that kernels read


class EntryError(ValueError):
    """An invalid entry of the data.

    Its arguments are a sentence with placeholders, the position (row, column), the value and the
    working type.
    """

    def __str__(self) -> str:
        sentence, entry, value, working = self.args
        return str(sentence.format(entry, value, working))

    def shift_rows(self, rows: int) -> EntryError:
        """Return the same error with its position moved down by `rows` rows."""
        sentence, (row, column), value, working = self.args
        return EntryError(sentence, (row + rows, column), value, working)


def as_matrix(
    V: Any, *, dtype: DTypeLike | None = None, n_jobs: int | None = None, rows_only: bool = False
) -> RowBlocks:
    """Validate non-negative data and return it as row blocks.

    Parameters
    ----------
    V
        ndarray of any real dtype and order, any scipy sparse format, a DataFrame of pandas or
        polars, a table of Arrow, a `Table` of `sipower.io.read`, or anything else that NumPy
        converts; rows are samples. Row
        blocks, such as an open store, keep their type and threads unless `dtype` or `n_jobs` is
        given. The arrays are never modified, and are shared if they need no conversion: do not
        write to them while the result is in use.
    dtype
        Working type, float32 or float64. None means float32 for float32 and float16 data, else
        float64.
    n_jobs
        Number of threads; None means all cores, or one inside a joblib or Dask worker.
    rows_only
        Whether to leave out the transpose. This halves the memory, but the result works only with
        update rules that need only sums over the rows.

    Returns
    -------
    RowBlocks
        A `Matrix`; if V is row blocks already, V with the given settings.

    Examples
    --------
    >>> from sipower import as_matrix
    >>> as_matrix([[1, 0], [2, 3]]).total
    6.0
    """
    if isinstance(V, RowBlocks):
        working = V.dtype if dtype is None else working_type(V.dtype, dtype)
        # For data on disk, `with_settings` checks the range of the values.
        if working.itemsize < V.dtype.itemsize and V.is_in_memory:
            _check_narrower_type(V, working)
        return V.with_settings(working, None if n_jobs is None else count_threads(n_jobs))
    V = as_frame(V)
    if is_table(V):
        matrix = as_matrix(V.counts, dtype=dtype, n_jobs=n_jobs, rows_only=rows_only)
        return matrix.with_names(name_array(V.samples), name_array(V.features))
    row_names, column_names = frame_names(V)
    array = to_array(V)
    _check_kind(array)
    working = working_type(array.dtype, dtype)
    if isinstance(array, np.ndarray) and array is not V and working == np.float64:
        _check_conversion(V, array)
    data = _as_dense(array, working) if isinstance(array, np.ndarray) else _as_csr(array, working)
    matrix = Matrix(data, working, count_threads(n_jobs), rows_only=rows_only)
    check_total(matrix.total, working)
    return matrix.with_names(row_names, column_names)


def check_total(total: float, working: np.dtype[Any]) -> None:
    """Check that the working type can hold the sum of all entries."""
    if not total <= float(np.finfo(working).max):
        raise ValueError(f"The sum of the data is too large for {working}: rescale the data.")


def check_range(
    name: str, smallest: float, largest: float, total: float, working: np.dtype[Any]
) -> None:
    """Check that the type `working` can hold the nonzeros of a file and their sum.

    `smallest` and `largest` are the extreme nonzeros and `total` is the sum; `name` is the file.
    """
    if 0 < smallest < smallest_distinguishable(largest, working):
        raise ValueError(
            f"The smallest entry of {name} is {smallest}, too small for {working}: rescale the "
            "data."
        )
    if max(largest, total) > float(np.finfo(working).max):
        raise ValueError(
            f"The sum of the data in {name} is too large for {working}: rescale the data."
        )


def name_array(names: Sequence[str] | None) -> Array | None:
    """Return names as an object array, the type of `row_names` and `column_names`."""
    return None if names is None else np.array(names, object)


def _check_narrower_type(V: RowBlocks, working: np.dtype[Any]) -> None:
    """Check that `working`, a narrower type than the present one of V, can hold the data."""
    if V.dense:
        _check_entries(V.array, lambda flat: np.unravel_index(flat, V.shape), working)
    else:
        _check_entries(V.array.data, lambda flat: _position(V.array, flat), working)
    check_total(V.total, working)


def _check_kind(array: Any) -> None:
    refuse_type("The data", array.dtype)
    if array.ndim != 2:
        raise ValueError(
            f"The data must be 2-dimensional, got {array.ndim} dimension(s). Reshape your data to "
            "(samples, features), a single sample with V.reshape(1, -1)."
        )
    for size, what in zip(array.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise ValueError(
                f"The data are empty: 0 {what}(s) (shape={array.shape}) while a minimum of 1 is "
                "required."
            )
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: the data must be non-negative counts.")
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"The data must be numbers, got dtype {array.dtype}: convert them, for example with "
            "V.astype(float)."
        )
    if array.shape[1] >= 2**31 or array.shape[0] >= 2**31:
        raise ValueError(
            f"The data must have at most 2^31 - 1 rows and columns, got shape {array.shape}."
        )


def working_type(data_type: np.dtype[Any], dtype: DTypeLike | None) -> np.dtype[Any]:
    """Return the working type: `dtype` if given, else the default for the type of the data."""
    if dtype is None:
        dtype = np.float32 if data_type in (np.float32, np.float16) else np.float64
    try:
        working = np.dtype(dtype)
    except TypeError:
        raise ValueError(f"`dtype` must be float32 or float64, got {dtype!r}.") from None
    if working not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"`dtype` must be float32 or float64, got {working}.")
    return working


def _as_dense(array: Array, working: np.dtype[Any]) -> Array:
    _check_entries(array, lambda flat: np.unravel_index(flat, array.shape), working)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    kind = array.dtype if array.dtype in KERNEL_TYPES[:2] else working
    return np.asarray(read_only(np.require(array, kind, ["C", "A"]).view()))


def by_rows(array: Any, working: np.dtype[Any] | None = None) -> sp.csr_array:
    """Return sparse data as CSR; duplicate entries are summed in a type that can hold them."""
    if array.format not in ("csr", "csc"):  # scipy sums duplicates in the dtype of the data
        working = working or working_type(array.dtype, None)
        kind = np.result_type(array.dtype, working)
        if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
            entries = sp.coo_array(array)
            check_exact(entries.data, lambda at: (part[at] for part in entries.coords), working)
        array = array.astype(kind, copy=False)
    return sp.csr_array(array)


def _as_csr(array: Any, working: np.dtype[Any]) -> sp.csr_array:
    csr = by_rows(array, working)
    is_inside = csr.nnz == 0 or (csr.indices.min() >= 0 and csr.indices.max() < csr.shape[1])
    if not is_inside:
        raise ValueError("The sparse data are invalid: a column index is out of range.")
    _check_entries(csr.data, lambda flat: _position(csr, flat), working)
    if not csr.has_canonical_format or (csr.data == 0).any():
        csr = csr.astype(np.result_type(csr.dtype, working))  # a copy, wide enough for sums
        csr.sum_duplicates()
        _check_entries(csr.data, lambda flat: _position(csr, flat), working)
        csr.eliminate_zeros()
    # SciPy gives indices and indptr one type, the wider one, and kernels read 32-bit indices.
    kind = np.int32 if csr.nnz <= np.iinfo(np.int32).max else np.int64
    indices, indptr = (part.astype(kind, copy=False) for part in (csr.indices, csr.indptr))
    values = csr.data.astype(working, copy=False)
    return sp.csr_array((values, indices, indptr), shape=csr.shape)


def _position(csr: sp.csr_array, flat: int) -> tuple[int, int]:
    row = int(np.searchsorted(csr.indptr, flat, side="right")) - 1
    return row, int(csr.indices[flat])


def check_exact(values: Array, position: Any, working: np.dtype[Any]) -> None:
    """Check that float64 as the working type holds every whole number exactly.

    float32 rounds beyond 2^24, which is what its choice means. `position` is as for
    `_check_entries`.
    """
    is_wide = values.dtype.kind in "iu" and values.dtype.itemsize == 8
    if not is_wide or working != np.float64 or values.max(initial=0) <= EXACT:
        return
    rounded = values.astype(np.float64)
    fits = rounded < float(np.iinfo(values.dtype).max)  # which is rounded up to a power of 2
    exact = np.where(fits, rounded, 0).astype(values.dtype)
    inexact = ~fits | (exact != values)
    if inexact.any():
        flat = int(np.argmax(inexact))
        row, column = (int(i) for i in position(flat))
        raise EntryError(INEXACT, (row, column), values.flat[flat], working)


def _check_conversion(V: Any, array: Array) -> None:
    """Check that no whole number was rounded when V, such as a DataFrame, became floats.

    The columns of a DataFrame have types of their own, and the numbers of a list have any size.
    """
    if array.dtype != np.float64:
        return
    is_large = (array > EXACT) & (array < np.inf)
    for column in np.flatnonzero(is_large.any(axis=0)).tolist():
        values = column_values(V, column)
        for row in np.flatnonzero(is_large[:, column]).tolist():
            value = values[row]
            if isinstance(value, int | np.integer) and int(array[row, column]) != int(value):
                raise EntryError(INEXACT, (row, column), value, array.dtype)


def _check_entries(values: Array, position: Any, working: np.dtype[Any]) -> None:
    """Check that entries are non-negative, finite and in the range of the working type.

    position(i) returns the row and column of the i-th value.
    """
    check_exact(values, position, working)
    if values.dtype.kind in ("b", "u") or values.size == 0:
        return
    lowest, highest = values.min(), values.max()
    limits = np.finfo(working)
    smallest = _smallest_positive(values) if values.dtype.kind == "f" else 1
    limit = smallest_distinguishable(highest, working)
    if lowest >= 0 and highest <= limits.max and smallest >= limit:
        return
    small = (values > 0) & (values < smallest_distinguishable(0, working))
    negligible = (values > 0) & (values < limit)
    invalid = (
        (
            np.isnan(values),
            "NaN in data: entry {} is {}; fill it, or use missing='nan'.",
        ),
        (np.isinf(values), "Infinity in data: entry {} is {}; fill it or drop its row."),
        (values < 0, "Negative values in data: entry {} is {}; counts must be non-negative."),
        (values > limits.max, "Entry {} is {}, too large for {}; rescale the data."),
        (small, "Entry {} is {}, too small for {}; rescale the data."),
        (negligible, "Entry {} is {}, negligible compared with the largest in {}; set it to 0."),
    )
    for bad, sentence in invalid:
        if bad.any():
            flat = int(np.argmax(bad))
            row, column = (int(i) for i in position(flat))
            raise EntryError(sentence, (row, column), values.flat[flat], working)


def _smallest_positive(values: Array) -> Any:
    lowest = values.min()
    if lowest > 0:
        return lowest
    return values.min(where=values > 0, initial=np.inf)
