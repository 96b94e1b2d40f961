# SPDX-License-Identifier: BSD-3-Clause
"""`as_differences`: what plots accept as differences, and differences as annotations of AnnData."""

from __future__ import annotations

from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from sipower.inference import Differences
from sipower.results.differences_table import read_differences, replication_facts, to_replication
from sipower.results.run import is_anndata

__all__ = ["VARM_ENTRIES", "DifferencesLike", "as_differences", "difference_annotations"]

DifferencesLike: TypeAlias = Any  # Differences, a path of a table, or an AnnData object
# Endings of the entries of varm, (genes, contrasts), and the attributes that they hold.
VARM_ENTRIES = {
    "lfc": "posterior_mean",
    "lfsr": "lfsr",
    "lfc_lower": "lower",
    "lfc_upper": "upper",
    "lfc_estimate": "log2_fold_change",
    "lfc_error": "standard_error",
    "lfc_against": "against",
}


def as_differences(differences: DifferencesLike, key: str = "nmf") -> Differences:
    """Convert what plots accept to `Differences`.

    Parameters
    ----------
    differences
        The result of `sipower.differential`; the path of a table that `sipower differential` wrote;
        or an AnnData object after `sipower.tl.differential`.
    key
        Name of the results in an AnnData object.
    """
    if isinstance(differences, Differences):
        return differences
    if isinstance(differences, str | PathLike):
        return read_differences(differences)
    if is_anndata(differences):
        return _from_anndata(differences, key)
    raise TypeError(
        "`differences` must be the result of sipower.differential, the path of its table, or an "
        f"AnnData object after sipower.tl.differential, got a {type(differences).__name__}."
    )


def difference_annotations(
    differences: Differences, names: Any, key: str, **parameters: Any
) -> dict[str, dict[str, Any]]:
    """Return the contents of varm and uns for differences between programs.

    Parameters
    ----------
    differences
        The differences.
    names
        Names of the genes, the index of the data frames.
    key
        Name of the results.
    **parameters
        Entries of "params" besides the kind of contrast and the level.
    """
    import pandas as pd  # noqa: PLC0415 - anndata has it

    labels = [differences.label(contrast) for contrast in range(len(differences.lfsr))]
    varm = {
        f"{key}_{ending}": pd.DataFrame(getattr(differences, name).T, names, labels)
        for ending, name in VARM_ENTRIES.items()
    }
    replication = replication_facts(differences.replication)
    params = {"contrast": differences.contrast, "level": differences.level} | parameters
    uns = {
        "params": {name: value for name, value in params.items() if value is not None},
        "verdict": str(differences.replication),
        "components": np.array(differences.components, object),
        "pairs": differences.pairs,
        "shrinkage_gaps": differences.shrinkage_gaps,
        "replication": {k: v for k, v in replication.items() if v is not None},
        **_rankings(differences, np.asarray(names, object), labels),
    }
    return {"varm": varm, "uns": {f"{key}_differential": uns}}


def _rankings(differences: Differences, names: Any, labels: list[str]) -> dict[str, Any]:
    """Return the genes by decreasing z-score, in the layout of scanpy's `rank_genes_groups`."""
    order = np.argsort(-differences.z, axis=1, kind="stable")
    values = {
        "names": names[order],
        "scores": np.take_along_axis(differences.z, order, axis=1),
        "logfoldchanges": np.take_along_axis(differences.posterior_mean, order, axis=1),
        "lfsr": np.take_along_axis(differences.lfsr, order, axis=1),
    }
    return {
        name: np.rec.fromarrays(list(rows), dtype=[(label, rows.dtype) for label in labels])
        for name, rows in values.items()
    }


def _from_anndata(adata: Any, key: str) -> Differences:
    """Return stored differences; the counts of the genes are not stored and are NaN."""
    facts = adata.uns.get(f"{key}_differential", {})
    places = {name: f"{key}_{ending}" for ending, name in VARM_ENTRIES.items()}
    if "params" not in facts or any(place not in adata.varm for place in places.values()):
        raise ValueError(
            f"`differences` must have varm['{key}_lfc'] and uns['{key}_differential']: call "
            "sipower.tl.differential first, or give the name of its results as `key`."
        )
    values = {name: np.asarray(adata.varm[place]).T for name, place in places.items()}
    H = np.asarray(adata.varm[key], np.float64).T
    return Differences(
        **values,
        pairs=np.asarray(facts["pairs"], np.int64),
        profiles=H / np.maximum(H.sum(axis=1, keepdims=True), np.finfo(float).tiny),
        counts=np.full(adata.n_vars, np.nan),
        features=np.array(adata.var_names, np.str_),
        components=tuple(map(str, facts["components"])),
        contrast=str(facts["params"]["contrast"]),
        level=float(facts["params"]["level"]),
        shrinkage_gaps=np.asarray(facts["shrinkage_gaps"], np.float64),
        replication=to_replication(facts["replication"]),
    )
