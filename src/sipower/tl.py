# SPDX-License-Identifier: BSD-3-Clause
"""`sipower.tl.nmf`: KL-NMF of an AnnData object, following the conventions of scverse."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF

__all__ = ["nmf"]

ROWS_AT_A_TIME = 20_000


def nmf(
    adata: Any,
    n_components: int,
    *,
    layer: str | None = None,
    key_added: str = "nmf",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Factorise the counts (cells x genes) of an AnnData object and store the factors in it.

    Parameters
    ----------
    adata
        AnnData, in memory or backed. The counts, X or a layer, are read once. The results are
        stored in memory even for a backed object, whose file changes only when you write it.
    n_components
        Number of components, K.
    layer
        Layer of raw counts, such as "counts"; None means X.
    key_added
        Name under which the results are stored.
    copy
        Return a copy with the results and leave `adata` unchanged.
    **parameters
        Parameters of `KLNMF`; `random_state` is 0 by default.

    Returns
    -------
    AnnData or None
        The copy if `copy` is true, else None. The results are

        ``obsm["X_" + key_added]``
            W, (cells, K).
        ``varm[key_added]``
            Hᵀ, (genes, K).
        ``uns[key_added]``
            "params" (of `KLNMF`, and the layer), "divergence", "certified_gap", "status", "rounds".
    """
    if isinstance(adata, str | PathLike):
        raise TypeError(
            f"`adata` must be an AnnData object, got the path {str(adata)!r}: read it first, with "
            "anndata.read_h5ad."
        )
    if type(adata).__module__.partition(".")[0] != "anndata" or not hasattr(adata, "obsm"):
        raise TypeError(
            f"`adata` must be an AnnData object, got a {type(adata).__name__}: use KLNMF for "
            "arrays."
        )
    if adata.is_view and adata.isbacked and not copy:
        raise ValueError("`adata` is a view of a file: use copy=True, or adata.to_memory() first.")
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    if layer is not None and layer not in adata.layers:
        layers = ", ".join(repr(name) for name in adata.layers if name is not None) or "none"
        raise ValueError(
            f"`layer` must be a layer of adata, got {layer!r}; the layers are: {layers}."
        )
    counts = _in_memory(adata.X if layer is None else adata.layers[layer])
    model = KLNMF(n_components, **{"random_state": 0, **parameters})
    model.set_output(transform="default")
    W = model.fit_transform(as_matrix(counts, dtype=model.dtype, n_jobs=model.n_jobs))
    adata.obsm[f"X_{key_added}"] = W
    adata.varm[key_added] = np.ascontiguousarray(model.components_.T)
    adata.uns[key_added] = {
        "params": _storable(model.get_params() | {"layer": layer}),
        "divergence": model.kl_divergence_,
        "certified_gap": model.kkt_residual_,
        "status": model.status_,
        "rounds": model.n_iter_,
    }
    return adata if copy else None


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


def _storable(parameters: dict[str, Any]) -> dict[str, Any]:
    """Drop None and callables, and convert other objects to strings, as .h5ad files require."""
    plain = {k: v for k, v in parameters.items() if v is not None and not callable(v)}
    if parameters.get("dtype") is not None:
        plain["dtype"] = str(np.dtype(parameters["dtype"]))
    return {k: v if isinstance(v, str | int | float) else str(v) for k, v in plain.items()}
