# SPDX-License-Identifier: BSD-3-Clause
"""`WorkerFactorization`: KL-NMF of rows on Dask workers, as a problem for `Profiled`.

    F(H) = Σ over chunks of min over W_b ≥ 0 of D(V_b ‖ W_b Hᵀ)

V_b and W_b are the rows of V and W in chunk b. A round sends H to every group of chunks. The group
returns the sums g and d of `nmf.rows.Profile` over its chunks: 8 m K bytes in each direction. The
rows of W stay on the workers. They are a function of H, so those of a lost chunk can be computed
again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.dask.worker_rows import WorkerRows
from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array
from sipower.nmf import Factors
from sipower.nmf.init import random_factor
from sipower.nmf.row_sums import RowSums
from sipower.nmf.rows import Profile, feature_gap, profile
from sipower.nmf.terms import PLAIN

MAX_PROFILES = 2  # number of cached profiles: at the current point and at the trial point


class WorkerFactorization:
    """The KL-NMF problem of rank K for rows on Dask workers.

    Parameters
    ----------
    V
        Data on workers, (n, m).
    rank
        Number of components K.
    """

    maximise = False
    terms = PLAIN
    evaluation_passes = 0.0  # value and gap are computed together with g and d

    def __init__(self, V: WorkerRows, rank: int) -> None:
        self.V, self.rank = V, rank
        self.dtype, self.column_mass = V.dtype, V.column_mass
        self._profiles: list[tuple[Array, Profile]] = []

    def profile(self, H: Array) -> Profile:
        """Solve all rows for H and return the sums over them.

        The W of the result is empty, because W stays on the workers.
        """
        at = next((i for i, (h, _) in enumerate(self._profiles) if np.array_equal(h, H)), None)
        if at is None:
            g, d, weighted, *numbers = self.V.reduce(_profile_sums, H)
            W, sums = np.zeros((0, self.rank), self.dtype), RowSums(np.asarray(d), weighted)
            latest = H, Profile(W, np.asarray(g), sums, *map(float, numbers))
        else:
            latest = self._profiles.pop(at)
        self._profiles = [*self._profiles, latest][-MAX_PROFILES:]
        return latest[1]

    def start(self, seed: int) -> Factors:
        """Draw a random H; W is empty."""
        H = random_factor(self.V, self.rank, seed, side=1).astype(self.dtype)
        return Factors(np.zeros((0, self.rank), self.dtype), H)

    def value(self, x: Factors) -> float:
        """Return the divergence D(V ‖ W Hᵀ) for H and its optimal W, in float64."""
        return self.profile(x.H).value

    def residual(self, x: Factors) -> float:
        """Return the certified gap of both convex halves relative to ΣV; see `Factorization`."""
        rows = self.profile(x.H)
        gaps = rows.gap + feature_gap(x.H, rows, self.column_mass)
        return gaps / max(self.V.total, 1e-300)

    def without_penalties(self, value: float, x: Factors) -> float:
        """Return D, which is the value, because there are no penalties."""
        return value

    def rounding(self, value: float) -> float:
        """Return the rounding error of D, 8 eps (ΣV + D), with eps of the working dtype."""
        return 8 * float(np.finfo(self.dtype).eps) * (self.V.total + abs(value))

    def is_finite(self, x: Factors) -> bool:
        """Return whether all entries of H are finite."""
        return bool(np.isfinite(x.H.sum(dtype=np.float64)))


def _profile_sums(rows: RowBlocks, H: Array) -> tuple[Any, ...]:
    """Return g, d, value and gap summed over the rows of a chunk, on its worker."""
    chunk = profile(rows, H)
    return chunk.g, *chunk.sums, chunk.value, chunk.gap, chunk.penalty
