# SPDX-License-Identifier: BSD-3-Clause
"""`WorkerFactorization`: KL-NMF of rows on workers as the problem that `solve` and `Profiled` see.

    F(H) = Σ over chunks of min over W_b ≥ 0 of D(V_b ‖ W_b Hᵀ)

A round sends H to every group of chunks and brings back g and d of `nmf.rows`, summed over its
chunks: 8 m K bytes down and 8 m K bytes up a group. The rows of W stay where they are, and are no
more than a function of H: that of a lost chunk is computed again.
"""

from __future__ import annotations

import numpy as np

from sipower.dask.worker_rows import WorkerRows
from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array
from sipower.nmf import Factors
from sipower.nmf.rows import Profile, gap_of_features, profile

__all__ = ["WorkerFactorization"]

PROFILES_KEPT = 2  # of the present point, and of the one that is tried


class WorkerFactorization:
    """KL-NMF of rows on workers with a given rank.

    Parameters
    ----------
    V
        The data.
    rank
        K.
    """

    maximise = False
    evaluation_passes = 0.0  # value and gap come with the sums

    def __init__(self, V: WorkerRows, rank: int) -> None:
        self.V, self.rank = V, rank
        self.dtype, self.column_mass = V.dtype, V.column_mass
        self._profiles: list[tuple[Array, Profile]] = []

    def profile(self, H: Array) -> Profile:
        """Return the sums over the exact rows for H; W stays with its rows, here it is empty."""
        at = next((i for i, (h, _) in enumerate(self._profiles) if np.array_equal(h, H)), None)
        if at is None:
            g, d, value, gap = self.V.reduce(_profile_sums, H)
            W = np.zeros((0, self.rank), self.dtype)
            latest = H, Profile(W, np.asarray(g), np.asarray(d), float(value), float(gap))
        else:
            latest = self._profiles.pop(at)
        self._profiles = [*self._profiles, latest][-PROFILES_KEPT:]
        return latest[1]

    def value(self, x: Factors) -> float:
        """D of the exact rows for H, in float64."""
        return self.profile(x.H).value

    def residual(self, x: Factors) -> float:
        """Certified gap of both convex halves relative to ΣV, as of `Factorization`."""
        rows = self.profile(x.H)
        gaps = rows.gap + gap_of_features(x.H, rows, self.column_mass)
        return gaps / max(self.V.total, 1e-300)

    def rounding(self, value: float) -> float:
        """8 eps (ΣV + D), eps of the working type."""
        return 8 * float(np.finfo(self.dtype).eps) * (self.V.total + abs(value))

    def is_finite(self, x: Factors) -> bool:
        """Whether H holds neither NaN nor infinity."""
        return bool(np.isfinite(x.H.sum(dtype=np.float64)))


def _profile_sums(rows: RowBlocks, H: Array) -> tuple[Array, Array, float, float]:
    """Return g, d, value and gap over the rows of a chunk, on its worker."""
    return profile(rows, H)[1:]
