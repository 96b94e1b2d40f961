# SPDX-License-Identifier: BSD-3-Clause
"""`verify_on_workers`: the verifier, on the workers that hold the data.

Every worker checks its rows of V and W, one task for each group of chunks; the client adds what
they found, and verifies H with these sums.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sipower.dask.collective import add_results
from sipower.dask.loaded_chunk import LoadedChunk
from sipower.dask.worker_factor import RowTasks
from sipower.data.weighting import Weights
from sipower.estimators.certificate import state_problem
from sipower.estimators.observation import Observation
from sipower.kernels import Array
from sipower.verification import (
    ProblemStatement,
    RowCheck,
    Verification,
    check_rows,
    conclude,
    weighted_total,
)

__all__ = ["verify_on_workers"]


def verify_on_workers(
    model: Any,
    tasks: RowTasks,
    W: list[Any],
    H: Array,
    *,
    batch: Array | None = None,
    effects: Array | None = None,
) -> Verification:
    """Return objective and certified gap of factors in the scale of the user.

    Parameters
    ----------
    model
        A model whose parameters, and labels `batches_` if there are batches, state the problem.
    tasks
        The tasks of the rows of the data.
    W
        For every group of chunks a list of the rows of W of each chunk, or a future of it.
    H
        H, (m, K).
    batch, effects
        Label of the batch of every sample, and batch effects (batches, m); None: no batches.
    """
    V, (m, K) = tasks.V, H.shape
    observation = Observation(Weights(None, V.column_scale, None), None, batch)
    known = ProblemStatement(feature_weight=V.column_scale)

    def sum_data() -> float:
        (total,) = add_results(V.client, tasks.submit("total", _sum_group, tasks.same(known)), 8)
        return float(total)

    statement = state_problem(model, V, observation, K, effects, sum_data=sum_data)
    # Rows do not depend on the terms of H.
    for_rows = replace(statement, prior_H=None, fixed=None, values=None, batch=None)
    futures = tasks.submit(
        "verify", _check_group, W, tasks.shared(H), tasks.same(for_rows),
        _cut(statement.batch, tasks), tasks.ranges,
    )  # fmt: skip
    nbytes = 8 * m * (2 * K + 1 + 2 * (0 if effects is None else len(effects)))
    (rows,) = add_results(V.client, futures, nbytes)
    return conclude(rows, H, statement)


def _cut(batch: Any, tasks: RowTasks) -> list[Any]:
    """Return the numbers of the batches of the rows of every chunk of every group."""
    if batch is None:
        return [[None] * len(ranges) for ranges in tasks.ranges]
    return [[batch[begin:end] for begin, end in ranges] for ranges in tasks.ranges]


# ---- on the workers --------------------------------------------------------------------------


def _observe(statement: ProblemStatement, chunk: LoadedChunk, batch: Any) -> ProblemStatement:
    """Return the problem of the rows of a chunk."""
    weights = chunk.observation.weights
    return replace(
        statement, sample_weight=weights.rows, entry_weight=weights.entries,
        offsets=chunk.observation.offsets, batch=batch,
    )  # fmt: skip


def _check_group(
    W: list[Array], H: Array, statement: ProblemStatement, batch: list[Any],
    ranges: list[tuple[int, int]], *chunks: LoadedChunk,
) -> tuple[RowCheck]:  # fmt: skip
    parts = [
        check_rows(chunk.matrix, rows, H, _observe(statement, chunk, labels), first)
        for chunk, rows, labels, (first, _) in zip(chunks, W, batch, ranges, strict=True)
    ]
    return (sum(parts),)  # type: ignore[return-value]


def _sum_group(statement: ProblemStatement, *chunks: LoadedChunk) -> tuple[float]:
    parts = [weighted_total(chunk.matrix, _observe(statement, chunk, None)) for chunk in chunks]
    return (float(np.sum(parts)),)
