# SPDX-License-Identifier: BSD-3-Clause
"""Weights of new samples for the components of a run."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix, name_array
from sipower.estimators import KLNMF
from sipower.estimators.attributes import row_tolerance
from sipower.io import Table
from sipower.kernels import Array
from sipower.results.run import Run


def transform_samples(run: Run, table: Table, n_jobs: int | None = None) -> tuple[Array, list[str]]:
    """Return the weights W of new samples for the components of a run, and remarks.

    They are computed with the tolerance of the run, so a sample that was part of the fit gets the
    same weights again. The remarks are sentences for the user.
    """
    counts, remarks = _align_features(table, run)
    V = as_matrix(counts, dtype=run.H.dtype, n_jobs=n_jobs)
    V = V.with_names(name_array(table.samples), name_array(run.features))
    model = KLNMF(len(run.H), init="custom", n_jobs=n_jobs, dtype=run.H.dtype)
    tol = (run.facts.get("parameters") or {}).get("tol")
    if isinstance(tol, float) and tol > 0:
        model.set_params(transform_tol=row_tolerance(model.transform_tol, tol))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        W = model._rows_for(V, run.H)
    return W, remarks + [str(warning.message) for warning in caught]


def _align_features(table: Table, run: Run) -> tuple[Any, list[str]]:
    """Return the counts with features in the order of the run, and remarks for the user.

    Features are matched by name if both the run and the file have names, else by position.
    """
    run_features, features = run.features, table.features
    if run_features == features:
        return _counts_by_position(table, run), []
    if run_features is None or features is None:
        remark = "The run or the file has no feature names: features are matched by their order."
        return _counts_by_position(table, run), [remark]
    if len(set(run_features)) < len(run_features) or len(set(features)) < len(features):
        raise ValueError(
            "Features cannot be matched by name, because some names occur twice: make them unique."
        )
    column = {name: at for at, name in enumerate(run_features)}
    unknown = [name for name in features if name not in column]
    if unknown:
        raise ValueError(
            f"The run lacks {len(unknown)} feature(s) of the data, such as {unknown[0]!r}: remove "
            "them."
        )
    if isinstance(table.counts, RowBlocks):
        raise ValueError(
            "The data on disk do not have the features of the run in the same order: read the file "
            "without --memory-limit, or convert a file that has them in this order."
        )
    missing = len(run_features) - len(features)
    remark = f"{missing:,} features of the run are not in the file: their counts are taken as 0."
    counts = sparse.coo_array(table.counts)
    columns = np.array([column[name] for name in features])[counts.col]
    shape = table.counts.shape[0], len(run_features)
    aligned = sparse.csr_array(sparse.coo_array((counts.data, (counts.row, columns)), shape=shape))
    return aligned, [remark] if missing else []


def _counts_by_position(table: Table, run: Run) -> Any:
    n_data, n_run = table.counts.shape[1], run.H.shape[1]
    if n_data != n_run:
        raise ValueError(
            f"The data have {n_data:,} features, but the run has {n_run:,}: both must have the "
            "same features in the same order (--transpose exchanges samples and features)."
        )
    return table.counts
