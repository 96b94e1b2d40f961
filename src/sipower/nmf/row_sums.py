# SPDX-License-Identifier: BSD-3-Clause
"""`RowSums`: the sums over the rows of W from which the problem of H has all its terms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Array

__all__ = ["RowSums"]

Float = NDArray[np.float64]


class RowSums(NamedTuple):
    """Sums over the rows of W; those of several groups of rows are the sums of theirs.

    Attributes
    ----------
    d
        Linear terms Σ_i X_ij W_ik of the features, (m, K), or (K,) if all features have the same;
        None: the column sums of W.
    weighted
        Σ_i τ_i W_ik, Σ_i b_ik, Σ_i λ_i W_ik and Σ_i r_i W_ik², (4, K), with the rates τ and prior
        counts b of `PriorCounts` and the L1 penalties λ and ridges r of W; zero without them.
    """

    d: Array | None
    weighted: Float

    @property
    def rates(self) -> Float:
        """Σ_i τ_i W_ik, (K,)."""
        return np.asarray(self.weighted[0])

    @property
    def prior(self) -> Float:
        """Σ_i b_ik, (K,)."""
        return np.asarray(self.weighted[1])

    @property
    def penalties(self) -> Float:
        """Σ_i λ_i W_ik and Σ_i r_i W_ik², (2, K)."""
        return np.asarray(self.weighted[2:])

    def rescale(self, scale: Array) -> RowSums:
        """Return the sums for W divided by `scale`, (K,)."""
        divisor = np.stack([scale, np.ones_like(scale), scale, scale**2])
        return RowSums(None if self.d is None else self.d / scale, self.weighted / divisor)
