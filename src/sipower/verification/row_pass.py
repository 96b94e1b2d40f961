# SPDX-License-Identifier: BSD-3-Clause
"""One pass over the rows of the data: the sums that objective and certificate consist of.

The rows are read once, some at a time, so that the memory is bounded also for data on disk.

======  ============================================  ====================
symbol  meaning                                       shape
======  ============================================  ====================
V       weighted data V' of some rows                 (rows, m)
X       exposure ω∘β of the same rows                 (rows, m)
W, H    scaled factors W', H'                         (rows, K), (m, K)
c, g, d masses, ratio sums and linear terms of items  see `item_gaps`
======  ============================================  ====================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import rel_entr, xlogy

from sipower.verification.statement import Float, ProblemStatement

__all__ = ["FeatureTotals", "RowTotals", "row_groups", "sum_over_rows"]

ENTRIES_AT_ONCE = 2**20  # entries of V, stored or as an array, that are read at a time
MAX_RATIO = 1e250  # of V and Z
PRODUCTS_AT_ONCE = 2**12  # entries of W Hᵀ that are computed at a time; they fit into the cache


@dataclass(frozen=True, eq=False)
class FeatureTotals:
    """Sums over rows, for all features.

    Parameters
    ----------
    log_term
        Σ V log(V/(X Z)).
    c, g, d
        Masses (m,), ratio sums (m, K) and linear terms (m, K) of the features.
    counts, expected
        Σ V and Σ X Z over the samples of every batch, (batches, m).
    """

    log_term: float
    c: Float
    g: Float
    d: Float
    counts: Float
    expected: Float

    def __add__(self, other: FeatureTotals) -> FeatureTotals:
        names = [field.name for field in fields(self)]
        return FeatureTotals(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True, eq=False)
class RowTotals:
    """Masses (rows,), ratio sums and linear terms (rows, K) of some rows."""

    c: Float
    g: Float
    d: Float


def row_groups(V: Any, entry_weight: Any) -> Iterator[tuple[int, int]]:
    """Yield the first row of every group of rows and the one after the last."""
    n, m = V.shape
    as_array = V.dense or entry_weight is not None
    stored = np.arange(n + 1, dtype=np.int64) * m if as_array else np.asarray(V.indptr)
    begin = 0
    while begin < n:
        end = int(np.searchsorted(stored, stored[begin] + ENTRIES_AT_ONCE, side="right")) - 1
        end = min(max(end, begin + 1), n)
        yield begin, end
        begin = end


def sum_over_rows(
    V: Any, W: Float, H: Float, statement: ProblemStatement, begin: int
) -> tuple[RowTotals, FeatureTotals]:
    """Return the sums of the rows from `begin` on; V is an array or CSR of the rows alone."""
    n = V.shape[0]
    V, omega = statement.weigh(V, begin)
    effects, batch = np.ones((1, V.shape[1])), np.zeros(n, np.int64)
    if statement.batch is not None and statement.effects is not None:
        effects, batch = statement.effects, statement.batch[begin : begin + n]
    members = sparse.csr_array((np.ones(n), (batch, np.arange(n))), (len(effects), n))
    log_term, g_rows, g = _ratio_sums(V, W, H)
    log_term -= _exposure_logs(V, omega, effects, batch)
    if omega is None:
        sums = members @ W  # (batches, K)
        d_rows, d = (effects @ H)[batch], effects.T @ sums
        expected = effects * (sums @ H.T)
    else:
        X = omega * effects[batch]
        d_rows, d = X @ H, X.T @ W
        expected = members @ (X * (W @ H.T))
    c_rows, c = (np.asarray(V.sum(axis=axis), np.float64).ravel() for axis in (1, 0))
    counts = _as_array(members @ V) if len(effects) > 1 else c[None]
    return RowTotals(c_rows, g_rows, d_rows), FeatureTotals(log_term, c, g, d, counts, expected)


def _ratio_sums(V: Any, W: Float, H: Float) -> tuple[float, Float, Float]:
    """Return Σ V log(V/Z) and the ratio sums of rows and features, with Z = W Hᵀ.

    The sum is infinite if some Z is zero where V is not; its ratio is then left out. Where Z is
    almost zero, the ratio is limited, so that its products with zeros are zero.
    """
    is_dense = isinstance(V, np.ndarray)
    values, Z = (V, W @ H.T) if is_dense else (V.data, _products_at(V.indptr, V.indices, W, H))
    with np.errstate(over="ignore"):
        ratio = np.divide(values, Z, out=np.zeros_like(Z), where=Z > 0)
    np.minimum(ratio, MAX_RATIO, out=ratio)
    log_term = float(rel_entr(values, Z).sum())
    if not is_dense:
        ratio = sparse.csr_array((ratio, V.indices, V.indptr), V.shape)
    return log_term, ratio @ H, ratio.T @ W


def _products_at(indptr: Any, indices: Any, W: Float, H: Float) -> Float:
    """Return (W Hᵀ)_ij at the nonzeros of CSR rows."""
    rows, Z = np.repeat(np.arange(len(W)), np.diff(indptr)), np.empty(len(indices))
    for begin in range(0, len(indices), PRODUCTS_AT_ONCE):
        some = slice(begin, begin + PRODUCTS_AT_ONCE)
        np.einsum(
            "ek,ek->e", W.take(rows[some], axis=0), H.take(indices[some], axis=0), out=Z[some]
        )
    return Z


def _exposure_logs(V: Any, omega: Any, effects: Float, batch: Any) -> float:
    """Return Σ V log X."""
    if omega is None and len(effects) == 1:
        return 0.0
    if isinstance(V, np.ndarray):
        X = effects[batch] if omega is None else omega * effects[batch]
        return float(xlogy(V, X).sum())
    rows = np.repeat(np.arange(V.shape[0]), np.diff(V.indptr))
    X = effects[batch[rows], V.indices]
    if omega is not None:
        X = X * omega[rows, V.indices]
    return float(xlogy(V.data, X).sum())


def _as_array(part: Any) -> Float:
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), np.float64)
