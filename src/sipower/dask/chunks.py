# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of whole rows, from a Dask array or from files.

`as_chunks` divides the data into chunks; `ChunkInfo` describes one that a worker has loaded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from sipower.data.from_store import open_part
from sipower.data.on_disk import DEFAULT_LIMIT
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import EntryError, as_matrix, name_array
from sipower.io import open_store, read
from sipower.kernels import Array
from sipower.store import is_store
from sipower.store.layout import read_layout


@dataclass(frozen=True)
class Files:
    """A list of files with the same features, each opened by the worker that will hold its rows.

    Parameters
    ----------
    paths
        Files that `sipower.io.read` reads, or stores that `sipower convert` writes. Every worker
        must be able to open these paths. A single store is divided among the workers.
    transpose, layout, layer
        As in `sipower.io.read`.
    memory_limit
        Memory for the rows, and for the columns, of each store that a worker opens, as in
        `sipower.io.open_store`.

    Examples
    --------
    >>> from sipower.dask import Files
    >>> X = Files(["monday.h5", "tuesday.h5"], transpose=True)  # for KLNMF(...).fit(X)
    """

    paths: Sequence[str | PathLike[str]]
    transpose: bool = False
    layout: str | None = None
    layer: str | None = None
    memory_limit: int | str = DEFAULT_LIMIT

    def chunks(self, workers: int) -> list[Chunk]:
        """Return one chunk per file, or one per worker of a single store.

        A chunk has the function that a worker calls to read it.
        """
        if not self.paths:
            raise ValueError("`paths` must hold at least one file, got an empty list.")
        options, paths = replace(self, paths=()), [Path(path).absolute() for path in self.paths]
        if len(paths) == 1 and is_store(paths[0]):
            source = StorePart(paths[0], options)
            parts = [replace(source, number=number, count=workers) for number in range(workers)]
            return [Chunk(part, Origin(str(paths[0]))) for part in parts]
        return [Chunk(partial(_read, path, options), Origin(str(path))) for path in paths]


@dataclass(frozen=True)
class StorePart:
    """One of `count` ranges of the rows of a store, or of its columns; calling it opens it."""

    path: Path
    options: Files
    number: int = 0
    count: int = 1
    columns: bool = False

    def __call__(self, dtype: DTypeLike | None) -> Any:
        """Return the rows as a `StoredMatrix`, or an empty array if the range has none."""
        limit = self.options.memory_limit
        store = open_store(self.path, dtype=dtype, n_jobs=1, memory_limit=limit)
        V = store.T if self.columns != self.options.transpose else store
        part = open_part(V, self.number, self.count)
        return part if part is not None else sp.csr_array((0, V.shape[1]), dtype=V.dtype)

    @property
    def has_columns(self) -> bool:
        """Whether the store holds the other orientation too."""
        return len(read_layout(self.path).orientations) == 2

    @property
    def sha256(self) -> str | None:
        """The fingerprint of the whole store, or None for its transpose."""
        return None if self.options.transpose else read_layout(self.path).sha256


def _read(path: Path, options: Files, dtype: DTypeLike | None) -> RowBlocks | ReadRows:
    transpose = options.transpose
    if is_store(path):
        store = open_store(path, dtype=dtype, n_jobs=1, memory_limit=options.memory_limit)
        return store.T if transpose else store
    table = read(path, transpose=transpose, layout=options.layout, layer=options.layer)
    matrix = as_matrix(table.counts, dtype=dtype, n_jobs=1, rows_only=True)
    names = name_array(table.samples), name_array(table.features)
    return ReadRows(matrix.with_names(*names), table.feature_ids, table.remarks)


class ReadRows(NamedTuple):
    """The rows of a file, with what its reader says about them."""

    matrix: RowBlocks
    feature_ids: tuple[str, ...] | None
    remarks: tuple[str, ...]


class Origin(NamedTuple):
    """The source of a chunk, for error messages: its name, and the number of its first row."""

    name: str
    first: float = 0  # NaN if unknown; 0 for a file, as each file numbers its own rows

    def describe(self, problem: Exception) -> str:
        """Return the message of an error in these rows, including their source."""
        if isinstance(problem, EntryError) and not math.isnan(self.first):
            problem = problem.shift_rows(int(self.first))
        text = str(problem)
        return text if self.name in text else f"{self.name}: {text}"


class Chunk(NamedTuple):
    """A chunk of rows; `data` is a delayed chunk of an array or a function that reads a file."""

    data: Any
    origin: Origin
    shape: tuple[float, float] = (math.nan, math.nan)  # NaN if unknown


def as_chunks(X: Any, workers: int = 1) -> list[Chunk]:
    """Return the chunks of a Dask array, of an AnnData object that has one, or of files.

    `workers` is the number of workers that will hold them.
    """
    if isinstance(X, list | tuple) and X and all(isinstance(x, str | PathLike) for x in X):
        X = Files(X)
    if isinstance(X, Files):
        return X.chunks(workers)
    if hasattr(X, "loaded_chunks"):  # `WorkerRows`
        return list(X.loaded_chunks())
    if type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "obsm"):
        X = X.X
    if not isinstance(X, da.Array):
        raise TypeError(
            f"`X` must be a Dask array of row chunks, an AnnData object with one, or a list of "
            f"files, got a {type(X).__name__}: use sipower.KLNMF for data in memory."
        )
    if X.ndim != 2:
        raise ValueError(f"`X` must be 2-dimensional, got {X.ndim} dimension(s).")
    if X.numblocks[1] != 1:
        raise ValueError(
            f"`X` must have one chunk of columns, got {X.numblocks[1]}: rechunk it with "
            "X.rechunk({1: -1})."
        )
    rows, (columns,) = X.chunks
    before = itertools.accumulate(rows, initial=0)
    chunks = zip(X.to_delayed().ravel(), rows, before, strict=False)
    return [
        Chunk(chunk, Origin(f"Chunk {number}", first), (size, columns))
        for number, (chunk, size, first) in enumerate(chunks)
    ]


def locate(chunks: list[Chunk], infos: list[ChunkInfo]) -> list[Chunk]:
    """Return the chunks with their shapes and first rows, which are known once they are loaded."""
    located_chunks, before = [], 0
    for chunk, info in zip(chunks, infos, strict=True):
        first = before if math.isnan(chunk.origin.first) else chunk.origin.first
        located_chunks.append(
            chunk._replace(shape=info.shape, origin=chunk.origin._replace(first=first))
        )
        before += info.shape[0]
    return located_chunks


def check_chunks(chunks: list[Chunk], infos: list[ChunkInfo]) -> Array | None:
    """Check that all chunks are valid and have the same features; return the feature names."""
    reference = next((at for at, info in enumerate(infos) if info.column_names is not None), 0)
    for chunk, info in zip(chunks, infos, strict=True):
        if info.problem is not None:
            raise ValueError(chunk.origin.describe(info.problem))
        if info.shape[1] != infos[0].shape[1]:
            raise ValueError(
                f"{chunk.origin.name} has {info.shape[1]} features, {chunks[0].origin.name} has "
                f"{infos[0].shape[1]}: all must be the same."
            )
        if other := find_other_feature(info.column_names, infos[reference].column_names):
            raise ValueError(
                f"{chunk.origin.name} has other features than {chunks[reference].origin.name}: "
                f"{other}."
            )
    if not any(info.shape[0] for info in infos):
        raise ValueError("`X` must have at least 1 sample, got 0 samples.")
    return infos[reference].feature_names


# ---- on the workers --------------------------------------------------------------------------


class ChunkInfo(NamedTuple):
    """The description of a chunk, which is sent to the client."""

    shape: tuple[int, int]
    nnz: int = 0
    total: float = 0.0
    dense: bool = False
    dtype: Any = None
    column_names: Array | None = None
    size: int = 0  # bytes
    problem: Exception | None = None
    has_exposure: bool = False  # whether entries have weights of their own
    remarks: tuple[str, ...] = ()
    whole_numbers: float | None = None  # their share; None: a store, looked at when it was written

    @property
    def feature_names(self) -> Array | None:
        """The feature names if all of them are strings, else None.

        This is scikit-learn's rule for `feature_names_in_`.
        """
        names = self.column_names
        if names is None or not all(isinstance(name, str) for name in names):
            return None
        return np.asarray(names, object)


def find_other_feature(names: Array | None, expected: Array | None) -> str:
    """Describe the first feature that differs from the expected one; return "" if all agree."""
    if names is None or expected is None or not (names != expected).any():
        return ""
    at = int(np.argmax(names != expected))
    return f"feature {at} is {names[at]!s}, not {expected[at]!s}"
