# SPDX-License-Identifier: BSD-3-Clause
"""`as_chunks`: the data of a user as chunks of whole rows, from a Dask array or from files."""

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
from numpy.typing import DTypeLike

from sipower.data.on_disk import DEFAULT_LIMIT
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import EntryError, as_matrix, name_array
from sipower.io import open_store, read
from sipower.store import is_store

__all__ = ["Chunk", "Files", "Origin", "as_chunks"]


@dataclass(frozen=True)
class Files:
    """Files with the same features, each opened by the worker that will hold its rows.

    Parameters
    ----------
    paths
        Files that `sipower.io.read` reads, or stores of `sipower convert`; every worker must be
        able to open these paths.
    transpose, layout, layer
        As of `sipower.io.read`.
    memory_limit
        Memory for each store that a worker opens, as of `sipower.io.open_store`.

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

    def chunks(self) -> list[Chunk]:
        """Return a chunk for every file, with a function that a worker calls to read it."""
        if not self.paths:
            raise ValueError("`paths` must hold at least one file, got an empty list.")
        options, paths = replace(self, paths=()), [Path(path).absolute() for path in self.paths]
        return [Chunk(partial(_read, path, options), Origin(str(path))) for path in paths]


def _read(path: Path, options: Files, dtype: DTypeLike | None) -> RowBlocks:
    transpose = options.transpose
    if is_store(path):
        store = open_store(path, dtype=dtype, n_jobs=1, memory_limit=options.memory_limit)
        return store.T if transpose else store
    table = read(path, transpose=transpose, layout=options.layout, layer=options.layer)
    matrix = as_matrix(table.counts, dtype=dtype, n_jobs=1, rows_only=True)
    return matrix.with_names(None, name_array(table.features))


class Origin(NamedTuple):
    """The source of rows, for messages: its name, and the number of its first row."""

    name: str
    first: float = 0  # NaN: not known; 0 for a file, whose rows are numbered on their own

    def describe(self, problem: Exception) -> str:
        """Return the message of an error in these rows, with their source."""
        if isinstance(problem, EntryError) and not math.isnan(self.first):
            problem = problem.shift_rows(int(self.first))
        text = str(problem)
        return text if self.name in text else f"{self.name}: {text}"


class Chunk(NamedTuple):
    """A chunk of rows: a delayed chunk of an array, or a function that reads a file."""

    data: Any
    origin: Origin
    shape: tuple[float, float] = (math.nan, math.nan)  # NaN: not known


def as_chunks(X: Any) -> list[Chunk]:
    """Return the chunks of a Dask array, of an AnnData object that has one, or of files."""
    if isinstance(X, list | tuple) and X and all(isinstance(x, str | PathLike) for x in X):
        X = Files(X)
    if isinstance(X, Files):
        return X.chunks()
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
