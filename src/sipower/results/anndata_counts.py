# SPDX-License-Identifier: BSD-3-Clause
"""The counts of an AnnData object: X, a layer or raw, in memory or backed."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from sipower.results.run import is_anndata

__all__ = ["check_anndata", "choose_counts"]

ROWS_AT_A_TIME = 20_000


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
