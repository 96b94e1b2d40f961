# SPDX-License-Identifier: BSD-3-Clause
"""Expected counts of components: V_ij p(k | i, j), with p(k | i, j) = W_ik H_kj / (W H)_ij.

At a minimum of D in both factors, the expected counts of component k have the row sums
W_ik Σ_j H_kj and the column sums H_kj Σ_i W_ik. Size factors and batch effects cancel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array

__all__ = ["component_counts", "shared_counts"]

Numbers = NDArray[np.float64]
ENTRIES_AT_A_TIME = 200_000


def shared_counts(V: RowBlocks, one: tuple[Array, Array], other: tuple[Array, Array]) -> Numbers:
    """Return the expected counts that component a of one fit and b of another explain, (K_a, K_b).

    The entry (a, b) is Σ_ij V_ij p(a | i, j) p(b | i, j). Each fit is a pair W, H.
    """
    table = np.zeros((one[0].shape[1], other[0].shape[1]))
    for rows, columns, values in _entries(V):
        shares = [_shares(W[rows] * H[:, columns].T) for W, H in (one, other)]
        table += (shares[0] * values[:, None]).T @ shares[1]
    return table


def component_counts(V: RowBlocks, W: Array, H: Array, k: int) -> Any:
    """Return the expected counts of component k as a sparse array of the shape of V."""
    parts = []
    for rows, columns, values in _entries(V):
        share = _shares(W[rows] * H[:, columns].T)[:, k]
        parts.append((rows, columns, values * share))
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    counts = sparse.csr_array((values, (rows, columns)), V.shape)
    counts.eliminate_zeros()
    return counts


def _shares(products: Array) -> Numbers:
    """Return the products W_ik H_kj of entries, (entries, K), as shares; zero where all are."""
    products = products.astype(np.float64, copy=False)
    total = products.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(products, total, out=np.zeros_like(products), where=total > 0))


def _entries(V: RowBlocks) -> Iterator[tuple[Array, Array, Numbers]]:
    """Yield rows, columns and values of the entries, some rows at a time."""
    n = V.shape[0]
    step = max(1, int(ENTRIES_AT_A_TIME * n / max(V.nnz, 1)))
    for begin in range(0, n, step):
        part = sparse.coo_array(V.rows(begin, min(begin + step, n)))
        yield part.row + begin, part.col, part.data.astype(np.float64)
