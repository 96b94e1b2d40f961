# SPDX-License-Identifier: BSD-3-Clause
"""Differences between the components of a run, from the counts that were fitted."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sipower._files import quote
from sipower.data.names import Items, match_names
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix, name_array
from sipower.estimators import KLNMF
from sipower.estimators.verdict import divergence_remark
from sipower.inference import Differences, differential
from sipower.io import Table
from sipower.kernels import Array
from sipower.results.as_run import plain_divergence
from sipower.results.new_samples import (
    ROW_PARAMETERS,
    align_features,
    align_observed,
    row_model,
)
from sipower.results.run import Run

__all__ = ["compare_components", "model_with_batches", "stored_batches"]

MAX_DIFFERENCE = 1e-6  # of the sum of the counts from that of the fit, relative


def compare_components(
    run: Run,
    table: Table,
    n_jobs: int | None = None,
    observed: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Differences, list[str]]:
    """Return the differences between the components of a run, in its order, and remarks.

    Features are matched as those of new samples. The samples must be those of the run; they are
    matched by name or, without names, by their order.

    Parameters
    ----------
    run
        The run.
    table
        The counts that were fitted.
    n_jobs
        Number of threads; None: all cores.
    observed
        Arguments of `KLNMF.fit` that say how the data were observed, for the table.
    **options
        Options of `sipower.differential`.
    """
    arguments = _check_observed(run, dict(observed or {}))
    counts, positions, remarks = align_features(table, run)
    _check_features(run, positions)
    rows, sample_remarks = _match_samples(table, run)
    arguments = align_observed(arguments, positions, run)
    if rows is not None:
        counts, arguments = counts[rows], _take_rows(arguments, rows)
    V = as_matrix(counts, n_jobs=n_jobs).with_names(None, name_array(run.features))
    remarks += sample_remarks + _remark_on_data(V, run)
    model: Any = run.W
    if "batch" in arguments:
        model = model_with_batches(run, n_jobs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        differences = differential(
            V, model, component_names=run.component_labels(), **options, **arguments
        )
    verdict = f"`model`: {differences.replication}"  # which the caller reports in any case
    texts = [str(warning.message) for warning in caught]
    return differences, remarks + [text for text in texts if text != verdict]


def model_with_batches(run: Run, n_jobs: int | None = None) -> KLNMF:
    """Return a fitted model with the components and the batch effects of a run."""
    model = row_model(run, n_jobs)
    model.components_, model.n_features_in_ = run.H, run.H.shape[1]
    model.transform_tol_ = model.transform_tol
    model.batches_, model.batch_effects_ = np.array(run.batches), np.asarray(run.batch_effects)
    return model


def stored_batches(adata: Any, run: Run, key: str) -> Run:
    """Return the run of an AnnData object with the batch effects that `sipower.tl.nmf` stored."""
    name = f"{key}_batch_effects"
    if name not in adata.varm:
        raise ValueError(f"`adata` must have varm[{name!r}], the batch effects of the fit.")
    penalties = [p for p in ROW_PARAMETERS if p != "l1_ratio" and run.facts["parameters"].get(p)]
    if penalties and run.facts["parameters"].get("normalise", True):
        raise ValueError(
            f"`adata`: a fit with `batch_key` and `{penalties[0]}` needs normalise=False in "
            "sipower.tl.nmf, because the penalty depends on the scale of the programs."
        )
    effects = adata.varm[name]
    return replace(run, batches=tuple(effects.columns), batch_effects=np.asarray(effects).T)


def _check_observed(run: Run, observed: dict[str, Any]) -> dict[str, Any]:
    """Check that the data are described as in the fit."""
    recorded, given = set(run.facts.get("observed") or {}), set(observed)
    for names, problem in (
        (recorded - given, "the run was fitted with it: give the same values again."),
        (given - recorded, "the run was fitted without it: leave it out."),
    ):
        if names:
            raise ValueError(f"`{min(names)}`: {problem}")
    return observed


def _check_features(run: Run, positions: Array | None) -> None:
    if positions is None:
        return
    has_feature = np.isin(np.arange(run.H.shape[1]), positions)
    if not has_feature.all():
        missing = run.feature_names()[int(np.argmin(has_feature))]
        raise ValueError(
            f"{int((~has_feature).sum()):,} of {len(has_feature):,} features of the run are not in "
            f"the data, such as {quote(missing)}: give the counts that were fitted."
        )


def _match_samples(table: Table, run: Run) -> tuple[Array | None, list[str]]:
    """Return the row of the table for each sample of the run, None if they are the same."""
    n_data, n_run = table.counts.shape[0], len(run.W)
    if n_data != n_run and (run.samples is None or table.samples is None):
        raise ValueError(
            f"The data have {n_data:,} samples, but the run has {n_run:,}: give the counts "
            "that were fitted (--transpose exchanges samples and features)."
        )
    matching = match_names(
        Items("sample", n_run, run.samples, title="the run"),
        Items("sample", n_data, table.samples, title="the file"),
        by_order=True,
    )
    if matching.is_same:
        return None, list(matching.remarks)
    if len(matching.first) < n_run:
        missing = int(np.setdiff1d(np.arange(n_run), matching.first)[0])
        raise ValueError(
            f"{n_run - len(matching.first):,} of {n_run:,} samples of the run are not in the data, "
            f"such as {quote(run.sample_names()[missing])}: give the counts that were fitted, "
            "of the same samples."
        )
    if isinstance(table.counts, RowBlocks):
        raise ValueError(
            "The data on disk do not have the samples of the run in the same order: use the file "
            "or the store that was fitted."
        )
    remarks = []
    if n_data > n_run:
        remarks.append(f"{n_data - n_run:,} samples of the file are not in the run: left out.")
    return matching.second, remarks


def _take_rows(arguments: dict[str, Any], rows: Array) -> dict[str, Any]:
    """Return the values of some samples; those of features alone stay as they are."""

    def take(name: str, value: Any) -> Any:
        is_shared = name == "feature_weight" or (name == "mask" and np.ndim(value) == 1)
        return value if is_shared else value[rows]

    return {name: take(name, value) for name, value in arguments.items()}


def _remark_on_data(V: RowBlocks, run: Run) -> list[str]:
    recorded = (run.facts.get("input") or {}).get("total")
    if not recorded or abs(V.total - recorded) <= MAX_DIFFERENCE * recorded:
        remark = divergence_remark(V, run.W, run.H, plain_divergence(run))
        return [] if remark is None else [remark]
    return [
        f"The counts sum to {V.total:,.6g}, but the fit had {recorded:,.6g}: check that these are "
        "the counts that were fitted."
    ]
