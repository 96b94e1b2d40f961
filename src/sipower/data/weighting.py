# SPDX-License-Identifier: BSD-3-Clause
"""`apply_weights`: multiply data by weights of samples, of features and of single entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.memory import Matrix
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import EntryError, as_matrix, smallest_distinguishable

__all__ = ["Weights", "apply_weights"]

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """The weight ρ_i φ_j ω_ij of every entry of V.

    Parameters
    ----------
    rows, columns
        ρ (n,) and φ (m,); None: 1.
    entries
        ω in CSR; an entry that is not stored has the weight 1, and a stored zero the weight 0.
        None: 1.
    """

    rows: Float | None = None
    columns: Float | None = None
    entries: Any = None


def apply_weights(V: RowBlocks, weights: Weights) -> RowBlocks:
    """Return ρ_i φ_j ω_ij V_ij, in memory or on disk as V is."""
    if weights.rows is None and weights.columns is None and weights.entries is None:
        return V
    if not isinstance(V, Matrix):
        raise ValueError(
            "Weights and missing values need data in memory, but the data are on disk: read the "
            "file with sipower.io.read."
        )
    array = (_scale_dense if V.dense else _scale_sparse)(V.array, weights, V.dtype)
    _drop_negligible(array if V.dense else array.data)
    options: Any = {"dtype": V.dtype, "n_jobs": V.threads, "rows_only": not V.has_columns}
    try:
        weighted = as_matrix(array, **options)
    except EntryError:
        raise ValueError(
            f"The weighted data have values out of the range of {V.dtype}: rescale the weights, "
            "such as `sample_weight`, or use dtype=float64."
        ) from None
    return weighted.with_names(V.row_names, V.column_names)


def _drop_negligible(values: Any) -> None:
    """Set values to zero, in place, that weights made negligible compared with the largest."""
    values[values < values.max(initial=0) * smallest_distinguishable(0, values.dtype)] = 0


def _scale_dense(V: Any, weights: Weights, dtype: Any) -> Any:
    scaled = V.astype(dtype)
    if weights.rows is not None:
        scaled *= weights.rows[:, None].astype(dtype)
    if weights.columns is not None:
        scaled *= weights.columns.astype(dtype)
    if weights.entries is not None:
        E = weights.entries
        at = np.repeat(np.arange(E.shape[0]), np.diff(E.indptr)), E.indices
        scaled[at] *= E.data.astype(dtype)
    return scaled


def _scale_sparse(V: Any, weights: Weights, dtype: Any) -> Any:
    rows = np.repeat(np.arange(V.shape[0]), np.diff(V.indptr))
    values = V.data.astype(np.float64)
    if weights.rows is not None:
        values *= weights.rows[rows]
    if weights.columns is not None:
        values *= weights.columns[V.indices]
    if weights.entries is not None:
        values *= _weights_at(weights.entries, rows, V.indices)
    scaled = sparse.csr_array((values.astype(dtype), V.indices, V.indptr), V.shape, copy=True)
    scaled.eliminate_zeros()
    return scaled


def _weights_at(entries: Any, rows: Any, columns: Any) -> Float:
    """Return ω at the given entries, 1 where none is stored."""
    m = entries.shape[1]
    stored = np.repeat(np.arange(entries.shape[0], dtype=np.int64), np.diff(entries.indptr)) * m
    stored += entries.indices
    wanted = rows.astype(np.int64) * m + columns
    at = np.minimum(np.searchsorted(stored, wanted), max(len(stored) - 1, 0))
    if not len(stored):
        return np.ones(len(wanted))
    return np.where(stored[at] == wanted, entries.data[at], 1.0)
