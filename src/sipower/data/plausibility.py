# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on data that do not look like counts, or whose samples look like features.

The remarks name the arguments of Python, such as ``layer='counts'``; the command writes them as its
options.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from sipower._files import shorten
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import EntryError, as_matrix
from sipower.kernels import Array

__all__ = [
    "ValueOrigin",
    "Values",
    "anndata_matrix",
    "anndata_origin",
    "count_remark",
    "data_remarks",
    "measure_values",
    "orientation_remark",
    "warn_about_values",
]

MIN_SHARE = 0.5  # share of whole numbers among the nonzeros of what looks like counts
MAX_VALUES = 2**20  # values that are looked at; from more, evenly spaced ones are taken
MAX_NAMES = 200
ROWS = 500  # first rows of another layer of an AnnData object that are looked at
_BARCODE = re.compile(r"[ACGT]{8,}(-\d+)?")
_FEATURES = {
    "genes": re.compile(r"ENS[A-Z]*[GT]\d{6,}(\.\d+)?"),
    "kinds of mutation": re.compile(r"[ACGT]\[[CT]>[ACGT]\][ACGT]"),
}
# Genes that are measured in nearly every experiment, by their human or mouse symbols.
_COMMON_GENES = frozenset(("ACTB", "B2M", "EEF1A1", "GAPDH", "RPL3", "RPLP0", "RPS6", "TMSB4X"))
_MIN_COMMON_GENES = 3


@dataclass(frozen=True)
class Values:
    """The share of whole numbers among the nonzeros of some data, and the largest value."""

    share: float
    largest: float

    @property
    def look_like_counts(self) -> bool:
        """Whether at least half of the nonzeros are whole numbers."""
        return self.share >= MIN_SHARE

    def __str__(self) -> str:
        kinds = "whole numbers" if self.share == 1 else f"{self.share:.0%} whole numbers"
        kinds = "no whole numbers" if self.share == 0 else kinds
        return f"{kinds}, largest {self.largest:.4g}"


@dataclass(frozen=True)
class ValueOrigin:
    """The place that the data come from, and the place of raw counts beside them.

    Parameters
    ----------
    name
        The data in a sentence, such as "X".
    holder
        What holds them and the counts, "file" or "object".
    counts
        What the holder has, such as "a layer 'counts'", and the argument that chooses it, such as
        "layer='counts'"; None if it has no counts.
    is_log
        Whether the holder says that the data are logarithms.
    """

    name: str
    holder: str = "file"
    counts: tuple[str, str] | None = None
    is_log: bool = False

    def advice(self) -> str:
        """Return the sentence that says which counts to use."""
        if self.counts is not None:
            what, argument = self.counts
            return f"The {self.holder} has {what}: use {argument}."
        if self.is_log:
            return "Its values are logarithms (uns['log1p']): use the raw counts they come from."
        return "Use the raw counts that its values come from."


# ---- values --------------------------------------------------------------------------------------


def measure_values(data: Any) -> Values:
    """Return what the values of an array, sparse matrix or row blocks look like.

    Of data on disk, only the first rows are read. Data without nonzeros look like counts.
    """
    largest = None
    if isinstance(data, RowBlocks):
        if data.is_in_memory:
            data = data.array
        else:
            largest = float(getattr(getattr(data, "source", None), "largest", 0.0))
            data = data.rows(0, _rows_to_read(data))
    values: Array = data if isinstance(data, np.ndarray) else data.data
    if values.dtype.kind not in "biuf":  # a layer may hold anything
        return Values(0.0, np.nan)
    if largest is None:
        largest = float(values.max(initial=0))
    if values.dtype.kind in "biu":
        return Values(1.0, largest)
    flat = values.ravel(order="K")[:: max(1, values.size // MAX_VALUES)]
    nonzeros = flat[flat != 0]
    share = float((nonzeros == np.floor(nonzeros)).mean()) if nonzeros.size else 1.0
    return Values(share, largest)


def _rows_to_read(V: RowBlocks) -> int:
    """Return the number of first rows on disk that hold about `MAX_VALUES` nonzeros."""
    per_row = max(V.nnz / V.shape[0], 1.0)
    return int(min(V.shape[0], max(1, MAX_VALUES // per_row)))


def count_remark(data: Any, origin: ValueOrigin | None = None) -> str | None:
    """Return a sentence for data that do not look like counts, or None.

    Dense data without an origin get none: spectrograms and images hold no counts.
    """
    if origin is None and _is_dense(data):
        return None
    values = measure_values(data)
    if values.look_like_counts:
        return None
    name, verb = ("The data", "hold") if origin is None else (origin.name, "holds")
    few = "no" if values.share == 0 else "few"
    kind = f"{name} {verb} {few} whole numbers (largest {values.largest:.3g})"
    return f"{kind}: KL-NMF models counts. {_advice(values, origin)}"


def _is_dense(data: Any) -> bool:
    """Return whether data are a dense array, or a sparse matrix that is at least half full."""
    if isinstance(data, np.ndarray) or getattr(data, "dense", False):
        return True
    return bool(data.nnz >= 0.5 * data.shape[0] * data.shape[1])


def _advice(values: Values, origin: ValueOrigin | None) -> str:
    if origin is not None:
        return origin.advice()
    if values.largest <= 1:
        return "Pass raw counts, for example of CountVectorizer instead of TfidfVectorizer."
    return "Pass raw counts instead of normalised or log-transformed values."


def anndata_origin(
    holder: str, layer: str | None, layers: Mapping[str, Any], *, is_log: bool
) -> ValueOrigin:
    """Return the origin of X, or of a layer, in an AnnData file or object.

    `layers` maps the name of each other layer to some of its values. "raw" is .raw unless there is
    a layer of that name. A layer that does not hold counts is not recommended, whatever its name.
    """
    names = sorted(layers, key=lambda name: name != "counts")
    with_counts = next((n for n in names if measure_values(layers[n]).look_like_counts), None)
    short = None if with_counts is None else repr(shorten(with_counts))
    counts = None if short is None else (f"a layer {short}", f"layer={short}")
    if with_counts == "raw":
        counts = "counts in .raw", "layer='raw'" if holder == "file" else "use_raw=True"
    name = {None: "X", "raw": ".raw"}.get(layer) or f"The layer {shorten(layer)!r}"
    return ValueOrigin(name, holder, counts, is_log)


# ---- names ---------------------------------------------------------------------------------------


def orientation_remark(
    samples: Iterable[Any] | None, features: Iterable[Any] | None, remedy: str = "transpose=True"
) -> tuple[str, ...]:
    """Return a remark if features are named like cells, or samples like features."""
    looks = [("features", "barcodes of cells")] if _mostly(_BARCODE, features) else []
    looks += [("samples", kind) for kind, p in _FEATURES.items() if _mostly(p, samples)]
    if samples is not None and _has_common_genes(samples):
        looks.append(("samples", "genes"))
    return tuple(
        f"The {side} look like {kind}: if samples and features are swapped, use {remedy}."
        for side, kind in looks[:1]
    )


def _mostly(pattern: re.Pattern[str], names: Iterable[Any] | None) -> bool:
    first = [] if names is None else list(islice(names, MAX_NAMES))
    return sum(bool(pattern.fullmatch(str(name))) for name in first) > len(first) / 2


def _has_common_genes(names: Iterable[Any]) -> bool:
    symbols = {name.upper() for name in names if isinstance(name, str) and len(name) <= 6}
    return len(symbols & _COMMON_GENES) >= _MIN_COMMON_GENES


# ---- both ----------------------------------------------------------------------------------------


def data_remarks(V: RowBlocks, origin: ValueOrigin | None, remedy: str) -> tuple[str, ...]:
    """Return the remarks on the values and on the names of validated data."""
    remark = count_remark(V, origin)
    names = orientation_remark(V.row_names, V.column_names, remedy)
    return names if remark is None else (remark, *names)


def warn_about_values(X: Any, V: RowBlocks) -> tuple[str, ...]:
    """Warn about what a user has passed to an estimator, and return the warnings.

    Row blocks draw no warning, because the code that made them has checked them already.
    """
    if isinstance(X, RowBlocks):
        return ()
    remarks = data_remarks(V, None, "`X.T`")
    for remark in remarks:
        warnings.warn(remark, UserWarning, stacklevel=4)
    return remarks


def anndata_matrix(adata: Any, layer: str | None, counts: Any, model: Any) -> RowBlocks:
    """Validate X or a layer of an AnnData object for a model, and warn about its values and names.

    `counts` are the values, already in memory.
    """
    origin = _object_origin(adata, layer)
    try:
        V = as_matrix(counts, dtype=model.dtype, n_jobs=model.n_jobs)
    except EntryError as problem:
        if origin.counts is None:
            raise
        raise ValueError(f"{problem} {origin.advice()}") from None
    named = V.with_names(np.asarray(adata.obs_names), np.asarray(adata.var_names))
    for remark in data_remarks(named, origin, "`adata.T`"):
        warnings.warn(remark, UserWarning, stacklevel=3)
    return named


def _object_origin(adata: Any, layer: str | None) -> ValueOrigin:
    """Return what an AnnData object says about X or a layer, and where it has counts."""
    others = {name: adata.layers[name] for name in adata.layers if name not in (None, layer)}
    if layer != "raw" and adata.raw is not None:
        others.setdefault("raw", adata.raw.X)
    values = {name: _first_rows(X) for name, X in others.items()}
    is_log = layer is None and "log1p" in adata.uns
    return anndata_origin("object", layer, values, is_log=is_log)


def _first_rows(X: Any) -> Any:
    """Return the first rows of a layer, which may be in a file or a Dask array."""
    rows = X[:ROWS]
    rows = rows.compute() if hasattr(rows, "compute") else rows
    return rows if sp.issparse(rows) else np.asarray(rows)
