# SPDX-License-Identifier: BSD-3-Clause
"""Fits of data on disk that run together, so that every window is read once for all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sipower.data.row_blocks import RowBlocks
from sipower.data.shared_reads import share_reads
from sipower.estimators import KLNMF
from sipower.estimators.memory import fits_at_once
from sipower.estimators.parameters import fit_rank
from sipower.selection.medoid import fit_replicate

__all__ = ["fit_together"]


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
    jobs = fits_at_once(V, fit_rank(models[0], V, None), len(models), processes)

    def fit(model: KLNMF) -> dict[str, Any]:
        return fit_replicate(model, V, observed)

    group = share_reads(V, jobs, len(models), threads)
    if group is None:
        return [fit(model) for model in models]
    with group, ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(group.member(fit), models))
        except BaseException:
            group.is_over = True
            pool.shutdown(cancel_futures=True)
            raise
