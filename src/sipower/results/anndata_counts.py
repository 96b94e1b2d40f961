# SPDX-License-Identifier: BSD-3-Clause
"""The counts of an AnnData object: X, a layer or raw, in memory or backed; those of a fit again."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sipower.data.plausibility import warn_user
from sipower.results.run import Run, is_anndata

__all__ = ["Place", "check_anndata", "choose_counts", "fitted_place"]

ROWS_AT_A_TIME = 20_000


class Place(NamedTuple):
    """Where the counts of an AnnData object are: X, a layer, or raw."""

    layer: str | None = None
    use_raw: bool = False

    @classmethod
    def of(cls, adata: Any, layer: str | None, use_raw: bool = False) -> Place:
        """Return the place of a layer; "X" is adata.X unless there is a layer of this name."""
        return cls(None if layer == "X" and "X" not in adata.layers else layer, use_raw)

    @property
    def origin(self) -> str | None:
        """The layer for `sipower.data.plausibility`, "raw" for raw, None for X."""
        return "raw" if self.use_raw else self.layer

    def __str__(self) -> str:
        """Return the place in a sentence."""
        if self.use_raw:
            return "adata.raw"
        return "adata.X" if self.layer is None else f"the layer {self.layer!r}"


def fitted_place(adata: Any, run: Run, layer: str | None, use_raw: bool | None) -> Place:
    """Return where to read counts for an earlier fit: where it read them, if nothing is given.

    A warning names both places if another one is given.
    """
    params = run.facts.get("parameters") or {}
    fitted = Place(params.get("layer"), bool(params.get("use_raw")))
    if fitted.layer == "raw" and "raw" not in adata.layers:  # the name of raw in a file
        fitted = Place(None, True)
    if use_raw is None and layer is None:
        if fitted.layer is not None and fitted.layer not in adata.layers:
            raise ValueError(
                f"`adata` has no layer {fitted.layer!r}, to which the programs were fitted: add "
                "it, or choose other counts with `layer`, such as layer='X' for adata.X."
            )
        return fitted
    place = Place.of(adata, layer, bool(use_raw))
    if layer is None and not use_raw and not fitted.use_raw:
        place = fitted
    if place != fitted and (place.layer is None or place.layer in adata.layers):
        warn_user(
            f"The programs were fitted to {fitted}, but `layer` and `use_raw` choose {place}: "
            "weights and differences are comparable only for counts of the same kind."
        )
    return place


def check_anndata(name: str, adata: Any, copy: bool) -> None:
    """Raise an error if an argument is not an AnnData object that can hold results."""
    if isinstance(adata, str | PathLike):
        raise TypeError(
            f"`{name}` must be an AnnData object, got the path {str(adata)!r}: read it first, with "
            "anndata.read_h5ad."
        )
    if not is_anndata(adata):
        raise TypeError(
            f"`{name}` must be an AnnData object, got a {type(adata).__name__}: use KLNMF for "
            "arrays."
        )
    if adata.is_view and adata.isbacked and not copy:
        raise ValueError(f"`{name}` is a view of a file: use copy=True, or to_memory() first.")


def choose_counts(adata: Any, layer: str | None, use_raw: bool) -> Any:
    """Return X, a layer, or the genes of `adata` in raw, in memory."""
    if use_raw:
        return _in_memory(_raw_counts(adata, layer))
    if layer is not None and layer not in adata.layers:
        layers = ", ".join(repr(name) for name in adata.layers if name is not None) or "none"
        raise ValueError(
            f"`layer` must be a layer of adata, got {layer!r}; the layers are: {layers}."
            + (" use_raw=True takes adata.raw." if layer == "raw" and adata.raw is not None else "")
        )
    return _in_memory(adata.X if layer is None else adata.layers[layer])


def _raw_counts(adata: Any, layer: str | None) -> Any:
    if layer is not None:
        raise ValueError(f"`layer` must be None with use_raw=True, got {layer!r}.")
    if adata.raw is None:
        raise ValueError("`use_raw` needs adata.raw, which is None: choose a layer with `layer`.")
    genes, columns = adata.var_names, adata.raw.var_names
    if genes.equals(columns):
        return adata.raw.X
    missing = genes.difference(columns)
    if len(missing):
        raise ValueError(
            f"`use_raw` needs every gene of adata in adata.raw, which lacks {len(missing)}, such "
            f"as {missing[0]!r}."
        )
    repeated = genes[genes.isin(columns[columns.duplicated()])]
    if len(repeated):
        raise ValueError(
            f"`use_raw` needs unique names of genes in adata.raw, which has {repeated[0]!r} more "
            "than once: make them unique before raw is set, with adata.var_names_make_unique()."
        )
    return adata.raw[:, columns.get_indexer_for(genes)].X


def _in_memory(X: Any) -> Any:
    """Read the counts of a backed object in slices of rows, to avoid a second copy in memory."""
    if X is None:
        raise ValueError("`adata` has no X: choose a layer with `layer`.")
    if type(X).__module__.partition(".")[0] == "dask":
        return X.compute()
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return X
    rows = max(X.shape[0], 1)  # without rows, one empty slice still has the dtype
    parts = [X[at : at + ROWS_AT_A_TIME] for at in range(0, rows, ROWS_AT_A_TIME)]
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts))
    return np.concatenate([np.asarray(part) for part in parts])
