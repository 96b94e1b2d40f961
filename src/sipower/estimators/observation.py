# SPDX-License-Identifier: BSD-3-Clause
"""`Observation`: validated weights, missing values, size factors and batches of some data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sipower.data.containers import as_numbers
from sipower.data.names import Items, arrange, axis_labels, data_items, has_labels
from sipower.data.weighting import Weights
from sipower.kernels import Array

__all__ = [
    "ARGUMENTS",
    "NOTHING_GIVEN",
    "Observation",
    "as_boolean",
    "as_given",
    "as_labels",
    "as_observation",
    "is_sparse",
    "match_arguments",
    "match_observed",
    "match_with",
]

Float = NDArray[np.float64]
ARGUMENTS = ("sample_weight", "feature_weight", "weights", "mask", "offsets", "batch")


NOTHING_GIVEN: tuple[Any, ...] = (None,) * len(ARGUMENTS)
ALL_ONE = Weights()


@dataclass(frozen=True, eq=False)
class Observation:
    """How V was observed: V_ij has the weight ρ_i φ_j ω_ij and the expectation s_i β_bj (W H)_ij.

    Parameters
    ----------
    weights
        The weights ρ of samples, φ of features and ω of entries.
    offsets
        Size factors s, (n,); None: 1.
    batch
        Label of the batch of every sample, (n,); None: no batches.
    """

    weights: Weights = ALL_ONE
    offsets: Float | None = None
    batch: Array | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing was given."""
        w = self.weights
        given = (w.rows, w.columns, w.entries, self.offsets, self.batch)
        return all(part is None for part in given)

    def without_sample_weights(self) -> Observation:
        """Return the same without weights of samples, which do not change any row of W."""
        return replace(self, weights=replace(self.weights, rows=None))

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments of `KLNMF.fit` with the same meaning."""
        w = self.weights
        values = (w.rows, w.columns, w.entries, None, self.offsets, self.batch)
        return dict(zip(ARGUMENTS, values, strict=True))

    def take(self, rows: Array) -> Observation:
        """Return the observation of some samples."""
        entries = self.weights.entries
        part = Weights(
            None if self.weights.rows is None else self.weights.rows[rows],
            self.weights.columns,
            None if entries is None else sp.csr_array(entries[rows]),
        )
        offsets = None if self.offsets is None else self.offsets[rows]
        return Observation(part, offsets, None if self.batch is None else self.batch[rows])


def match_observed(X: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of `ARGUMENTS` in the order of the data X.

    Those of a DataFrame or a Series are matched by the names of samples and features.
    """
    if not any(map(has_labels, given)):
        return given
    return match_with(*data_items(X), given)


def match_with(samples: Items, features: Items, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of `ARGUMENTS` in the order of samples and features."""
    both = samples, features
    axes: dict[str, tuple[Items, ...]] = {
        "sample_weight": (samples,), "feature_weight": (features,), "weights": both,
        "mask": both if len(axis_labels(given[ARGUMENTS.index("mask")])) == 2 else (features,),
        "offsets": (samples,), "batch": (samples,),
    }  # fmt: skip
    return tuple(
        value if value is None else arrange(name, value, *axes[name])
        for name, value in zip(ARGUMENTS, given, strict=True)
    )


def match_arguments(X: Any, observed: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments of `KLNMF.fit` in the order of the data X, without None."""
    values = zip(ARGUMENTS, match_observed(X, as_given(observed)), strict=True)
    return {name: value for name, value in values if value is not None}


def as_given(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of `ARGUMENTS` from keyword arguments, None for those that are absent."""
    for name in arguments:
        if name not in ARGUMENTS:
            raise TypeError(
                f"`{name}` is not an argument of KLNMF.fit: use {', '.join(ARGUMENTS[:-1])} or "
                f"{ARGUMENTS[-1]}."
            )
    return tuple(arguments.get(name) for name in ARGUMENTS)


def as_observation(
    shape: tuple[int, int], given: tuple[Any, ...], *, missing: Any = None, fitting: bool = True
) -> Observation:
    """Validate the arguments of `KLNMF.fit` that say how the data were observed.

    Parameters
    ----------
    shape
        Shape (n, m) of the data.
    given
        Values of `ARGUMENTS`, None where nothing is given.
    missing
        Entries that are NaN in the data, bool (n, m) in CSR; None: none.
    fitting
        Whether something is learned, so that some sample must have a positive weight.
    """
    sample_weight, feature_weight, weights, mask, offsets, batch = given
    n, m = shape
    rows = _as_vector("sample_weight", sample_weight, n, "samples")
    columns = _as_vector("feature_weight", feature_weight, m, "features")
    for name, vector in (("sample_weight", rows if fitting else None), ("feature_weight", columns)):
        if vector is not None and not vector.any():
            raise ValueError(f"`{name}` must not be all zero: nothing would be left to fit.")
    mask = None if mask is None else as_boolean("mask", mask)
    if mask is not None and mask.ndim == 1:  # a mask of features
        columns = _multiply(columns, _as_mask_vector(mask, m))
        mask = None
    parts = [
        None if weights is None else _as_entries(weights, shape),
        None if mask is None else _unobserved(mask, shape),
        None if missing is None else sp.csr_array(missing, dtype=np.float64) * 0.0,
    ]
    entries = None
    for part in parts:
        if part is not None and part.nnz:
            entries = part if entries is None else _combine(entries, part)
    if fitting and entries is not None and entries.nnz == n * m and not entries.data.any():
        raise ValueError(
            "No entry is observed (`mask`, `weights` or NaN): nothing would be left to fit."
        )
    sizes = _as_vector("offsets", offsets, n, "samples")
    if sizes is not None and not (sizes > 0).all():
        raise ValueError(
            f"`offsets` must be positive, got {sizes.min():g} for sample {int(sizes.argmin())}: "
            "leave out samples whose size factor is zero."
        )
    labels = None if batch is None else as_labels(batch, n)
    return Observation(Weights(rows, columns, entries), sizes, labels)


def is_sparse(array: Any) -> bool:
    """Return whether an array is one of scipy's sparse arrays or matrices."""
    return bool(sp.issparse(array))


def _as_vector(name: str, values: Any, length: int, what: str) -> Float | None:
    if values is None:
        return None
    vector = as_numbers(name, values)
    if vector.shape != (length,):
        raise ValueError(
            f"`{name}` must have one number for each of the {length} {what}, got shape "
            f"{vector.shape}."
        )
    bad = ~(np.isfinite(vector) & (vector >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"`{name}` must be finite and non-negative, got {vector[at]:g} at position {at}."
        )
    return vector


def as_boolean(name: str, values: Any) -> Array:
    """Return a boolean argument as an array whose type and shape remain to be checked."""
    try:
        return np.asarray(values.toarray() if is_sparse(values) else values)
    except ValueError:
        raise ValueError(
            f"`{name}` must be a boolean array, got rows of several lengths."
        ) from None


def _as_mask_vector(vector: Array, m: int) -> Float:
    if vector.dtype != bool or vector.shape != (m,):
        raise ValueError(
            f"`mask` must be boolean, with shape (samples, {m}) or ({m},), got {vector.dtype} with "
            f"shape {vector.shape}."
        )
    if not vector.any():
        raise ValueError("`mask` must be True for some feature: nothing would be left to fit.")
    return vector.astype(np.float64)


def _multiply(a: Float | None, b: Float) -> Float:
    return b if a is None else a * b


def _as_entries(weights: Any, shape: tuple[int, int]) -> Any:
    """Return ω in CSR; a sparse array has the weight 1 where nothing is stored."""
    if is_sparse(weights):
        entries = sp.csr_array(weights, dtype=np.float64, copy=True)
        stored = weights.nnz if weights.format == "coo" else entries.nnz
        entries.sum_duplicates()
        if entries.nnz != stored:
            raise ValueError("`weights` must have one weight per entry, got duplicates.")
    else:
        dense = as_numbers("weights", weights)
        if dense.ndim != 2:
            raise ValueError(f"`weights` must have shape {shape}, got {dense.shape}.")
        at = np.nonzero(dense != 1)
        entries = _from_positions(at, dense[at], dense.shape)
    if entries.shape != shape:
        raise ValueError(f"`weights` must have the shape {shape} of the data, got {entries.shape}.")
    bad = ~(np.isfinite(entries.data) & (entries.data >= 0))
    if bad.any():
        value, (row, column) = entries.data[bad][0], _position(entries, int(np.argmax(bad)))
        raise ValueError(
            f"`weights` must be finite and non-negative, got {value:g} at ({row}, {column})."
        )
    return entries


def _unobserved(observed: Array, shape: tuple[int, int]) -> Any:
    """Return the weight 0 at the entries that a mask does not observe, in CSR."""
    if observed.dtype != bool or observed.shape != shape:
        raise ValueError(
            f"`mask` must be boolean with the shape {shape} of the data, True where an entry is "
            f"observed, got {observed.dtype} with shape {observed.shape}."
        )
    at = np.nonzero(~observed)
    return _from_positions(at, np.zeros(len(at[0])), shape)


def _from_positions(at: Any, values: Float, shape: tuple[int, int]) -> Any:
    """Return a CSR array with explicit zeros; `at` is sorted by row and then by column."""
    indptr = np.append(0, np.cumsum(np.bincount(at[0], minlength=shape[0])))
    return sp.csr_array((values, at[1].astype(np.int32), indptr), shape)


def _position(entries: Any, at: int) -> tuple[int, int]:
    row = int(np.searchsorted(entries.indptr, at, side="right")) - 1
    return row, int(entries.indices[at])


def _combine(a: Any, b: Any) -> Any:
    """Return the product of two sets of weights, which are 1 where nothing is stored."""
    m = a.shape[1]
    keys, values = [], []
    for part in (a, b):
        rows = np.repeat(np.arange(part.shape[0], dtype=np.int64), np.diff(part.indptr))
        keys.append(rows * m + part.indices)
        values.append(part.data)
    union, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    product = np.ones(len(union))
    np.multiply.at(product, inverse, np.concatenate(values))
    return _from_positions(np.divmod(union, m), product, a.shape)


def as_labels(batch: Any, n: int) -> Array:
    """Return the labels of the batches of `n` samples, without missing ones."""
    try:
        labels = np.asarray(batch)
    except ValueError:
        raise ValueError("`batch` must be an array of labels, one for each sample.") from None
    if labels.shape != (n,):
        raise ValueError(
            f"`batch` must have one label for each of the {n} samples, got shape {labels.shape}."
        )
    # NumPy writes a NaN among strings as "nan".
    absent = np.isin(labels.astype(str), ["nan", "NaT", "<NA>"])
    absent |= np.array([label is None for label in labels.tolist()])
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())  # integers stay integers
        labels = labels.astype(str) if labels.dtype.kind == "O" else labels
    if absent.any():
        raise ValueError(
            f"`batch` must have a label for every sample, got none for sample "
            f"{int(np.argmax(absent))}."
        )
    return labels
