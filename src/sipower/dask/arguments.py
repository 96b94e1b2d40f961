# SPDX-License-Identifier: BSD-3-Clause
"""The arguments of `fit` that say how the data were observed, divided like the chunks of the data.

Each chunk gets its rows of the arguments; what concerns features goes to all chunks.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp

from sipower.dask.chunks import Chunk
from sipower.data.names import Items, Names
from sipower.estimators.observation import (
    ARGUMENTS,
    NOTHING_GIVEN,
    as_observation,
    is_sparse,
    match_with,
)
from sipower.kernels import Array

__all__ = ["are_sizes_known", "check_arguments", "divide_arguments", "feature_scale", "has_rows"]

VECTORS = ("sample_weight", "offsets", "batch")


def check_arguments(given: tuple[Any, ...], features: Names | None = None) -> tuple[Any, ...]:
    """Return the values of `ARGUMENTS` as arrays, in the order of the features.

    Only workers know the names of samples, so values with other names than numbers are refused.
    `features` are the names of the features, None if they have none or are not known.
    """
    title = "the data on the workers"
    samples = Items("sample", 0, title=title, named_form="data in memory to sipower.KLNMF")
    columns = replace(samples, kind="feature", count=len(features or ()), names=features)
    given = match_with(samples, columns, given)
    values = dict(zip(ARGUMENTS, given, strict=True))
    for name, value in values.items():
        is_lazy = name in ("weights", "mask") and isinstance(value, da.Array) and value.ndim == 2
        if value is None or is_sparse(value) or is_lazy:
            continue
        try:
            values[name] = np.asarray(value)
        except ValueError:
            raise ValueError(f"`{name}` must be an array, got rows of several lengths.") from None
    return tuple(values[name] for name in ARGUMENTS)


def has_rows(given: tuple[Any, ...]) -> bool:
    """Return whether an argument has a value, or a row, for every sample."""
    return any(value is not None and _is_by_row(name, value) for name, value in _pairs(given))


def are_sizes_known(chunks: list[Chunk]) -> bool:
    """Return whether the number of rows of every chunk is known."""
    return not any(math.isnan(chunk.shape[0]) for chunk in chunks)


def feature_scale(given: tuple[Any, ...], features: int) -> Array | None:
    """Return the weights of the features with a mask of features, (m,), or None."""
    return as_observation((0, features), _of_features(given)).weights.columns


def divide_arguments(given: tuple[Any, ...], chunks: list[Chunk]) -> list[tuple[Any, ...]]:
    """Return the values of `ARGUMENTS` for every chunk.

    The number of rows of every chunk must be known if an argument has rows, unless all such
    arguments are Dask arrays.
    """
    if all(value is None for value in given):
        return [NOTHING_GIVEN] * len(chunks)
    sizes, features = [chunk.shape[0] for chunk in chunks], chunks[0].shape[1]
    if are_sizes_known(chunks) and not math.isnan(features):
        vectors = [value if name in VECTORS else None for name, value in _pairs(given)]
        shape = int(sum(sizes)), int(features)
        as_observation(shape, tuple(vectors))  # checks them while positions are those of all rows
        as_observation(shape, _of_features(given))
    columns = [_parts(name, value, sizes) for name, value in _pairs(given)]
    return list(zip(*columns, strict=True))


def _pairs(given: tuple[Any, ...]) -> list[tuple[str, Any]]:
    return list(zip(ARGUMENTS, given, strict=True))


def _is_by_row(name: str, value: Any) -> bool:
    return name in VECTORS or (name in ("weights", "mask") and np.ndim(value) != 1)


def _of_features(given: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if _is_by_row(name, value) else value for name, value in _pairs(given))


def _parts(name: str, value: Any, sizes: list[float]) -> list[Any]:
    """Return the part of one argument for every chunk."""
    if value is None or not _is_by_row(name, value):
        return [value] * len(sizes)
    if isinstance(value, da.Array):
        rows = value.chunks[0]
        same = [a == b or math.isnan(a) or math.isnan(b) for a, b in zip(rows, sizes, strict=False)]
        if len(rows) != len(sizes) or not all(same) or value.numblocks[1] != 1:
            raise ValueError(
                f"`{name}` must have the row chunks of `X` and one chunk of columns, got chunks "
                f"{value.chunks}: rechunk it with {name}.rechunk(X.chunks)."
            )
        return list(value.to_delayed().ravel())
    if any(math.isnan(size) for size in sizes):
        raise ValueError(
            f"`{name}` cannot be divided, because the number of rows in every chunk of `X` is not "
            f"known: call X.compute_chunk_sizes() first, or use fit_transform for files."
        )
    bounds = np.cumsum([0, *sizes]).astype(int)
    if value.shape[:1] != (bounds[-1],):
        raise ValueError(
            f"`{name}` must have one row for each of the {bounds[-1]} samples, got shape "
            f"{value.shape}."
        )
    table: Any = sp.csr_array(value) if is_sparse(value) else value
    return [table[begin:end] for begin, end in pairwise(bounds)]
