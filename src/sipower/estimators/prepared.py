# SPDX-License-Identifier: BSD-3-Clause
"""`Prepared`: data and terms of the problem that is solved, in its own scale.

    D(ρφω∘V ‖ ρφω∘Z),  Z_ij = s_i β_bj (W H)_ij     is     D(V' ‖ X ∘ W'H'),
    V' = ρφω∘V,  W' = diag(ρs) W,  H' = H diag(φ),  X_ij = β_bj ω_ij.

The divergence is homogeneous, so weights of whole samples and features and size factors only scale
the factors; weights of entries and batch effects are the exposure X (`sipower.nmf.exposure`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.row_blocks import RowBlocks
from sipower.data.weighting import apply_weights
from sipower.estimators.exact_rows import item_name
from sipower.estimators.observation import Observation
from sipower.kernels import Array
from sipower.nmf.exposure import Exposure

__all__ = [
    "Prepared",
    "batch_counts",
    "batch_numbers",
    "prepare",
    "row_chunks",
    "warn_if_unobserved",
]

Float = NDArray[np.float64]
ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Prepared:
    """The weighted data V', the exposure X, and the scales of W' and H'.

    Parameters
    ----------
    V
        Weighted data.
    exposure
        Exposure of single entries; None: all 1.
    row_scale, column_scale
        ρs (n,) and φ (m,); None: 1.
    sample_weight
        ρ (n,); None: 1.
    """

    V: RowBlocks
    exposure: Exposure | None = None
    row_scale: Float | None = None
    column_scale: Float | None = None
    sample_weight: Float | None = None

    def scale_rows(self, W: Array) -> Array:
        """Return W' for W (n, K)."""
        return W if self.row_scale is None else _times(W, self.row_scale)

    def scale_columns(self, H: Array) -> Array:
        """Return H' for H (m, K)."""
        return H if self.column_scale is None else _times(H, self.column_scale)

    def restore_rows(self, W: Array) -> Array:
        """Return W for W'; zero where the scale is zero."""
        return W if self.row_scale is None else _divide("W", W, self.row_scale)

    def restore_columns(self, H: Array) -> Array:
        """Return H for H'; zero where the scale is zero."""
        return H if self.column_scale is None else _divide("H", H, self.column_scale)


def _times(factor: Array, scale: Float) -> Array:
    return np.ascontiguousarray(factor * scale[:, None].astype(factor.dtype))


def _divide(name: str, factor: Array, scale: Float) -> Array:
    """Return the factor divided by the scale of its items, which may exceed the working type."""
    out = np.zeros(factor.shape)
    np.divide(factor, scale[:, None], out=out, where=(factor > 0) & (scale[:, None] > 0))
    with np.errstate(over="ignore"):
        divided = out.astype(factor.dtype)
    if not np.isfinite(divided).all():
        raise ValueError(
            f"{name} is too large for {factor.dtype}: rescale `offsets` or the weights, or use "
            "float64."
        )
    return divided


def prepare(
    V: RowBlocks, observation: Observation, effects: Any = None, batches: Any = None
) -> Prepared:
    """Return the data and terms of the problem that is solved.

    Parameters
    ----------
    V
        Data, (n, m).
    observation
        Weights, missing values, size factors and batches.
    effects, batches
        Batch effects β (batches, m) and the labels of their batches, if there are batches. A label
        that is not among them has the effect 1.
    """
    if observation.is_plain:
        return Prepared(V)
    weights, offsets = observation.weights, observation.offsets
    weighted = apply_weights(V, weights)
    row_scale = weights.rows
    if offsets is not None:
        row_scale = offsets if row_scale is None else row_scale * offsets
    exposure = None
    if weights.entries is not None or observation.batch is not None:
        exposure = _exposure(weighted, observation, effects, batches)
    return Prepared(weighted, exposure, row_scale, weights.columns, weights.rows)


def _exposure(V: RowBlocks, observation: Observation, effects: Any, batches: Any) -> Exposure:
    entries, special, log_sum = observation.weights.entries, None, 0.0
    if entries is not None:
        special = sparse.csr_array((entries.data - 1, entries.indices, entries.indptr), V.shape)
        log_sum = _log_sum(V, entries)
    if observation.batch is None:
        return Exposure(special, log_sum)
    numbers = batch_numbers(observation.batch, batches)
    if (numbers == len(batches)).any():
        effects = np.vstack([effects, np.ones(V.shape[1])])
    counts = batch_counts(V, numbers, len(effects))
    return Exposure(special, log_sum, np.asarray(effects, np.float64), numbers, counts)


def _log_sum(V: RowBlocks, entries: Any) -> float:
    """Return Σ v_ij log ω_ij over the stored weights."""
    positive = np.where(entries.data > 0, entries.data, 1.0)
    if (positive == 1).all():  # missing values only
        return 0.0
    logs = sparse.csr_array((np.log(positive), entries.indices, entries.indptr), entries.shape)
    parts = [sparse.csr_array(rows).multiply(logs[begin:end]) for begin, end, rows in row_chunks(V)]
    return float(sum(part.sum(dtype=np.float64) for part in parts))


def batch_numbers(batch: Array, batches: Any) -> Array:
    """Return the position of every label of `batch` in `batches`, or their number if absent."""
    places = {label: at for at, label in enumerate(np.asarray(batches).tolist())}
    return np.array([places.get(label, len(places)) for label in batch.tolist()])


def batch_counts(V: RowBlocks, numbers: Array, batches: int) -> Float:
    """Return the sums of V over the samples of every batch, (batches, m)."""
    counts = np.zeros((batches, V.shape[1]))
    for begin, end, rows in row_chunks(V):
        count = end - begin
        at = numbers[begin:end], np.arange(count)
        counts += sparse.csr_array((np.ones(count), at), (batches, count)) @ rows.astype(np.float64)
    return counts


def row_chunks(V: RowBlocks) -> Any:
    """Yield the first and last row and the rows themselves, some thousand rows at a time."""
    for begin in range(0, V.shape[0], ROWS_AT_ONCE):
        end = min(begin + ROWS_AT_ONCE, V.shape[0])
        yield begin, end, V.rows(begin, end)


def warn_if_unobserved(V: RowBlocks, observation: Observation, *, fitting: bool) -> None:
    """Warn if all entries of some sample or feature are unobserved or have the weight 0.

    Features matter only in a fit: H is not changed by new samples.
    """
    entries = observation.weights.entries
    if entries is None:
        return
    weights = observation.weights.columns
    counted = np.ones(V.shape[1], bool) if weights is None else weights > 0
    hidden = (entries.data == 0) & counted[entries.indices]
    rows = np.repeat(np.arange(V.shape[0]), np.diff(entries.indptr))[hidden]
    sides = (
        ("sample", rows, counted.sum(), V.row_names, "W"),
        ("feature", entries.indices[hidden], V.shape[0], V.column_names, "H"),
    )
    for kind, at, length, names, factor in sides if fitting else sides[:1]:
        empty = np.flatnonzero(np.bincount(at) == length)
        if len(empty):
            warnings.warn(
                f"{len(empty)} {kind}{'s have' if len(empty) > 1 else ' has'} no observed entry, "
                f"such as {item_name(kind, int(empty[0]), names)}: "
                f"{factor} is zero there unless it has a prior.",
                UserWarning,
                stacklevel=4,
            )
