# SPDX-License-Identifier: BSD-3-Clause
"""`WorkerFactor`: a factor W whose rows are on the workers, next to the rows of the data.

For each group of chunks there is one task, whose result is a pair of W and its extrapolation, each
a list with the rows of every chunk of the group. A lost result is computed again by Dask from the
tasks that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import get_worker

from sipower.dask.collective import broadcast
from sipower.dask.loaded_chunk import LoadedChunk
from sipower.dask.task_names import task_key
from sipower.dask.waiting import gather_results
from sipower.dask.worker_rows import WorkerRows, large_graphs
from sipower.kernels import Array

__all__ = ["RowTasks", "WorkerFactor"]


class WorkerFactor:
    """W (n, K) on the workers; NumPy gathers it when it is read as an array.

    Parameters
    ----------
    tasks
        The tasks of the rows of the data.
    pairs
        Future of the pair of every group.
    side
        Which of the pair this factor is: 0 for W, 1 for its extrapolation.
    rank
        Number of components K.
    """

    def __init__(self, tasks: RowTasks, pairs: list[Any], side: int, rank: int) -> None:
        self.tasks, self.pairs, self.side = tasks, pairs, side
        self.shape, self.dtype = (tasks.V.shape[0], rank), tasks.V.dtype

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The size of W in bytes."""
        return self.shape[0] * self.shape[1] * int(self.dtype.itemsize)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        W = np.zeros(self.shape, self.dtype)
        for rows, part in zip(self.tasks.ranges, self.gather(), strict=True):
            for (begin, end), chunk in zip(rows, part, strict=True):
                W[begin:end] = chunk
        return W if dtype is None else W.astype(dtype)

    def gather(self) -> list[list[Array]]:
        """Return the rows of every chunk of every group."""
        client = self.tasks.V.client
        parts = [
            client.submit(_pick, pair, self.side, key=task_key("gather", number), pure=False)
            for number, pair in enumerate(self.pairs)
        ]
        return gather_results(client, parts)


class RowTasks:
    """Tasks on the groups of chunks of the data, each next to its rows.

    Parameters
    ----------
    V
        Data on workers, (n, m).
    """

    def __init__(self, V: WorkerRows) -> None:
        self.V = V
        ends = np.cumsum([int(chunk.shape[0]) for chunk in V.chunks])
        begins = ends - [int(chunk.shape[0]) for chunk in V.chunks]
        bounds = {f.key: (int(b), int(e)) for f, b, e in zip(V.futures, begins, ends, strict=True)}
        # First and last row of every chunk of every group.
        self.ranges = [[bounds[chunk.key] for chunk in chunks] for chunks in V.groups.values()]

    def submit(self, name: str, function: Callable[..., Any], *arguments: list[Any]) -> list[Any]:
        """Submit function(*own arguments, *chunks) for every group and return the futures.

        Each of `arguments` is a list with one entry for each group. The function gets the chunks
        of the group as `LoadedChunk`.
        """
        V = self.V
        with large_graphs():
            return [
                V.client.submit(
                    function,
                    *(argument[number] for argument in arguments),
                    *chunks,
                    key=task_key(name, number),
                    workers=[holder],
                    allow_other_workers=True,
                    pure=False,
                )
                for number, (holder, chunks) in enumerate(V.groups.items())
            ]

    def same(self, value: Any) -> list[Any]:
        """Return the same argument for every group."""
        return [value] * len(self.ranges)

    def shared(self, H: Array) -> list[Any]:
        """Return H as an argument for every group; workers get a large H from each other."""
        return broadcast(self.V.client, H, list(self.V.groups))

    def split(self, futures: list[Any], rank: int) -> tuple[WorkerFactor, WorkerFactor, list[Any]]:
        """Return W, its extrapolation and futures of the sums, of tasks that return (pair, sums).

        The pairs stay on the workers.
        """
        client = self.V.client
        pairs, sums = (
            [
                client.submit(_pick, future, at, key=task_key(name, number), pure=False)
                for number, future in enumerate(futures)
            ]
            for at, name in enumerate(("rows", "sums"))
        )
        return WorkerFactor(self, pairs, 0, rank), WorkerFactor(self, pairs, 1, rank), sums

    def place(self, W: Array) -> WorkerFactor:
        """Return W (n, K) on the workers, as data of tasks that depend on no other task."""
        parts = self.divide(np.asarray(W, self.V.dtype))
        return self.restore(parts, parts, W.shape[1])[0]

    def divide(self, W: Array) -> list[list[Array]]:
        """Return the rows of W of every chunk of every group."""
        return [[W[begin:end] for begin, end in rows] for rows in self.ranges]

    def restore(self, W: Any, W_ahead: Any, rank: int) -> tuple[WorkerFactor, WorkerFactor]:
        """Return a gathered W and its extrapolation as data of tasks that depend on no other."""
        pairs = self.submit("restore", _restore, W, W_ahead)
        return WorkerFactor(self, pairs, 0, rank), WorkerFactor(self, pairs, 1, rank)


# ---- on the workers --------------------------------------------------------------------------


def _pick(result: Any, at: int) -> Any:
    return result[at]


def _restore(W: list[Array], W_ahead: list[Array], *_: LoadedChunk) -> Any:
    return W, W_ahead


def prepare_chunks(chunks: tuple[LoadedChunk, ...]) -> list[Any]:
    """Return the `Prepared` of the chunks of a group, with all threads of this worker."""
    return [chunk.prepared(get_worker().state.nthreads) for chunk in chunks]
