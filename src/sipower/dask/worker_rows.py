# SPDX-License-Identifier: BSD-3-Clause
"""`WorkerRows`: row blocks that Dask workers hold, and the tasks that run on them.

Chunks are grouped by the worker that holds them when a fit begins. A computation over all rows is
one task per group; its small results are added in the order of the groups. A chunk that is lost
with its worker is loaded again, and a lost task runs again on another worker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed
from distributed import get_worker
from numpy.typing import DTypeLike, NDArray

import dask
from sipower.dask.arguments import (
    are_sizes_known,
    check_arguments,
    divide_arguments,
    feature_scale,
    has_rows,
)
from sipower.dask.balance import assign_workers
from sipower.dask.chunk_tasks import (
    describe,
    fingerprint_data,
    fingerprint_observation,
    pass_on,
    row_sums,
    take_rows,
)
from sipower.dask.chunks import Chunk, ChunkInfo, StorePart, as_chunks, check_chunks, locate
from sipower.dask.loaded_chunk import LoadedChunk, load_chunk, observe_chunk
from sipower.dask.task_names import task_key
from sipower.dask.waiting import gather_results, map_chunks, wait_for
from sipower.data.memory import Matrix
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import check_total
from sipower.estimators.observation import NOTHING_GIVEN
from sipower.estimators.prepared import Prepared
from sipower.kernels import Array, count_threads


class WorkerRows(RowBlocks):
    """The data of a fit, weighted if they have weights, which the workers of a Dask client hold.

    Parameters
    ----------
    client
        Client of `distributed`.
    X
        Data that `as_chunks` accepts.
    dtype
        Working dtype; None means float64 if any chunk needs it, else float32.
    given
        Values of `sipower.estimators.observation.ARGUMENTS` for all rows.
    missing
        "nan" if NaN means not observed.
    """

    has_items = False  # the client cannot run kernels on single rows
    has_columns = False
    refusal = (
        "The rows are on Dask workers, but this step needs single rows: use `sipower.dask.KLNMF`."
    )
    layout = "chunks"  # results depend on how the rows are divided into chunks

    def __init__(
        self,
        client: Any,
        X: Any,
        dtype: DTypeLike | None,
        given: tuple[Any, ...] = NOTHING_GIVEN,
        missing: str | None = None,
    ) -> None:
        self.client, given = client, check_arguments(given)
        self.chunks = as_chunks(X, len(client.nthreads()))
        is_late = has_rows(given) and not are_sizes_known(self.chunks)
        self.futures = self._load(dtype, NOTHING_GIVEN if is_late else given, missing)
        infos = self._describe()
        if is_late:
            parts = divide_arguments(given, self.chunks)
            with large_graphs():
                self.futures = [
                    client.submit(observe_chunk, future, part, key=task_key("observe"), pure=False)
                    for future, part in zip(self.futures, parts, strict=True)
                ]
            infos = self._describe()
        self.column_scale = feature_scale(given, infos[0].shape[1])
        self.has_exposure = any(info.has_exposure for info in infos)
        self.is_observed = missing is not None or any(value is not None for value in given)
        self.shape = sum(info.shape[0] for info in infos), infos[0].shape[1]
        self.nnz = sum(info.nnz for info in infos)
        fullest = max(range(len(infos)), key=lambda number: infos[number].nnz)
        self.whole_numbers = infos[fullest].whole_numbers
        self.remarks = () if isinstance(X, RowBlocks) else self._locate_remarks(fullest, infos)
        self.dense = all(info.dense for info in infos if info.dtype)
        self.total = float(sum(info.total for info in infos))
        self.dtype = np.result_type(*(info.dtype for info in infos if info.dtype))
        self.threads = count_threads(None)  # threads of the client
        check_total(self.total, self.dtype)
        self._convert([info.dtype for info in infos])
        self.groups = self._group(infos)

    def _load(
        self, dtype: DTypeLike | None, given: tuple[Any, ...], missing: str | None
    ) -> list[Any]:
        load = delayed(load_chunk, pure=False)
        parts = divide_arguments(given, self.chunks)
        tasks = [
            load(chunk.data, dtype, part, missing, dask_key_name=task_key("chunk", number))
            for number, (chunk, part) in enumerate(zip(self.chunks, parts, strict=True))
        ]
        with large_graphs():
            return list(self.client.compute(tasks))

    def _describe(self) -> list[ChunkInfo]:
        """Return the descriptions of the loaded chunks, which must be valid."""
        infos: list[ChunkInfo] = map_chunks(self.client, "info", describe, self.futures)
        self.chunks = locate(self.chunks, infos)
        self.column_names = check_chunks(self.chunks, infos)
        return infos

    def _locate_remarks(self, number: int, infos: list[ChunkInfo]) -> tuple[str, ...]:
        """Return the remarks on a chunk, with its name if it is one of several."""
        name = f"{self.chunks[number].origin.name}: " if len(infos) > 1 else ""
        return tuple(f"{name}{remark}" for remark in infos[number].remarks)

    def _convert(self, types: list[Any]) -> None:
        """Convert the chunks to the common working dtype; `types` holds their present dtypes."""
        for number, dtype in enumerate(types):
            if dtype not in (None, self.dtype):
                chunk = self.futures[number]
                self.futures[number] = self.client.submit(
                    LoadedChunk.convert, chunk, self.dtype, key=task_key("convert"), pure=False
                )

    def _group(self, infos: list[ChunkInfo]) -> dict[str, list[Any]]:
        """Balance the chunks between the workers, and return the nonempty chunks of each worker."""
        wait_for(self.client, self.futures)
        holders, threads = self.client.who_has(self.futures), self.client.nthreads()
        any_worker = min(threads)  # for a chunk whose worker has just been lost
        places = [min(holders[future.key], default=any_worker) for future in self.futures]
        work = [info.nnz + info.shape[0] for info in infos]
        for number, place in enumerate(assign_workers(work, places, threads)):
            if place != places[number]:
                self.futures[number] = self.client.submit(
                    pass_on, self.futures[number], key=task_key("move", number), workers=[place],
                    allow_other_workers=True, pure=False,
                )  # fmt: skip
                places[number] = place
        self.places = places  # the worker of every chunk
        groups: dict[str, list[Any]] = {}
        for future, info, place in zip(self.futures, infos, places, strict=True):
            if info.shape[0]:
                groups.setdefault(place, []).append(future)
        return groups

    def loaded_chunks(self) -> list[Chunk]:
        """Return the chunks for a fit, without reading files again; stores are opened again."""
        return [
            chunk if isinstance(chunk.data, StorePart) else chunk._replace(data=future)
            for chunk, future in zip(self.chunks, self.futures, strict=True)
        ]

    def reduce(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return function(rows, *arguments) summed over all chunks, computed on their workers.

        The function returns an array or a tuple of arrays and numbers. The function and its
        arguments are part of the tasks, so nothing has to be broadcast or released.
        """
        return self._reduce(function.__name__, _on_rows, function, *arguments)

    def reduce_prepared(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the same as `reduce` for a function of the `Prepared` of every chunk."""
        return self._reduce(function.__name__, function, *arguments)

    def _reduce(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        with large_graphs():
            futures = [
                self.client.submit(
                    _reduce_group,
                    function,
                    arguments,
                    *chunks,
                    key=task_key(name, number),
                    workers=[holder],
                    allow_other_workers=True,
                    pure=False,
                )
                for number, (holder, chunks) in enumerate(self.groups.items())
            ]
        return _add(gather_results(self.client, futures))

    def take(self, items: Array) -> Any:
        """Load the rows with the numbers `items` to the client, as an array or in CSR."""
        ends = np.cumsum([chunk.shape[0] for chunk in self.chunks])
        owners = np.searchsorted(ends, items, side="right")
        order = np.argsort(owners, kind="stable")
        tasks = [
            self.client.submit(
                take_rows, self.futures[number], mine - ends[number], key=task_key("take", number),
                pure=False,
            )
            for number in np.unique(owners)
            if len(mine := items[owners == number])
        ]  # fmt: skip
        parts = gather_results(self.client, tasks)
        dense = all(isinstance(part, np.ndarray) for part in parts)
        joined: Any = np.vstack(parts) if dense else sp.csr_array(sp.vstack(parts, format="csr"))
        return joined[np.argsort(order)]

    def with_data(self, data: Any, *, rows_only: bool = False) -> Matrix:
        """Return `data`, an array or CSR, as a matrix in the memory of the client."""
        return Matrix(data, self.dtype, self.threads, rows_only=rows_only)

    def with_settings(
        self, dtype: np.dtype[Any] | None = None, threads: int | None = None
    ) -> WorkerRows:
        """Return the rows for `threads` threads of the client; the dtype cannot change."""
        if dtype is not None and dtype != self.dtype:
            raise ValueError(
                f"`dtype` must be {self.dtype}, the type of the loaded chunks, got {dtype}."
            )
        same = threads is None or threads == self.threads
        return self if same else self._copy(threads=threads)

    @cached_property
    def mass(self) -> NDArray[np.float64]:  # type: ignore[override]
        """The sums of the rows, gathered on the client."""
        return np.concatenate(map_chunks(self.client, "mass", row_sums, self.futures))

    @cached_property
    def column_mass(self) -> NDArray[np.float64]:
        """The sums of the columns."""
        return np.asarray(self.reduce(_column_mass))

    @cached_property
    def sha256(self) -> str:
        """The fingerprint of a single chunk or store, else a hash of those of all chunks."""
        part = self.chunks[0].data
        if isinstance(part, StorePart) and part.sha256 is not None and not self.is_observed:
            return part.sha256
        return self._hash(fingerprint_data)

    @cached_property
    def digest(self) -> str | None:
        """A hash of the weights, missing values and size factors of all rows; None: none."""
        return self._hash(fingerprint_observation) if self.is_observed else None

    def _hash(self, function: Callable[[LoadedChunk], str]) -> str:
        digests = map_chunks(self.client, "fingerprint", function, self.futures)
        joined = hashlib.sha256("".join(digests).encode()).hexdigest()
        return joined if len(digests) > 1 else digests[0]


def large_graphs() -> Any:
    """Allow large graphs without a warning: H or the arguments of `fit` in them are large."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"})


# ---- on the workers --------------------------------------------------------------------------


def _on_rows(prepared: Prepared, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(prepared.V, *arguments)


def _column_mass(rows: RowBlocks) -> Array:
    return rows.column_mass


def _reduce_group(function: Callable[..., Any], arguments: Any, *chunks: LoadedChunk) -> Any:
    """Return the sum of function(prepared, *arguments) over the chunks of a group.

    It runs on the worker of the group, with all threads of this worker.
    """
    parts = [chunk.prepared(get_worker().state.nthreads) for chunk in chunks]
    return _add([function(part, *arguments) for part in parts if part is not None])


def _add(parts: list[Any]) -> Any:
    """Add arrays, or tuples of arrays and numbers, in the given order."""
    if isinstance(parts[0], tuple):
        return tuple(sum(column) for column in zip(*parts, strict=True))
    return sum(parts)
