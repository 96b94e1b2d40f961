# SPDX-License-Identifier: BSD-3-Clause
"""KL-NMF of AnnData objects, following the conventions of scverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.data.plausibility import anndata_values, warn_user
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.inference.spectra import spectra as compute_spectra
from sipower.io import Table
from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed
from sipower.results.anndata_columns import fixed_programs, observed_columns
from sipower.results.anndata_counts import Place, check_anndata, choose_counts, fitted_place
from sipower.results.anndata_differences import differential
from sipower.results.annotations import annotate, as_annotations, spectra_arrays
from sipower.results.as_differences import VARM_ENTRIES
from sipower.results.as_run import warn_if_other_data
from sipower.results.new_samples import transform_samples
from sipower.results.normalisation import to_shares
from sipower.results.run import Run, is_anndata

__all__ = ["differential", "nmf", "project", "spectra"]


def nmf(  # noqa: PLR0913 - all options are keyword-only
    adata: Any,
    n_components: int | None = None,
    *,
    layer: str | None = None,
    use_raw: bool = False,
    batch_key: str | None = None,
    weight_key: str | None = None,
    offset_key: str | None = None,
    mask_key: str | None = None,
    fixed: Any = None,
    key_added: str = "nmf",
    normalise: bool = True,
    copy: bool = False,
    rng: RNG = None,
    **parameters: Any,
) -> Any:
    """Factorise the counts (cells x genes) of an AnnData object and store the factors in it.

    Parameters
    ----------
    adata
        AnnData, in memory or backed. The counts, X or a layer, are read once. The results are
        stored in memory even for a backed object, whose file changes only when you write it.
    n_components
        Number of components, K. `sipower.rank_selection` recommends one.
    layer
        Layer of raw counts, such as "counts"; None means X.
    use_raw
        Use the counts in ``adata.raw``, of the genes that `adata` has.
    batch_key
        Column of ``adata.obs`` with the batch of every cell: a factor of every batch and gene is
        fitted beside the programs, so that these need not explain differences of batches.
    weight_key, offset_key
        Columns of ``adata.obs`` with a weight and with a size factor for every cell; see
        `sample_weight` and `offsets` of `KLNMF.fit`.
    mask_key
        Column of ``adata.var`` that is True for the genes that were observed, such as those of a
        panel; the others do not count at all.
    fixed
        Known programs, which keep their profiles: the name of an entry of ``adata.varm``, or an
        array or data frame, (genes, programs). The genes of a data frame are matched by name.
    key_added
        Name under which the results are stored.
    normalise
        Store W in counts, so that a row sums to the counts of the cell (to those expected without
        batch effects, if `batch_key` is given), and programs that sum to 1 over the genes. False
        stores the factors of the model.
    copy
        Return a copy with the results and leave `adata` unchanged.
    rng
        Seed or NumPy generator, instead of `random_state`.
    **parameters
        Parameters of `KLNMF`, such as ``guides={"T cell": ["CD3D", "CD3E"]}`` with names of genes;
        `random_state` is 0 by default.

    Returns
    -------
    AnnData or None
        The copy if `copy` is true, else None. Components are in decreasing order of size:

        ``obsm["X_" + key_added]``
            W, (cells, K).
        ``obsm["X_" + key_added + "_shares"]``
            Share of a cell's counts that each component explains, (cells, K); rows sum to 1.
        ``varm[key_added]``
            Hᵀ, (genes, K).
        ``varm[key_added + "_batch_effects"]``
            Factors of the genes, (genes, batches), if `batch_key` is given.
        ``uns[key_added]``
            "params" (of `KLNMF`, and how it was called), "divergence", "certified_gap", "status",
            "rounds" and "trace"; with known or guided programs also "components", their names.

    Examples
    --------
    >>> import anndata, sipower
    >>> import numpy as np
    >>> V = np.random.default_rng(0).poisson(5.0, (60, 10)).astype("float32")
    >>> cells = anndata.AnnData(V)
    >>> sipower.tl.nmf(cells, 3)
    >>> cells.obsm["X_nmf"].shape, cells.varm["nmf"].shape, cells.uns["nmf"]["status"]
    ((60, 3), (10, 3), 'converged')
    """
    check_anndata("adata", adata, copy)
    if n_components is None:
        raise ValueError(
            "`n_components` must be given, such as 10: sipower.rank_selection(counts, "
            "range(5, 31, 5)) recommends a number of programs for these counts."
        )
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    place = Place.of(adata, layer, use_raw)
    counts = choose_counts(adata, *place)
    seed = choose_seed(rng, "random_state", parameters.pop("random_state", DEFAULT_SEED))
    model = KLNMF(n_components, random_state=seed, **parameters)
    model.set_output(transform="default")
    keys = {
        "batch_key": batch_key, "weight_key": weight_key, "offset_key": offset_key,
        "mask_key": mask_key,
    }  # fmt: skip
    observed = observed_columns(adata, **keys)
    if fixed is not None:
        model.set_params(components_fixed=fixed_programs(adata, fixed))
    with anndata_values(adata, place.origin, counts):
        matrix = as_matrix(counts, dtype=model.dtype, n_jobs=model.n_jobs)
    matrix = matrix.with_names(np.asarray(adata.obs_names), np.asarray(adata.var_names))
    W = model.fit_transform(matrix, **observed)
    run = Run.from_model(model, W)
    called = place._asdict() | keys
    if isinstance(fixed, str):
        called["fixed"] = fixed
    for suffix in ("batch_effects", "z", "median", *VARM_ENTRIES):  # those of an earlier call
        adata.varm.pop(f"{key_added}_{suffix}", None)
    adata.uns.pop(f"{key_added}_differential", None)
    annotate(adata, as_annotations(run, key_added, normalise=normalise, **called))
    return adata if copy else None


def project(
    adata: Any,
    programs: Any,
    *,
    key: str = "nmf",
    layer: str | None = None,
    use_raw: bool | None = None,
    copy: bool = False,
) -> Any:
    """Compute the weights of new cells for the programs of an AnnData object.

    Genes are matched by name. If `adata` lacks genes of the programs, the weights are computed from
    the other genes alone. They are exact, as those of `KLNMF.transform`. Batch effects of the fit
    are not applied: new cells are from new batches.

    Parameters
    ----------
    adata
        AnnData with the new cells; the results are stored in it.
    programs
        AnnData after `sipower.tl.nmf`.
    key
        Name of the results in both objects, `key_added` of `sipower.tl.nmf`.
    layer, use_raw
        Counts of `adata`; None: those that the programs were fitted to, such as the same layer.
        "X" is adata.X. A warning says if they are others than those of the fit.
    copy
        As for `sipower.tl.nmf`.

    Returns
    -------
    AnnData or None
        The copy if `copy` is true, else None. ``obsm["X_" + key]`` and
        ``obsm["X_" + key + "_shares"]`` are as after `sipower.tl.nmf`, in the same units and order.

    Examples
    --------
    >>> import anndata, sipower
    >>> import numpy as np
    >>> V = np.random.default_rng(0).poisson(5.0, (60, 10)).astype("float32")
    >>> cells, new = anndata.AnnData(V[:40]), anndata.AnnData(V[40:])
    >>> sipower.tl.nmf(cells, 3)
    >>> sipower.tl.project(new, cells)
    >>> new.obsm["X_nmf_shares"].shape
    (20, 3)
    """
    check_anndata("adata", adata, copy)
    if not is_anndata(programs):
        raise TypeError(
            f"`programs` must be an AnnData object after tl.nmf, got a {type(programs).__name__}."
        )
    run = Run.from_anndata(programs, key)
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    place = fitted_place(adata, run, layer, use_raw)
    counts, fitted = choose_counts(adata, *place), run.facts.get("whole_numbers")
    table = Table(counts, tuple(adata.obs_names), tuple(adata.var_names))
    with anndata_values(adata, place.origin, counts, is_new=True, fitted=fitted):
        W, remarks = transform_samples(run, table)
    for remark in remarks:
        warn_user(f"`adata`: {remark}")
    annotate(adata, {"obsm": {f"X_{key}": W, f"X_{key}_shares": to_shares(W, run.H)}})
    return adata if copy else None


def spectra(
    adata: Any,
    *,
    key: str = "nmf",
    layer: str | None = None,
    use_raw: bool | None = None,
    copy: bool = False,
) -> Any:
    """Compute z-scores and spectra in counts of a median cell, as cNMF does.

    See `sipower.inference.spectra` for the definitions. The usages of cNMF are the shares that
    `sipower.tl.nmf` stores.

    Parameters
    ----------
    adata
        AnnData after `sipower.tl.nmf`; the results are stored in it.
    key
        Name of the results of `sipower.tl.nmf`, its `key_added`.
    layer, use_raw
        Counts; None: those that were fitted. "X" is adata.X. A warning says if they are others.
    copy
        Return a copy with the results and leave `adata` unchanged.

    Returns
    -------
    AnnData or None
        The copy if `copy` is true, else None. Components are in the order of ``varm[key]``:

        ``varm[key + "_z"]``
            z-scores, (genes, K): by how many standard deviations a gene exceeds its mean in a cell
            that consists of one program alone.
        ``varm[key + "_median"]``
            Expected counts of the genes in a cell of median total that consists of one program
            alone, (genes, K).
        ``uns[key]["median_total"]``
            Median of the totals of the cells.

    Examples
    --------
    >>> import anndata, sipower
    >>> import numpy as np
    >>> V = np.random.default_rng(0).poisson(5.0, (60, 10)).astype("float32")
    >>> cells = anndata.AnnData(V)
    >>> sipower.tl.nmf(cells, 3)
    >>> sipower.tl.spectra(cells)
    >>> cells.varm["nmf_z"].shape
    (10, 3)
    """
    check_anndata("adata", adata, copy)
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    run = Run.from_anndata(adata, key)
    called = run.facts["parameters"]
    place, fitted = fitted_place(adata, run, layer, use_raw), run.facts.get("whole_numbers")
    counts = choose_counts(adata, *place)
    observed = observed_columns(adata, weight_key=called.get("weight_key"))
    V = as_matrix(counts).with_names(adata.obs_names.to_numpy(), adata.var_names.to_numpy())
    with anndata_values(adata, place.origin, counts, is_new=True, fitted=fitted):
        if layer is None and use_raw is None:  # else it has been said
            warn_if_other_data(V, run, run.W, run.H)
        result = compute_spectra(V, run, **observed)
    annotate(adata, {"varm": spectra_arrays(result, key)})
    adata.uns.setdefault(key, {})["median_total"] = result.median_total
    return adata if copy else None
