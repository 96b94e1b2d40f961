# SPDX-License-Identifier: BSD-3-Clause
"""Columns of obs and var, and entries of varm, as arguments and parameters of `KLNMF`."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.data.containers import as_numbers
from sipower.data.names import Items, arrange

__all__ = ["COLUMN_KEYS", "fixed_programs", "observed_columns"]

# Names of the keys of `sipower.tl.nmf`, the argument of `fit` and the place of the column.
_KEYS = {
    "batch_key": ("batch", "obs"),
    "weight_key": ("sample_weight", "obs"),
    "offset_key": ("offsets", "obs"),
    "mask_key": ("mask", "var"),
}
COLUMN_KEYS = tuple(_KEYS)


def observed_columns(adata: Any, **keys: str | None) -> dict[str, Any]:
    """Return the arguments of `KLNMF.fit` that the named columns of obs and var hold.

    Parameters
    ----------
    adata
        AnnData object.
    **keys
        Columns by the name of the key, such as ``batch_key="donor"``; None: not given.
    """
    arguments = {}
    for key, column in keys.items():
        if column is not None:
            argument, place = _KEYS[key]
            values = _column(adata, key, place, column)
            arguments[argument] = _convert(values, key, f"adata.{place}[{column!r}]")
    return arguments


def _column(adata: Any, key: str, place: str, column: str) -> Any:
    frame = getattr(adata, place)
    if column not in frame:
        raise ValueError(
            f"`{key}` must be a column of adata.{place}, got {column!r}: it has "
            f"{', '.join(map(str, frame.columns)) or 'none'}."
        )
    values = frame[column]
    if values.isna().any():
        item = "cell" if place == "obs" else "gene"
        raise ValueError(
            f"adata.{place}[{column!r}] must have a value for every {item}, got none for "
            f"{str(values.index[int(np.argmax(values.isna()))])!r}."
        )
    return values


def _convert(values: Any, key: str, name: str) -> Any:
    if key == "batch_key":
        return np.asarray(values.astype(str))
    numbers = as_numbers(key, values, f"a column of numbers, unlike {name}")
    if key != "mask_key":
        return numbers
    if not np.isin(numbers, (0, 1)).all():
        raise ValueError(f"{name} must be True or False for every gene to be used as `mask_key`.")
    return numbers == 1


def fixed_programs(adata: Any, fixed: Any) -> Any:
    """Return known programs as a data frame, (programs, genes), with the genes of `adata`.

    Parameters
    ----------
    adata
        AnnData object.
    fixed
        Name of an entry of varm, or an array or a data frame, (genes, programs). The genes of a
        data frame are matched by name.
    """
    import pandas as pd  # noqa: PLC0415 - anndata has it; `import sipower` stays fast

    genes, labels, prefix = adata.var_names, None, "fixed"
    if isinstance(fixed, str):
        if fixed not in adata.varm:
            raise ValueError(
                f"`fixed` must be an entry of adata.varm, got {fixed!r}: it has "
                f"{', '.join(map(str, adata.varm)) or 'none'}."
            )
        prefix, facts = fixed, adata.uns.get(fixed, {})
        labels = facts.get("components") if isinstance(facts, dict) else None
        fixed = adata.varm[fixed]
    if hasattr(fixed, "columns"):
        labels = [str(name) for name in fixed.columns]
        items = Items("gene", len(genes), tuple(map(str, genes)), title="adata")
        values = arrange("fixed", fixed, items, None)
    else:
        values = np.asarray(fixed)
    if values.ndim != 2 or values.shape[0] != len(genes):
        raise ValueError(
            f"`fixed` must have one row for each of the {len(genes)} genes and a column for each "
            f"program, got shape {values.shape}."
        )
    if labels is None or len(labels) != values.shape[1]:
        labels = [f"{prefix} {k + 1}" for k in range(values.shape[1])]
    return pd.DataFrame(values.T, [str(label) for label in labels], genes)
