# SPDX-License-Identifier: BSD-3-Clause
"""`sipower.tl.differential`: differences between the programs of an AnnData object."""

from __future__ import annotations

from typing import Any

from sipower.data.plausibility import anndata_values
from sipower.data.validate import as_matrix
from sipower.inference import differential as compare
from sipower.inference.regression import DEFAULT_PRIOR
from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed
from sipower.results.anndata_columns import COLUMN_KEYS, observed_columns
from sipower.results.anndata_counts import check_anndata, choose_counts, fitted_place
from sipower.results.annotations import annotate
from sipower.results.as_differences import difference_annotations
from sipower.results.as_run import warn_if_other_data
from sipower.results.run import Run
from sipower.results.run_differences import model_with_batches, stored_batches

__all__ = ["differential"]


def differential(  # noqa: PLR0913 - all options are keyword-only
    adata: Any,
    *,
    key: str = "nmf",
    layer: str | None = None,
    use_raw: bool | None = None,
    contrast: str = "least extreme",
    level: float = 0.95,
    prior: float = DEFAULT_PRIOR,
    check: bool = True,
    random_state: int = DEFAULT_SEED,
    rng: RNG = None,
    copy: bool = False,
) -> Any:
    """Estimate for every gene how much more frequent it is in each program than in others.

    The weights are those that `sipower.tl.nmf` has stored. The counts, batches, size factors and
    other columns of the fit are used again.

    Parameters
    ----------
    adata
        AnnData after `sipower.tl.nmf`, with the same cells and genes.
    key
        Name of the results, `key_added` of `sipower.tl.nmf`.
    layer, use_raw
        Counts; None: those of the fit. "X" is adata.X. A warning says if they are others.
    contrast, level, prior, check, random_state, rng
        As for `sipower.differential`.
    copy
        Return a copy with the results and leave `adata` unchanged.

    Returns
    -------
    AnnData or None
        The copy if `copy` is true, else None. Each entry of varm is a data frame, (genes, programs)
        or, for ``contrast="pairwise"``, (genes, pairs of programs):

        ``varm[key + "_lfc"]``
            Log2 fold changes, shrunk towards zero.
        ``varm[key + "_lfsr"]``
            Local false sign rates.
        ``varm[key + "_lfc_lower"]``, ``varm[key + "_lfc_upper"]``
            Intervals of the probability `level`.
        ``varm[key + "_lfc_estimate"]``, ``varm[key + "_lfc_error"]``
            Estimates before shrinkage, and their standard errors.
        ``varm[key + "_lfc_against"]``
            Number, from 0, of the program that an estimate compares with; -1: all data.
        ``uns[key + "_differential"]``
            "params"; "verdict", whether the differences appear again in independent counts; and
            "names", "scores", "logfoldchanges" and "lfsr" of the genes by decreasing z-score, in
            the layout of scanpy's ``uns["rank_genes_groups"]``.

    Warns
    -----
    UserWarning
        If the differences do not appear again in independent counts.

    Examples
    --------
    >>> import anndata, sipower
    >>> from sipower.datasets import poisson_topics
    >>> cells = anndata.AnnData(poisson_topics(300, 100, 3, seed=0).astype("float32"))
    >>> sipower.tl.nmf(cells, 3)
    >>> sipower.tl.differential(cells)
    >>> list(cells.varm["nmf_lfc"])
    ['component 1', 'component 2', 'component 3']
    """
    check_anndata("adata", adata, copy)
    random_state = choose_seed(rng, "random_state", random_state)
    run = Run.from_anndata(adata, key)
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    params = run.facts["parameters"]
    place, fitted = fitted_place(adata, run, layer, use_raw), run.facts.get("whole_numbers")
    keys = {name: params.get(name) for name in COLUMN_KEYS}
    observed = observed_columns(adata, **keys)
    model: Any = run.W
    if "batch" in observed:
        model = model_with_batches(stored_batches(adata, run, key))
    counts = choose_counts(adata, *place)
    with anndata_values(adata, place.origin, counts, is_new=True, fitted=fitted):
        V = as_matrix(counts).with_names(None, adata.var_names.to_numpy())
    if layer is None and use_raw is None:  # else it has been said
        warn_if_other_data(V, run, run.W, run.H)
    differences = compare(
        V, model, contrast=contrast, level=level, prior=prior, check=check,
        random_state=random_state, component_names=run.component_labels(), **observed,
    )  # fmt: skip
    called = {"prior": prior, "check": check, "random_state": random_state, **place._asdict()}
    parts = difference_annotations(differences, adata.var_names, key, groupby=key, **called)
    annotate(adata, parts)
    return adata if copy else None
