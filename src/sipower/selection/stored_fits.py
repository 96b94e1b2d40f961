# SPDX-License-Identifier: BSD-3-Clause
"""Fits of data on disk that run together, so that every window is read once for all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sipower.data.row_blocks import RowBlocks
from sipower.data.shared_reads import SharedReads, share_reads
from sipower.estimators import KLNMF
from sipower.estimators.cost import factor_bytes, free_memory
from sipower.estimators.parameters import fit_rank
from sipower.selection.medoid import fit_replicate

__all__ = ["fit_together", "fits_at_once", "group_fits"]

MEMORY_SHARE = 0.5  # share of the free memory for the factors of the fits that run at a time


def fits_at_once(V: RowBlocks, model: KLNMF, fits: int, processes: int = 1) -> int:
    """Return how many of `fits` run at a time; `processes` may share the memory."""
    free = MEMORY_SHARE * free_memory() / processes
    return int(max(min(fits, free // factor_bytes(V, fit_rank(model, V, None))), 1))


def group_fits(V: RowBlocks, jobs: int, fits: int) -> SharedReads | None:
    """Return the group in which fits share the reads of V; None for data in memory."""
    if V.has_columns:
        V.T  # noqa: B018 - computed once for all fits
    return share_reads(V, jobs, fits)


def fit_together(
    models: list[KLNMF],
    store: tuple[Any, ...],
    observed: dict[str, Any],
    threads: int,
    processes: int,
) -> list[dict[str, Any]]:
    """Fit several models to one store on a Dask worker, and return the arrays of each fit.

    Parameters
    ----------
    models
        One model for each fit.
    store
        A function that opens the data, and its arguments. They are opened here, since an error on
        arrival would not be one of the task.
    observed
        Arguments of the fits.
    threads, processes
        Threads of this worker, and number of workers.
    """
    open_data, arguments = store
    V: RowBlocks = open_data(*arguments)
    jobs = fits_at_once(V, models[0], len(models), processes)

    def fit(model: KLNMF) -> dict[str, Any]:
        return fit_replicate(model.set_params(n_jobs=max(threads // jobs, 1)), V, observed)

    group = group_fits(V, jobs, len(models))
    if group is None:
        return [fit(model) for model in models]
    with group, ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(group.member(fit), models))
        except BaseException:
            group.is_over = True
            pool.shutdown(cancel_futures=True)
            raise
