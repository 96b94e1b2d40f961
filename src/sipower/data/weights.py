# SPDX-License-Identifier: BSD-3-Clause
"""`Weights`: the weight ρ_i φ_j ω_ij of every entry, and arrays in memory times these weights.

All products are computed in float64 and rounded to the working type once. The product of the
weights comes first, (ρ_i φ_j) ω_ij, because its bits are then the same for the transpose.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.value_range import WeightedRange
from sipower.kernels import Array

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """The weight ρ_i φ_j ω_ij of every entry of V; all weights are finite and non-negative.

    Parameters
    ----------
    rows, columns
        ρ (n,) and φ (m,); None: 1.
    entries
        ω in CSR; an entry that is not stored has the weight 1, and a stored zero the weight 0.
        It must be canonical: indices in order, and no entry stored twice. None: 1.
    """

    rows: Float | None = None
    columns: Float | None = None
    entries: Any = None

    def transpose(self) -> Weights:
        """Return the weights of the transpose of V."""
        entries = None if self.entries is None else sparse.csr_array(self.entries.T)
        return Weights(self.columns, self.rows, entries)

    @property
    def sha256(self) -> str:
        """A fingerprint of all weights."""
        entries = self.entries
        parts = (entries.indptr, entries.indices, entries.data) if entries is not None else ()
        sha256 = hashlib.sha256()
        for part in (self.rows, self.columns, *parts):
            sha256.update(b"-" if part is None else np.ascontiguousarray(part).data)
            sha256.update(b"|")
        return sha256.hexdigest()

    def for_nonzeros(self, begin: int, indptr: Array, indices: Array) -> Float:
        """Return the weights of the nonzeros of consecutive CSR rows.

        Row `begin` is the first one. Its nonzeros are those from indptr[0] = 0 on, and `indices`
        are the columns of all nonzeros, in ascending order within a row.
        """
        rows = np.repeat(np.arange(begin, begin + len(indptr) - 1), np.diff(indptr))
        weights = np.ones(len(indices))
        if self.rows is not None:
            weights *= self.rows[rows]
        if self.columns is not None:  # invalid columns of a damaged file are reported later
            weights *= self.columns.take(indices, mode="clip")
        if self.entries is not None:
            special_rows, special_columns, special = self._special(begin, begin + len(indptr) - 1)
            m = self.entries.shape[1]
            wanted, known = special_rows * m + special_columns, rows * m + indices
            at = np.searchsorted(known, wanted)
            found = at < len(known)
            found[found] = known[at[found]] == wanted[found]
            weights[at[found]] *= special[found]
        return weights

    def for_rows(self, begin: int, end: int, n_columns: int) -> Float:
        """Return the weights of all entries of the rows `begin` to `end` − 1, as an array."""
        weights = np.ones((end - begin, n_columns))
        if self.rows is not None:
            weights *= self.rows[begin:end, None]
        if self.columns is not None:
            weights *= self.columns
        if self.entries is not None:
            rows, columns, special = self._special(begin, end)
            weights[rows - begin, columns] *= special
        return weights

    def _special(self, begin: int, end: int) -> tuple[Array, Array, Array]:
        """Return row, column and weight of the stored ω_ij of the rows `begin` to `end` − 1."""
        starts = self.entries.indptr[begin : end + 1]
        stored = slice(starts[0], starts[-1])
        rows = np.repeat(np.arange(begin, end), np.diff(starts))
        return rows, self.entries.indices[stored], self.entries.data[stored]


def scale_dense(V: Array, weights: Weights, dtype: np.dtype[Any], bounds: list[int]) -> Array:
    """Return an array times its weights; `bounds` are those of the row blocks."""
    scaled, extremes = np.empty(V.shape, dtype), WeightedRange()
    with np.errstate(over="ignore"):  # an overflow is an error at the end
        for begin, end in pairwise(bounds):
            products = weights.for_rows(begin, end, V.shape[1])
            products *= V[begin:end]
            extremes.add(products)
            scaled[begin:end] = products
    extremes.check(dtype)
    return scaled


def scale_csr(V: Any, weights: Weights, dtype: np.dtype[Any], bounds: list[int]) -> Any:
    """Return a canonical CSR array times its weights, without the entries that become 0."""
    scaled, extremes = np.empty(len(V.data), dtype), WeightedRange()
    with np.errstate(over="ignore"):  # an overflow is an error at the end
        for begin, end in pairwise(bounds):
            starts = V.indptr[begin : end + 1]
            part = slice(starts[0], starts[-1])
            products = weights.for_nonzeros(begin, starts - starts[0], V.indices[part])
            products *= V.data[part]
            extremes.add(products)
            scaled[part] = products
    extremes.check(dtype)
    # Views, because V may share its indices with the caller's array, which stays writeable.
    indptr, indices, values = (part.view() for part in drop_zeros(V.indptr, V.indices, scaled))
    return sparse.csr_array((values, indices, indptr), shape=V.shape)


def drop_zeros(indptr: Array, indices: Array, values: Array) -> tuple[Array, Array, Array]:
    """Return the three arrays of CSR rows without the values 0; the arguments are not changed."""
    is_kept = values != 0
    if is_kept.all():
        return indptr, indices, values
    upto = np.append(0, np.cumsum(is_kept))
    return upto[indptr], indices[is_kept], values[is_kept]
