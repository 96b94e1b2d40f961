# SPDX-License-Identifier: BSD-3-Clause
"""Tasks on single loaded chunks, which run on the workers that hold the chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.dask.chunks import ChunkInfo
from sipower.dask.loaded_chunk import LoadedChunk
from sipower.data.plausibility import data_remarks, measure_values
from sipower.estimators.fingerprints import fingerprint
from sipower.kernels import Array

__all__ = [
    "describe",
    "fingerprint_data",
    "fingerprint_observation",
    "pass_on",
    "row_sums",
    "take_rows",
]


def describe(chunk: LoadedChunk) -> ChunkInfo:
    """Return the description of a chunk, with what its values look like."""
    V, remarks = chunk.matrix, chunk.remarks
    if V is None or not V.is_in_memory:
        return chunk.info
    if remarks is None:
        remarks = data_remarks(V, (V.row_names, V.column_names), "`X.T`", is_part=True)
    return chunk.info._replace(remarks=remarks, whole_numbers=measure_values(V).share)


def pass_on(chunk: LoadedChunk) -> LoadedChunk:
    """Return a chunk unchanged: the worker of this task holds it from then on."""
    return chunk


def take_rows(chunk: LoadedChunk, from_end: Array) -> Any:
    """Return rows of a chunk, whose numbers are counted from its end and negative."""
    V: Any = chunk.prepared().V  # type: ignore[union-attr]
    return V.take(from_end + V.shape[0])


def row_sums(chunk: LoadedChunk) -> Array:
    """Return the sums of the weighted rows."""
    prepared = chunk.prepared()
    return np.zeros(0) if prepared is None else prepared.V.mass


def fingerprint_data(chunk: LoadedChunk) -> str:
    """Return the fingerprint of the weighted rows."""
    prepared = chunk.prepared()
    return "" if prepared is None else prepared.V.sha256


def fingerprint_observation(chunk: LoadedChunk) -> str:
    """Return the fingerprint of the size factors and of the weights of entries."""
    prepared = chunk.prepared()
    if prepared is None:
        return ""
    special = None if prepared.exposure is None else prepared.exposure.special
    parts = prepared.row_scale, special
    return " ".join("-" if part is None else fingerprint(part) for part in parts)
