# SPDX-License-Identifier: BSD-3-Clause
"""Weights of new samples for the components of a run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sipower._files import quote
from sipower.data.names import Items, match_names
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix, name_array
from sipower.estimators import KLNMF
from sipower.estimators.attributes import row_tolerance
from sipower.estimators.observation import as_given
from sipower.io import Table
from sipower.kernels import Array
from sipower.results.run import Names, Run

__all__ = ["Aligned", "align_features", "align_observed", "row_model", "transform_samples"]

ROW_PARAMETERS = ("alpha_W", "l1_ratio", "prior_W")  # parameters that change the rows of W


class Aligned(NamedTuple):
    """Counts with the features of a run.

    `positions` has the feature of the run for each feature of the file, -1 for none; None: they are
    the same.
    """

    counts: Any
    positions: Array | None
    remarks: list[str]


def transform_samples(
    run: Run,
    table: Table,
    n_jobs: int | None = None,
    observed: Mapping[str, Any] | None = None,
) -> tuple[Array, list[str]]:
    """Return the weights W of new samples for the components of a run, and remarks.

    They are computed with the tolerance, the penalties and the prior of the run, so a sample that
    was part of the fit gets the same weights again. The remarks are sentences for the user.

    Parameters
    ----------
    run
        The run.
    table
        The new samples.
    n_jobs
        Number of threads; None: all cores.
    observed
        Arguments of `KLNMF.transform` that say how the samples were observed, for the features of
        the table. A batch that was not in the fit has no batch effects.
    """
    counts, positions, remarks = align_features(table, run)
    arguments = align_observed(dict(observed or {}), positions, run)
    V = as_matrix(counts, dtype=run.H.dtype, n_jobs=n_jobs)
    V = V.with_names(name_array(table.samples), name_array(run.features))
    model = row_model(run, n_jobs)
    if arguments.get("batch") is not None and run.batch_effects is not None:
        model.batches_, model.batch_effects_ = np.array(run.batches), run.batch_effects
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # With components in the order of the model, sums of products are rounded as in the fit.
        H = run.H[np.argsort(run.order)]
        W = model._rows_for(V, H, as_given(arguments))[:, run.order]
    return W, remarks + [str(warning.message) for warning in caught]


def row_model(run: Run, n_jobs: int | None = None) -> KLNMF:
    """Return a model whose rows of W have the tolerance, the penalties and the prior of a run."""
    parameters = run.facts.get("parameters") or {}
    penalties = {name: parameters[name] for name in ROW_PARAMETERS if name in parameters}
    model = KLNMF(len(run.H), init="custom", n_jobs=n_jobs, dtype=run.H.dtype, **penalties)
    tol = parameters.get("tol")
    if isinstance(tol, float) and tol > 0:
        smooth = _is_smooth(parameters)
        model.set_params(transform_tol=row_tolerance(model.transform_tol, tol, smooth=smooth))
    return model


def _is_smooth(parameters: Mapping[str, Any]) -> bool:
    """Return whether recorded parameters have penalties or prior counts; see `row_tolerance`."""
    names = ("alpha_W", "alpha_H", "prior_W", "prior_H", "guides")
    values = [parameters.get(name) for name in names]
    return any(value not in (None, "same") and np.any(value) for value in values)


def align_observed(observed: dict[str, Any], positions: Array | None, run: Run) -> dict[str, Any]:
    """Return the arguments of `KLNMF.transform` for the features of the run.

    Features of the run that the file lacks are not observed.
    """
    if positions is None:
        return observed
    has_feature = np.isin(np.arange(run.H.shape[1]), positions)
    aligned = {
        name: _align_columns(value, positions, len(has_feature), default=name != "mask")
        if name in ("feature_weight", "weights", "mask")
        else value
        for name, value in observed.items()
        if value is not None
    }
    if not has_feature.all():
        aligned["mask"] = has_feature & aligned.get("mask", True)
    return aligned


def _align_columns(values: Any, positions: Array, features: int, *, default: bool) -> Any:
    """Return values of features, or of entries, with their last axis in the order of the run."""
    is_shared = positions >= 0
    if not isinstance(values, np.ndarray):  # sparse weights of entries
        entries = values.tocoo()
        keep = is_shared[entries.col]
        places = entries.row[keep], positions[entries.col[keep]]
        shape = entries.shape[0], features
        return sparse.csr_array(sparse.coo_array((entries.data[keep], places), shape=shape))
    aligned = np.full((*values.shape[:-1], features), default, values.dtype)
    aligned[..., positions[is_shared]] = values[..., is_shared]
    return aligned


def align_features(table: Table, run: Run) -> Aligned:
    """Return counts in the order of the run.

    Features are matched by id if both the run and the file have ids, else by name if both have
    names, else by position.
    """
    n_file, n_run = table.counts.shape[1], run.H.shape[1]
    if run.features is None or table.features is None:
        _check_count(table, run)
    own = Items("feature", n_file, table.features, table.feature_ids, "the file")
    other = Items("feature", n_run, run.features, run.feature_ids, "the run")
    turn = "use --transpose or --no-transpose"
    matching = match_names(own, other, by_order=True, turn=turn)
    if matching.is_same:
        return Aligned(table.counts, None, list(matching.remarks))
    if isinstance(table.counts, RowBlocks):
        raise ValueError(
            "The data on disk do not have the features of the run in the same order: use the "
            "original file, whose features are matched by name, or reorder them before converting."
        )
    shared, positions = len(matching.first), np.full(n_file, -1)
    positions[matching.first] = matching.second
    counts = sparse.coo_array(table.counts)
    columns = positions[counts.col]
    is_known = columns >= 0
    entries = counts.data[is_known], (counts.row[is_known], columns[is_known])
    shape = table.counts.shape[0], n_run
    remarks = _remark_on_renamed(run.features or ()) if matching.kind == "name" else []
    if shared < n_run:
        remarks.append(
            f"{n_run - shared:,} of {n_run:,} features of the run are not in the "
            "file: the weights are computed from the other features alone."
        )
    if shared < n_file:
        share = 1 - float(entries[0].sum()) / max(float(counts.data.sum()), 1e-300)
        remarks.append(
            f"{n_file - shared:,} of {n_file:,} features of the file are not in the run: "
            f"{share:.2%} of all counts are left out with them."
        )
    aligned = sparse.csr_array(sparse.coo_array(entries, shape=shape))
    return Aligned(aligned, positions, remarks)


def _remark_on_renamed(names: Names) -> list[str]:
    """Return a remark if readers numbered features that share a name, as in "DUP (2)"."""
    known = set(names)
    numbered = (re.fullmatch(r"(.+) \(\d+\)", name) for name in names)
    shared = sorted({match[1] for match in numbered if match and match[1] in known})
    if not shared:
        return []
    return [
        f"{len(shared):,} names belong to several features without ids, such as "
        f"{quote(shared[0])}: these features are matched by their order in the file."
    ]


def _check_count(table: Table, run: Run) -> None:
    n_data, n_run = table.counts.shape[1], run.H.shape[1]
    if n_data != n_run:
        raise ValueError(
            f"The data have {n_data:,} features, but the run has {n_run:,}: both must have the "
            "same features in the same order (--transpose exchanges samples and features)."
        )
