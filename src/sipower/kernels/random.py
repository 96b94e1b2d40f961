# SPDX-License-Identifier: BSD-3-Clause
"""`Draw`: counter-based random numbers (Philox4x64-10), which depend on their key alone."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower._kernels import Csr, draw_batch, draw_uniform, sample_float32, sample_float64
from sipower.kernels.doors import Array


class Stream(IntEnum):
    """The purpose for which random numbers are drawn; each value is an independent stream.

    PROBE is the same stream as FACTOR and CUT the same as ONLINE, but no run uses both of a pair.
    """

    BATCH = 0  # batches of S-SCI-PI
    POINT = 1  # random starts of `Problem`
    FACTOR = 2  # random starts of KL-NMF
    PROBE = 2  # batches that estimate a variance
    ONLINE = 3  # the order of the batches of rows
    CUT = 3  # hyperplanes that round a solution of Burer-Monteiro
    THEORY = 4  # batches of `diagnose`
    EIGENVECTOR = 5  # the start of an eigenvalue solver
    SAMPLE = 6  # items that are fitted first
    BOOTSTRAP = 7  # counts of the replicates of a bootstrap


class Draw(NamedTuple):
    """The key (seed, stream) and the counter of Philox that determine a set of random numbers.

    Attributes
    ----------
    seed, stream
        Seed of the run, and purpose of the random numbers.
    round, side, inner
        Round, side (0: rows, 1: columns) and inner step in which the numbers are drawn.
    """

    seed: int
    stream: int = Stream.BATCH
    round: int = 0
    side: int = 0
    inner: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """The key of Philox."""
        return self.seed % 2**64, int(self.stream)

    @property
    def place(self) -> tuple[int, int, int, int]:
        """The counter of Philox; kernels replace the third number by the number of the item."""
        return self.round, self.side, 0, self.inner

    def batch(self, n: int, s: int, *, replace: bool = False) -> NDArray[np.int32]:
        """Draw s of the numbers 0, ..., n − 1, with or without replacement."""
        return draw_batch(self.key, self.place, n, s, replace)

    def items(
        self, V: Csr, dtype: np.dtype[Any], share: float, *, weighted: bool, replace: bool
    ) -> tuple[Array, NDArray[np.int32], NDArray[np.int64]]:
        """Draw a share of the nonzeros of every item of V.

        Returns the values, each multiplied by the factor that makes the batch unbiased, their
        columns, and the number of nonzeros drawn from every item.
        """
        sample = sample_float32 if dtype == np.float32 else sample_float64
        return sample(V, self.key, self.place, share, weighted, replace)

    def uniform(self, *shape: int) -> NDArray[np.float64]:
        """Draw uniform numbers from the open interval (0, 1)."""
        size = int(np.prod(shape))
        return draw_uniform(self.key, self.place, size).reshape(shape)

    def poisson(self, means: Array) -> NDArray[np.int64]:
        """Draw Poisson counts with the given means, with NumPy's generator; 0 costs no number."""
        key = np.array(self.key, np.uint64)
        counter = np.array((0, self.round, self.side, self.inner), np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=counter)).poisson(means)


def batch_size(share: float, n: int) -> int:
    """Return s = ceil(share n), at least 1 and at most n. The epoch kernels use the same s."""
    return int(min(max(np.ceil(share * n), 1), n))
