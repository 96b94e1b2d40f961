# SPDX-License-Identifier: BSD-3-Clause
"""`gather_prepared`: what the client must know of weights, missing values, offsets and batches.

The workers multiply their rows by the weights. Fits with the factors on the client also need the
scales of the rows, the weights of single entries and the sums of the counts of every batch there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sipower.dask.loaded_chunk import LoadedChunk
from sipower.dask.waiting import map_chunks
from sipower.dask.worker_matrix import WorkerMatrix
from sipower.dask.worker_rows import WorkerRows
from sipower.estimators.prepared import Prepared, batch_counts, batch_numbers
from sipower.kernels import Array
from sipower.nmf.exposure import Exposure

__all__ = ["gather_prepared"]


class Observed(NamedTuple):
    """How the rows of one chunk were observed; None where nothing is special."""

    shape: tuple[int, int]
    row_scale: Array | None
    sample_weight: Array | None
    special: Any
    log_sum: float
    counts: Array | None


def gather_prepared(
    rows: WorkerRows, V: WorkerMatrix, batch: Array | None, batches: Array | None
) -> Prepared:
    """Return the data of a fit with their scales and exposure.

    Parameters
    ----------
    rows
        The rows, as the workers hold them.
    V
        The same data in both orientations.
    batch, batches
        Label of the batch of every sample, and all labels; None: no batches.
    """
    if not rows.is_observed:
        return Prepared(V)
    chunks = map_chunks(rows.client, "observed", _observed, rows.futures, batches=batches)
    parts: list[Observed] = [part for part in chunks if part is not None]
    exposure = None
    if batches is not None or rows.has_exposure:
        special = _stack(parts) if rows.has_exposure else None
        exposure = Exposure(special, sum(part.log_sum for part in parts))
        if batches is not None:
            assert batch is not None
            effects = np.ones((len(batches), V.shape[1]))
            counts = sum(part.counts for part in parts if part.counts is not None)
            numbers = batch_numbers(batch, batches)
            exposure = Exposure(special, exposure.log_sum, effects, numbers, np.asarray(counts))
    scales = [_join([getattr(part, name) for part in parts]) for name in Observed._fields[1:3]]
    return Prepared(V, exposure, scales[0], rows.column_scale, scales[1])


def _join(parts: list[Any]) -> Array | None:
    return None if parts[0] is None else np.concatenate(parts)


def _stack(parts: list[Observed]) -> Any:
    """Return the special entries of all rows, in CSR."""
    chunks = [sp.csr_array(part.shape) if part.special is None else part.special for part in parts]
    return sp.csr_array(sp.vstack(chunks, format="csr"))


def _observed(chunk: LoadedChunk, batches: Array | None) -> Observed | None:
    """Return how the rows of a chunk were observed, on its worker."""
    prepared = chunk.prepared()
    if prepared is None:
        return None
    special, log_sum, counts = None, 0.0, None
    if prepared.exposure is not None:
        special, log_sum = prepared.exposure.special, prepared.exposure.log_sum
    if batches is not None:
        assert chunk.observation.batch is not None
        numbers = batch_numbers(chunk.observation.batch, batches)
        counts = batch_counts(prepared.V, numbers, len(batches))
    return Observed(
        prepared.V.shape, prepared.row_scale, prepared.sample_weight, special, log_sum, counts
    )
