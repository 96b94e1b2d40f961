# SPDX-License-Identifier: BSD-3-Clause
"""A block of rows on a worker: what is known of it, and how it travels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from sipower.data.memory import Matrix
from sipower.data.validate import as_matrix
from sipower.kernels import Array

__all__ = ["Block", "Facts", "as_block", "other_feature"]


class Facts(NamedTuple):
    """What the driver knows of a block."""

    shape: tuple[int, int]
    nnz: int = 0
    total: float = 0.0
    dtype: Any = None
    column_names: Array | None = None
    problem: Exception | None = None

    @property
    def feature_names(self) -> Array | None:
        """The names that scikit-learn keeps and compares: all of them strings."""
        names = self.column_names
        if names is None or not all(isinstance(name, str) for name in names):
            return None
        return np.asarray(names, object)


def other_feature(names: Array | None, wanted: Array | None) -> str:
    """The first feature that is not the wanted one, in words; none if names are not known."""
    if names is None or wanted is None or not (names != wanted).any():
        return ""
    at = int(np.argmax(names != wanted))
    return f"feature {at} is {names[at]!s}, not {wanted[at]!s}"


def _nothing() -> None:
    """The matrix of a block without rows."""


@dataclass
class Block:
    """Rows on a worker; no matrix if there are none, or if they were refused."""

    facts: Facts
    make: Callable[[], Matrix | None] = _nothing
    size: int = 0

    @classmethod
    def of(cls, facts: Facts, matrix: Matrix) -> Block:
        """A block of rows that are there."""
        block = cls(facts, size=_bytes(matrix))
        block.matrix = matrix
        return block

    @cached_property
    def matrix(self) -> Matrix | None:
        """The rows. What has come from another worker is made here, not while it arrives.

        Dask waits for ever for a task whose data raise when they arrive.
        """
        return self.make()

    def __reduce__(self) -> tuple[Any, ...]:
        held = vars(self).get("matrix")  # a block that has come and waits goes on as it came
        make = self.make if held is None else partial(_remade, *held.__reduce__())
        return Block, (self.facts, make, self.size)

    def __sizeof__(self) -> int:
        return self.size  # so that Dask knows what it costs to hold or to move a block


def _bytes(matrix: Matrix) -> int:
    array: Any = vars(matrix).get("array")  # none on disk
    if array is None or isinstance(array, np.ndarray):
        return 0 if array is None else array.nbytes
    return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)


def _remade(make: Callable[..., Matrix], arguments: Any, known: Any = ()) -> Matrix:
    matrix = make(*arguments)
    vars(matrix).update(known)
    return matrix


def as_block(data: Any, dtype: DTypeLike | None) -> Block:
    """Validate a chunk or the rows of a file, on the worker that will hold them."""
    shape: Any = (0, 0)
    try:
        data = data(dtype) if callable(data) else data
        shape = np.shape(data)
        if len(shape) == 2 and shape[0] == 0 < shape[1]:
            return Block(Facts(shape))
        matrix = as_matrix(data, dtype=dtype, n_jobs=1, rows_only=True)
    except (TypeError, ValueError) as problem:
        return Block(Facts(shape, problem=problem))
    facts = Facts(shape, matrix.nnz, matrix.total, matrix.dtype, matrix.column_names)
    return Block.of(facts, matrix)
