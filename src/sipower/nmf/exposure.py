# SPDX-License-Identifier: BSD-3-Clause
"""`Exposure`: how much of every entry of W Hᵀ is observed, by weights, missing values and batches.

    V ~ X ∘ (W Hᵀ),   X_ij = β_{b(i), j} ω_ij

The divergence of this model is Σ_ij [X_ij z_ij − v_ij log z_ij] up to a constant, with z = W Hᵀ, so
every row i of W has its own linear term d_i = Σ_j X_ij h_j, and so has every row of H. The weights
ω are 1 except at the special entries, which are stored: their sums are corrections of d that cost
2·K flops for each special entry. A missing entry has the weight 0. Weights of whole samples and
features, and size factors, only scale W and H and are not part of X
(`sipower.estimators.prepared`).

======  ======================================================  ============
symbol  meaning                                                 shape
======  ======================================================  ============
β       batch effects; 1 without batches                        (batches, m)
b       batch of every sample                                   (n,)
E       ω − 1, stored at the special entries                    (n, m)
======  ======================================================  ============
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.kernels import Array

__all__ = ["Exposure", "batch_sums"]

Float = NDArray[np.float64]
CANCELLED = 1e-6  # where special entries leave less than this share of d, it is computed directly
ITEMS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Exposure:
    """The exposure X of all entries.

    Parameters
    ----------
    special
        E in CSR; None: all weights are 1.
    log_sum
        Σ v_ij log ω_ij over the special entries.
    effects
        Batch effects β; None: no batches.
    batch
        Batch of every sample, numbered from 0.
    counts
        Sums of V over the samples of every batch, (batches, m).
    """

    special: Any = None
    log_sum: float = 0.0
    effects: Float | None = None
    batch: Array | None = None
    counts: Float | None = None

    @cached_property
    def _special_sides(self) -> tuple[Any, Any] | None:
        """E ∘ β and its transpose, in CSR."""
        if self.special is None:
            return None
        E = self.special
        if self.effects is not None and self.batch is not None:
            rows = np.repeat(self.batch, np.diff(E.indptr))
            E = sparse.csr_array(
                (E.data * self.effects[rows, E.indices], E.indices, E.indptr), E.shape
            )
        return E, sparse.csr_array(E.T)

    @cached_property
    def _special_by_batch(self) -> Any:
        """Eᵀ with one row for every batch and feature, (batches · m, n), in CSR."""
        assert self.batch is not None
        assert self.effects is not None
        E, (n, m) = self.special, self.special.shape
        samples = np.repeat(np.arange(n), np.diff(E.indptr))
        at = self.batch[samples].astype(np.int64) * m + E.indices, samples
        return sparse.csr_array((E.data, at), (len(self.effects) * m, n))

    def linear_terms(self, side: int, basis: Array) -> Float:
        """Return d of every item, (items, K), or (K,) if all items have the same.

        Parameters
        ----------
        side
            0: items are samples and the basis is H (m, K). 1: items are features, the basis is W.
        basis
            The other factor.
        """
        basis = basis.astype(np.float64, copy=False)
        d = self._sums(side, basis)
        if self._special_sides is None:
            return d
        corrected: Float = d + self._special_sides[side] @ basis
        items = np.flatnonzero((corrected < CANCELLED * d).any(axis=1))
        for begin in range(0, len(items), ITEMS_AT_ONCE):
            some = items[begin : begin + ITEMS_AT_ONCE]
            corrected[some] = self._rows(side, some) @ basis
        return corrected

    def _rows(self, side: int, items: Array) -> Float:
        """Return X of some samples (side 0), or of some features as rows (side 1)."""
        assert self._special_sides is not None
        special: Float = self._special_sides[side][items].toarray()
        if self.effects is None or self.batch is None:
            return 1 + special
        return special + (
            self.effects[self.batch[items]] if side == 0 else self.effects.T[items][:, self.batch]
        )

    def _sums(self, side: int, basis: Float) -> Float:
        if self.effects is None or self.batch is None:
            return np.asarray(basis.sum(axis=0))
        if side == 0:
            return np.asarray((self.effects @ basis)[self.batch])
        return np.asarray(self.effects.T @ batch_sums(basis, self.batch, len(self.effects)))

    def at(self, rows: Array, columns: Array) -> Float:
        """Return X at the given entries."""
        x = np.ones(len(rows))
        if self.special is not None:
            x = 1 + _stored_at(self.special, rows, columns)
        if self.effects is not None and self.batch is not None:
            x = x * self.effects[self.batch[rows], columns]
        return x

    @property
    def log_term(self) -> float:
        """Σ_ij v_ij log X_ij, the part of D that W and H do not change."""
        if self.effects is None or self.counts is None:
            return self.log_sum
        return self.log_sum + float((self.counts * np.log(self.effects)).sum())

    def expected(self, W: Array, H: Array) -> Float:
        """Return Σ ω_ij z_ij over the samples of every batch, (batches, m)."""
        assert self.batch is not None
        assert self.effects is not None
        W, H = W.astype(np.float64, copy=False), H.astype(np.float64, copy=False)
        full = batch_sums(W, self.batch, len(self.effects)) @ H.T
        if self.special is None:
            return full
        special = (self._special_by_batch @ W).reshape(*full.shape, -1)
        sums: Float = full + np.einsum("bjk,jk->bj", special, H)
        features = np.flatnonzero((sums < CANCELLED * full).any(axis=0))
        for begin in range(0, len(features), ITEMS_AT_ONCE):
            some = features[begin : begin + ITEMS_AT_ONCE]
            weighted = (1 + self.special[:, some].toarray()) * (W @ H[some].T)
            sums[:, some] = batch_sums(weighted, self.batch, len(self.effects))
        return sums


def batch_sums(W: Float, batch: Array, batches: int) -> Float:
    """Return the sums of the rows of W over the samples of every batch, (batches, K)."""
    indicator = sparse.csr_array(
        (np.ones(len(batch)), (batch, np.arange(len(batch)))), (batches, len(batch))
    )
    return np.asarray(indicator @ W)


def _stored_at(special: Any, rows: Array, columns: Array) -> Float:
    """Return the stored values at the given entries, 0 where none is stored."""
    m = special.shape[1]
    numbers = np.repeat(np.arange(special.shape[0], dtype=np.int64), np.diff(special.indptr))
    stored, wanted = numbers * m + special.indices, np.asarray(rows, np.int64) * m + columns
    at = np.minimum(np.searchsorted(stored, wanted), max(len(stored) - 1, 0))
    if not len(stored):
        return np.zeros(len(wanted))
    return np.where(stored[at] == wanted, special.data[at], 0.0)
