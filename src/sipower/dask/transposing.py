# SPDX-License-Identifier: BSD-3-Clause
"""`with_columns`: bring the columns of rows on Dask workers together, for a `WorkerMatrix`.

Every chunk of rows is cut into ranges of columns, one for each worker, and every worker joins the
pieces of its columns from all chunks. The columns of a store that has them are read from there.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sipower.dask.chunk_tasks import describe
from sipower.dask.chunks import ChunkInfo, StorePart
from sipower.dask.loaded_chunk import LoadedChunk, load_chunk
from sipower.dask.task_names import task_key
from sipower.dask.waiting import map_chunks, wait_for
from sipower.dask.worker_matrix import Group, WorkerMatrix
from sipower.dask.worker_rows import WorkerRows
from sipower.data.memory import Matrix, read_only
from sipower.data.row_blocks import RowBlocks

__all__ = ["is_stored", "with_columns"]


def with_columns(rows: WorkerRows) -> WorkerMatrix:
    """Return the data with their columns on the workers too."""
    groups = _stored_columns(rows) if is_stored(rows) else _joined_columns(rows)
    return WorkerMatrix(rows, (_row_groups(rows), groups))


def is_stored(rows: WorkerRows) -> bool:
    """Return whether the workers can read the columns from a store."""
    part = rows.chunks[0].data
    return isinstance(part, StorePart) and part.has_columns and not rows.is_observed


def _stored_columns(rows: WorkerRows) -> list[Group]:
    client = rows.client
    holders, parts = sorted(client.nthreads()), [chunk.data for chunk in rows.chunks]
    futures = [
        client.submit(
            load_chunk, replace(part, columns=True), rows.dtype, workers=[holder], pure=False,
            key=task_key("columns", number), allow_other_workers=True,
        )
        for number, (holder, part) in enumerate(zip(itertools.cycle(holders), parts))
    ]  # fmt: skip
    infos = map_chunks(client, "info", describe, futures)
    bounds = itertools.accumulate((info.shape[0] for info in infos), initial=0)
    ranges = zip(futures, itertools.cycle(holders), itertools.pairwise(bounds), strict=False)
    return [Group(holder, [f], [(a, b)]) for f, holder, (a, b) in ranges if b > a]


def _joined_columns(rows: WorkerRows) -> list[Group]:
    client, threads = rows.client, rows.client.nthreads()
    holders = sorted(threads)
    counts = np.asarray(rows.reduce(_column_counts))
    bounds = cut_columns(counts, [threads[holder] for holder in holders])
    pieces = [
        client.submit(
            _cut, future, bounds, key=task_key("cut", number), workers=[place],
            allow_other_workers=True, pure=False,
        )
        for number, (future, place) in enumerate(zip(rows.futures, rows.places, strict=True))
        if rows.chunks[number].shape[0]
    ]  # fmt: skip
    groups = []
    for number, (holder, (begin, end)) in enumerate(zip(holders, pairwise(bounds), strict=True)):
        if begin == end:
            continue
        mine = [
            client.submit(_get, piece, number, key=task_key("piece", number), pure=False)
            for piece in pieces
        ]
        columns = client.submit(
            _join, mine, rows.dtype, key=task_key("columns", number), workers=[holder],
            allow_other_workers=True, pure=False,
        )  # fmt: skip
        groups.append(Group(holder, [columns], [(begin, end)]))
    wait_for(client, [group.chunks[0] for group in groups])
    return groups


def cut_columns(counts: NDArray[Any], threads: list[int]) -> list[int]:
    """Return the first columns of ranges with about equal work per thread, and the end."""
    upto = np.append(0, np.cumsum(counts + 1))
    shares = np.cumsum(threads)[:-1] / sum(threads)
    cuts = np.searchsorted(upto, upto[-1] * shares)
    return [0, *(int(cut) for cut in cuts), len(counts)]


def _row_groups(rows: WorkerRows) -> list[Group]:
    """Return the chunks of every worker with the numbers of their rows."""
    groups: dict[str, Group] = {}
    begin = 0
    for chunk, future, place in zip(rows.chunks, rows.futures, rows.places, strict=True):
        end = begin + int(chunk.shape[0])
        if end > begin:
            group = groups.setdefault(place, Group(place, [], []))
            group.chunks.append(future)
            group.ranges.append((begin, end))
        begin = end
    return list(groups.values())


# ---- on the workers --------------------------------------------------------------------------


def _column_counts(rows: RowBlocks) -> NDArray[np.int64]:
    if rows.dense:
        return np.full(rows.shape[1], rows.shape[0])
    counts = np.zeros(rows.shape[1], np.int64)
    for begin, end in pairwise(rows.bounds):
        counts += np.bincount(rows.rows(begin, end).indices, minlength=rows.shape[1])
    return counts


def _cut(chunk: LoadedChunk, bounds: list[int]) -> list[Any]:
    """Return the transpose of every range of columns of a chunk, as arrays or in CSR."""
    prepared = chunk.prepared()
    assert prepared is not None
    V = prepared.V
    array: Any = V.array if V.is_in_memory else V.rows(0, V.shape[0])
    if V.dense:
        return [np.ascontiguousarray(array[:, begin:end].T) for begin, end in pairwise(bounds)]
    by_column = sp.csr_array(array.T)
    return [by_column[begin:end] for begin, end in pairwise(bounds)]


def _get(pieces: list[Any], number: int) -> Any:
    return pieces[number]


def _join(pieces: list[Any], dtype: Any) -> LoadedChunk:
    """Return columns as items, from their pieces in all chunks of rows."""
    array: Any
    if all(isinstance(piece, np.ndarray) for piece in pieces):
        array = np.hstack(pieces)
    else:
        array = sp.csr_array(sp.hstack([sp.csr_array(piece) for piece in pieces], format="csr"))
    matrix = Matrix(read_only(array), dtype, rows_only=True)
    size = array.nbytes if matrix.dense else array.nnz * (4 + array.dtype.itemsize)
    info = ChunkInfo(matrix.shape, matrix.nnz, matrix.total, matrix.dense, matrix.dtype, None, size)
    return LoadedChunk(info, matrix)
