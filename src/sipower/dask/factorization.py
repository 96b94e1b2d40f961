# SPDX-License-Identifier: BSD-3-Clause
"""`WorkerFactorization`: KL-NMF of rows on Dask workers, as a problem for `Profiled`.

    F(H) = Σ over chunks of min over W_b ≥ 0 of D(V_b ‖ W_b Hᵀ)

V_b and W_b are the rows of V and W in chunk b. A round sends H to every group of chunks. The group
returns the sums of `nmf.rows.Profile` over its chunks: 8 m K bytes in each direction, or 16 m K
back if entries have weights of their own. The rows of W stay on the workers. They are a function of
H, so those of a lost chunk can be computed again. Weights, missing values, size factors, penalties
and prior counts of rows are known to their workers only; the client has the terms of H.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.dask.worker_rows import WorkerRows
from sipower.estimators.prepared import Prepared
from sipower.estimators.prior import row_model
from sipower.kernels import Array
from sipower.nmf import Factors
from sipower.nmf.init import random_factor
from sipower.nmf.row_sums import RowSums
from sipower.nmf.rows import Profile, feature_gap, profile
from sipower.nmf.terms import PLAIN, ModelTerms

MAX_PROFILES = 2  # number of cached profiles: at the current point and at the trial point


class WorkerFactorization:
    """The KL-NMF problem of rank K for rows on Dask workers.

    Parameters
    ----------
    V
        Data on workers, (n, m).
    rank
        Number of components K.
    terms
        What the model has besides V, W and H, of which only the terms of H are used.
    options
        Parameters of the terms of W, which the workers make from it (`row_model`); None: W has
        none.
    """

    maximise = False
    evaluation_passes = 0.0  # value and gap are computed together with g and d

    def __init__(
        self, V: WorkerRows, rank: int, terms: ModelTerms = PLAIN, options: Any = None
    ) -> None:
        self.V, self.rank, self.terms, self.options = V, rank, terms, options
        self.dtype, self.column_mass = V.dtype, V.column_mass
        self._profiles: list[tuple[Array, tuple[Profile, Array]]] = []

    def profile(self, H: Array) -> Profile:
        """Solve all rows for H and return the sums over them.

        The W of the result is empty, because W stays on the workers.
        """
        return self._profile(H)[0]

    def weights(self, H: Array) -> Array:
        """Return the column sums of the exact W for H, in the scale of the user, (K,)."""
        return self._profile(H)[1]

    def _profile(self, H: Array) -> tuple[Profile, Array]:
        at = next((i for i, (h, _) in enumerate(self._profiles) if np.array_equal(h, H)), None)
        latest = (H, self._compute(H)) if at is None else self._profiles.pop(at)
        self._profiles = [*self._profiles, latest][-MAX_PROFILES:]
        return latest[1]

    def _compute(self, H: Array) -> tuple[Profile, Array]:
        g, d, weighted, weights, *numbers = self.V.reduce_prepared(_profile_sums, H, self.options)
        if self.terms.has_own_d:  # even if no entry of some chunk has a weight of its own
            d = np.array(np.broadcast_to(d, H.shape))
        W, sums = np.zeros((0, self.rank), self.dtype), RowSums(np.asarray(d), weighted)
        rows = Profile(W, np.asarray(g), sums, *map(float, numbers))
        return rows.add_feature_penalty(self.terms, H), np.asarray(weights)

    def start(self, seed: int) -> Factors:
        """Draw a random H, with the fixed entries of the model; W is empty."""
        H = random_factor(self.V, self.rank, seed, side=1).astype(self.dtype)
        self.terms.insert_fixed(H)
        return Factors(np.zeros((0, self.rank), self.dtype), H)

    def value(self, x: Factors) -> float:
        """Return D(V ‖ W Hᵀ) and all penalties for H and its optimal W, in float64."""
        return self.profile(x.H).value

    def residual(self, x: Factors) -> float:
        """Return the certified gap of both convex halves relative to ΣV; see `Factorization`."""
        rows = self.profile(x.H)
        gaps = rows.gap + feature_gap(x.H, rows, self.column_mass, self.terms)
        return gaps / max(self.V.total, 1e-300)

    def without_penalties(self, value: float, x: Factors) -> float:
        """Return D, given the value with the penalties."""
        return value - self.profile(x.H).penalty if self.terms.has_penalty else value

    def rounding(self, value: float) -> float:
        """Return the rounding error of D, 8 eps (ΣV + D), with eps of the working dtype."""
        return 8 * float(np.finfo(self.dtype).eps) * (self.V.total + abs(value))

    def is_finite(self, x: Factors) -> bool:
        """Return whether all entries of H are finite."""
        return bool(np.isfinite(x.H.sum(dtype=np.float64)))


def _profile_sums(prepared: Prepared, H: Array, options: Any) -> tuple[Any, ...]:
    """Return the sums of `Profile` over the rows of a chunk, on its worker."""
    terms = PLAIN if options is None else row_model(options, prepared, H.shape[1])
    rows = profile(prepared.V, H, terms)
    weights = prepared.restore_rows(rows.W).sum(axis=0, dtype=np.float64)
    return rows.g, *rows.sums, weights, rows.value, rows.gap, rows.penalty
