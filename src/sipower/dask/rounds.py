# SPDX-License-Identifier: BSD-3-Clause
"""KL-NMF of blocks on workers as the problem that `solve` and `Profiled` see.

    F(H) = Σ over blocks of min over W_b ≥ 0 of D(V_b ‖ W_b Hᵀ)

A round sends H to every group of blocks and brings back g and d of `nmf.rows`, summed over its
blocks: 8 m K bytes down and 8 m K bytes up a group. The rows of W stay where they are, and are no
more than a function of H: that of a lost block is computed again.
"""

from __future__ import annotations

import numpy as np
from distributed import get_worker

from sipower.dask.block import Block
from sipower.dask.blocks import Blocks
from sipower.kernels import Array
from sipower.nmf import Factors
from sipower.nmf.rows import Profile, gap_of_features, profile

__all__ = ["Distributed"]

KNOWN = 2  # profiles that are kept: of the present point, and of the one that is tried


class Distributed:
    """KL-NMF of blocks with a given rank.

    Parameters
    ----------
    blocks
        The data.
    rank
        K.
    """

    maximise = False
    evaluation_passes = 0.0  # value and gap come with the sums

    def __init__(self, blocks: Blocks, rank: int) -> None:
        self.blocks, self.rank = blocks, rank
        self.dtype, self.column_mass = blocks.dtype, blocks.column_mass
        self._known: list[tuple[Array, Profile]] = []

    def profile(self, H: Array) -> Profile:
        """The sums over the exact rows for H; W stays with its rows, here it is empty."""
        at = next((i for i, (h, _) in enumerate(self._known) if np.array_equal(h, H)), None)
        if at is None:
            g, d, value, gap = _added(self.blocks.ask("round", _sums, H))
            known = H, Profile(np.zeros((0, self.rank), self.dtype), g, d, value, gap)
        else:
            known = self._known.pop(at)
        self._known = [*self._known, known][-KNOWN:]
        return known[1]

    def value(self, x: Factors) -> float:
        """D of the exact rows for H, in float64."""
        return self.profile(x.H).value

    def residual(self, x: Factors) -> float:
        """Certified gap of both convex halves relative to ΣV, as of `Factorization`."""
        found = self.profile(x.H)
        gaps = found.gap + gap_of_features(x.H, found, self.column_mass)
        return gaps / max(self.blocks.total, 1e-300)

    def rounding(self, value: float) -> float:
        """8 eps (ΣV + D), eps of the working type."""
        return 8 * float(np.finfo(self.dtype).eps) * (self.blocks.total + abs(value))

    def is_finite(self, x: Factors) -> bool:
        """Whether H holds neither NaN nor infinity."""
        return bool(np.isfinite(x.H.sum(dtype=np.float64)))


Sums = tuple[Array, Array, float, float]


def _sums(H: Array, *blocks: Block) -> Sums:
    """g, d, value and gap over the blocks of a group, with all threads of the worker."""
    threads = get_worker().state.nthreads
    matrices = [block.matrix for block in blocks if block.matrix is not None]
    found = (profile(matrix.working_in(matrix.dtype, threads), H) for matrix in matrices)
    return _added([(p.g, p.d, p.value, p.gap) for p in found])


def _added(parts: list[Sums]) -> Sums:
    """Sums of sums, in their order."""
    g, d, value, gap = (sum(column) for column in zip(*parts, strict=True))
    return np.asarray(g), np.asarray(d), float(value), float(gap)
