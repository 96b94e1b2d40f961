# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on data that do not look like counts, have totals among them, or look transposed.

The remarks name the arguments of Python, such as ``layer='counts'``; the command writes them as its
options.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from sipower._files import quote
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import EntryError
from sipower.kernels import Array

__all__ = [
    "Remark",
    "ValueOrigin",
    "Values",
    "anndata_origin",
    "anndata_values",
    "count_remark",
    "data_remarks",
    "likely_kind",
    "measure_values",
    "new_data_remarks",
    "orientation_remark",
    "total_remarks",
    "warn_about_values",
    "warn_user",
]

MIN_SHARE = 0.5  # share of whole numbers among the nonzeros of what looks like counts
MAX_VALUES = 2**20  # values that are looked at; from more, evenly spaced ones are taken
MIN_COUNTS = 0.99  # the same share of data that certainly are counts
MIN_DISTINCT = 3  # distinct whole numbers that make new data counts
MIN_ROWS = 5  # with which the values of rows are compared with each other
SUM_TOL, ROUNDED_SUM_TOL = 1e-3, 0.05  # of equal sums of rows; of sums of rounded percentages
MEAN_TOL = 0.02  # of the mean of such sums
MIN_WHOLE, WHOLE_TOL, MAX_WHOLE = 0.95, 1e-4, 100.0  # which quotients are whole numbers
TOTAL_TOL = 1e-6
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


class Remark(str):
    """A sentence for the user, and what it is about: "values", "totals" or "orientation"."""

    __slots__ = ("topic",)
    topic: str

    def __new__(cls, text: str, topic: str) -> Remark:
        """Return the sentence with its topic."""
        remark = super().__new__(cls, text)
        remark.topic = topic
        return remark

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a copy."""
        return Remark, (str(self), self.topic)


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


def count_remark(
    data: Any,
    origin: ValueOrigin | None = None,
    *,
    fitted: float | None = None,
    dense: bool | None = None,
) -> Remark | None:
    """Return a sentence for data that do not look like counts, or None.

    New data for a model get one as well if they are counts and those of the fit were not.
    Dense data without an origin, such as spectrograms and images, get one only if they are clearly
    normalised or logarithms of counts, or if the model was fitted to counts.

    Parameters
    ----------
    data
        An array, a sparse matrix or row blocks.
    origin
        Where the data come from; None: not known.
    fitted
        Share of whole numbers in the data that a model was fitted to, if these are new data for it;
        data of the same kind get no remark. None: there is no earlier fit, or it is not known.
    dense
        Whether the data are dense; None: as they are stored.
    """
    values = measure_values(data)
    name, verb = ("The data", "hold") if origin is None else (origin.name, "holds")
    if fitted is not None and fitted <= 1 - MIN_COUNTS and _are_counts(values, data):
        text = (
            f"{name} {verb} whole numbers (largest {values.largest:.3g}), those of the fit did not"
        )
        return Remark(f"{text}: pass values that were made in the same way.", "values")
    if values.look_like_counts or (fitted is not None and fitted < MIN_SHARE):
        return None
    looks, was_counts = likely_kind(data), fitted is not None and fitted >= MIN_COUNTS
    is_dense = _is_dense(data) if dense is None else dense
    if origin is None and is_dense and looks is None and not was_counts:
        return None
    few = "no" if values.share == 0 else "few"
    text = f"{name} {verb} {few} whole numbers (largest {values.largest:.3g}): KL-NMF models counts"
    text += ", as those of the fit were" if was_counts else ""
    text += "" if looks is None else f", and {looks}"
    advice = _advice(values, looks) if origin is None else origin.advice()
    return Remark(f"{text}. {advice}", "values")


def new_data_remarks(
    remarks: tuple[str, ...], counts: Any, fitted: float | None
) -> tuple[str, ...]:
    """Return the remarks on a file of new data for a model; see `count_remark` for `fitted`."""
    others = tuple(r for r in remarks if not (isinstance(r, Remark) and r.topic == "values"))
    if fitted is None or (fitted >= MIN_SHARE and others != remarks):
        return remarks
    remark = count_remark(counts, fitted=fitted)
    return others if remark is None else (*others, remark)


def _are_counts(values: Values, data: Any) -> bool:
    """Return whether all values are whole numbers, with several different ones and a 1 among them.

    Without a 1 they may be percentages or CPM of few counts, which are whole by chance.
    """
    if values.share < 1:
        return False
    distinct = np.unique(_first_part(data).data)
    return len(distinct) >= MIN_DISTINCT and bool(distinct[0] == 1)


def _is_dense(data: Any) -> bool:
    """Return whether data are a dense array, or a sparse matrix that is at least half full."""
    if isinstance(data, np.ndarray) or getattr(data, "dense", False):
        return True
    return bool(data.nnz >= 0.5 * data.shape[0] * data.shape[1])


def _advice(values: Values, looks: str | None) -> str:
    if values.largest <= 1 and looks in (None, _SCALED):
        return "Pass raw counts, for example of CountVectorizer instead of TfidfVectorizer."
    return "Pass raw counts instead of normalised or log-transformed values."


# ---- what the values were made of ----------------------------------------------------------------

_INVERSES: dict[str, Callable[[Array], Array]] = {
    "": lambda v: v,
    "natural": np.expm1,
    "binary": lambda v: np.expm1(np.log(2) * v),
    "decimal": lambda v: np.expm1(np.log(10) * v),
}
_SCALED = "these look like counts divided by the size of their row"
_SUMS = {1.0: ", as shares do", 100.0: ", as percentages do", 1e6: ", as TPM and CPM do"}


def likely_kind(data: Any) -> str | None:
    """Return the clause that says what values that are no counts look like, or None."""
    rows = _first_part(data)
    lengths = np.diff(rows.indptr)
    long_rows = rows[lengths >= 2]
    if long_rows.shape[0] < MIN_ROWS:
        return None
    v = long_rows.data.astype(np.float64)
    with np.errstate(over="ignore"):  # of numbers that are no logarithms
        for name, inverse in _INVERSES.items():
            values = inverse(v)
            if np.isfinite(values).all():
                clause = _clause(values, long_rows.indptr, of_logarithms=bool(name))
                if clause is not None:
                    return clause
    return None


def _clause(values: Array, indptr: Array, *, of_logarithms: bool) -> str | None:
    """Return what values, or the exponentials of logarithms, look like by their rows, or None."""
    starts = indptr[:-1]
    total = _equal_sum(values, starts)
    if not of_logarithms and total is not None:
        near = next((t for t in _SUMS if abs(total - t) <= MEAN_TOL * t), None)
        total = total if near is None else near
        return f"every row sums to {total:,.7g}{_SUMS.get(total, '')}"
    if of_logarithms and total is None and _are_whole(values):
        return "these look like logarithms of counts"
    if total is None and not _are_scaled(values, starts, np.diff(indptr)):
        return None
    return "these look like logarithms of normalised counts" if of_logarithms else _SCALED


def _first_part(data: Any) -> Any:
    """Return the first rows of an array, sparse matrix or row blocks, about `MAX_VALUES` values."""
    n, width = data.shape
    per_row = max((width if isinstance(data, np.ndarray) else data.nnz / max(n, 1)), 1)
    count = int(min(n, max(MIN_ROWS, MAX_VALUES // per_row)))
    if isinstance(data, RowBlocks):
        part = data.rows(0, count)
    else:
        part = data[:count] if isinstance(data, np.ndarray) else sp.csr_array(data)[:count]
    matrix = sp.csr_array(part)
    matrix.eliminate_zeros()
    return matrix


def _equal_sum(values: Array, starts: Array) -> float | None:
    """Return the sum of the rows if all rows have the same, else None."""
    sums = np.add.reduceat(values, starts)
    mean = float(sums.mean())
    is_share = min(abs(mean - 1), abs(mean / 100 - 1)) <= MEAN_TOL
    tol = ROUNDED_SUM_TOL if is_share else SUM_TOL
    return mean if float(np.ptp(sums)) <= tol * mean else None


def _are_whole(values: Array) -> bool:
    """Return whether numbers are whole, but for rounding; large ones cannot tell."""
    told = values[values < MAX_WHOLE]
    if len(told) < 0.5 * len(values):
        return False
    is_whole = np.abs(told - np.rint(told)) <= WHOLE_TOL * np.maximum(told, 1)
    return bool(((told > 0.5) & is_whole).mean() >= MIN_WHOLE)


def _are_scaled(values: Array, starts: Array, lengths: Array) -> bool:
    """Return whether every row holds whole numbers times a factor of its own.

    One factor for all rows is no sign of it: ratings come in halves, pixels in steps of 1/255.
    """
    units = np.minimum.reduceat(values, starts)
    if _are_whole(values / units.min()) or np.ptp(units) <= SUM_TOL * units.mean():
        return False
    quotients = values / np.repeat(units, lengths)
    above = quotients[quotients > 1 + SUM_TOL]
    return len(above) >= 0.1 * len(values) and _are_whole(above)


def anndata_origin(
    holder: str, layer: str | None, layers: Mapping[str, Any], *, is_log: bool
) -> ValueOrigin:
    """Return the origin of X, or of a layer, in an AnnData file or object.

    `layers` maps the name of each other layer to some of its values. "raw" is .raw unless there is
    a layer of that name. A layer that does not hold counts is not recommended, whatever its name.
    """
    names = sorted(layers, key=lambda name: name != "counts")
    with_counts = next((n for n in names if measure_values(layers[n]).look_like_counts), None)
    short = None if with_counts is None else quote(with_counts)
    counts = None if short is None else (f"a layer {short}", f"layer={short}")
    if with_counts == "raw":
        counts = "counts in .raw", "layer='raw'" if holder == "file" else "use_raw=True"
    name = {None: "X", "raw": ".raw"}.get(layer) or f"The layer {quote(layer)}"
    return ValueOrigin(name, holder, counts, is_log)


# ---- totals --------------------------------------------------------------------------------------


def total_remarks(
    data: Any,
    samples: Iterable[Any] | None = None,
    features: Iterable[Any] | None = None,
    *,
    is_part: bool = False,
) -> tuple[Remark, ...]:
    """Return remarks on a feature that is the sum of the others, and on a sample that is.

    Half of all counts belong to such an item, so the sums of rows and columns nearly always answer.
    Some of the samples (`is_part`) cannot tell whether one is the sum of all.
    """
    if isinstance(data, RowBlocks):
        mass, column_mass = data.mass, data.column_mass
    else:
        with np.errstate(over="ignore"):
            mass, column_mass = (
                np.asarray(data.sum(axis=axis, dtype=np.float64)).ravel() for axis in (1, 0)
            )
    sides = [
        ("feature", "samples", column_mass, features, partial(_is_column_of_sums, data)),
        ("sample", "features", mass, samples, partial(_is_row_of_sums, data, column_mass)),
    ]
    half = float(mass.sum()) / 2
    sides = sides[:1] if is_part else sides
    remarks = []
    for side, others, sums, names, is_total in sides if 0 < half < np.inf else ():
        for at in np.flatnonzero(np.abs(sums - half) <= TOTAL_TOL * half)[:2]:
            if is_total(int(at)):
                name = f"{at} (counted from 0)" if names is None else quote([*names][at])
                text = f"The {side} {name} is the sum of all other {side}s in all {others}"
                remarks.append(
                    Remark(f"{text}: leave it out, since its counts are theirs.", "totals")
                )
    return tuple(remarks)


def _is_column_of_sums(data: Any, column: int) -> bool:
    """Return whether a column is the sum of the others in the first rows, and not by chance."""
    rows = _first_part(data)
    values, sums = (np.asarray(part, np.float64).ravel() for part in (
        rows[:, [column]].toarray(), rows.sum(axis=1)
    ))  # fmt: skip
    has_several = np.diff(rows.indptr) >= 3
    is_sum = np.abs(2 * values - sums) <= TOTAL_TOL * sums
    return bool(is_sum.all() and has_several.sum() >= 3)


def _is_row_of_sums(data: Any, column_mass: Array, row: int) -> bool:
    """Return whether a row is the sum of the others, and not by chance."""
    part: Any = data.rows(row, row + 1) if isinstance(data, RowBlocks) else data[[row]]
    values = sp.csr_array(part).toarray().astype(np.float64).ravel()
    is_sum = np.abs(2 * values - column_mass) <= TOTAL_TOL * column_mass
    return bool(is_sum.all() and (column_mass > 0).sum() >= 3 and data.shape[0] >= 3)


# ---- names ---------------------------------------------------------------------------------------


def orientation_remark(
    samples: Iterable[Any] | None, features: Iterable[Any] | None, remedy: str = "transpose=True"
) -> tuple[Remark, ...]:
    """Return a remark if features are named like cells, or samples like features."""
    looks = [("features", "barcodes of cells")] if _mostly(_BARCODE, features) else []
    looks += [("samples", kind) for kind, p in _FEATURES.items() if _mostly(p, samples)]
    if samples is not None and _has_common_genes(samples):
        looks.append(("samples", "genes"))
    return tuple(
        Remark(
            f"The {side} look like {kind}: if samples and features are swapped, use {remedy}.",
            "orientation",
        )
        for side, kind in looks[:1]
    )


def _mostly(pattern: re.Pattern[str], names: Iterable[Any] | None) -> bool:
    first = [] if names is None else list(islice(names, MAX_NAMES))
    return sum(bool(pattern.fullmatch(str(name))) for name in first) > len(first) / 2


def _has_common_genes(names: Iterable[Any]) -> bool:
    symbols = {name.upper() for name in names if isinstance(name, str) and len(name) <= 6}
    return len(symbols & _COMMON_GENES) >= _MIN_COMMON_GENES


# ---- all -----------------------------------------------------------------------------------------


def data_remarks(
    V: Any,
    names: tuple[Any, Any],
    remedy: str,
    *,
    origin: ValueOrigin | None = None,
    is_part: bool = False,
) -> tuple[Remark, ...]:
    """Return the remarks on the values, the totals and the names of the data of a fit.

    `names` are those of the samples and of the features, or None; `remedy` says how to exchange
    the two. `is_part` is true for some of the samples.
    """
    remark = count_remark(V, origin)
    others = total_remarks(V, *names, is_part=is_part) + orientation_remark(*names, remedy)
    return others if remark is None else (remark, *others)


def warn_about_values(
    X: Any, V: RowBlocks, *, is_new: bool = False, fitted: float | None = None
) -> tuple[Remark, ...]:
    """Warn about what a user has passed as data, and return the warnings.

    Row blocks draw no warning, because the code that made them has checked them already. Of new
    data for a model (`is_new`) the values alone are looked at, because the features are those of
    the fit; for `fitted` see `count_remark`.
    """
    if isinstance(X, RowBlocks):
        return ()
    if is_new:
        remark = count_remark(V, fitted=fitted)
        remarks: tuple[Remark, ...] = () if remark is None else (remark,)
    else:
        remarks = data_remarks(V, (V.row_names, V.column_names), "`X.T`")
    for remark in remarks:
        warn_user(remark)
    return remarks


def warn_user(text: str) -> None:
    """Warn at the line that called this library, whatever lies between."""
    frame, level = sys._getframe(1), 2  # Python 3.12 has skip_file_prefixes instead
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in ("sipower", "sklearn", "contextlib")


@contextmanager
def anndata_values(
    adata: Any, layer: str | None, counts: Any, *, is_new: bool = False, fitted: float | None = None
) -> Iterator[None]:
    """Warn about X or a layer of an AnnData object; an error about an entry says where counts are.

    `counts` are the values, already in memory; `layer` is "raw" for .raw. For the other arguments
    see `warn_about_values`.
    """
    origin = _object_origin(adata, layer)
    try:
        yield
    except EntryError as problem:
        if origin.counts is None:
            raise
        raise ValueError(f"{problem} {origin.advice()}") from None
    if is_new:
        remark = count_remark(counts, origin, fitted=fitted)
        remarks: tuple[Remark, ...] = () if remark is None else (remark,)
    else:
        remarks = data_remarks(
            counts, (adata.obs_names, adata.var_names), "`adata.T`", origin=origin
        )
    for remark in remarks:
        warn_user(remark)


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
