# SPDX-License-Identifier: BSD-3-Clause
"""Held-out perplexity: how well the components predict counts that the weights have not seen.

=====  ==================================================================
v_ij   held-out count of feature j in sample i; N = Σ_ij v_ij
z_ij   probability of feature j in sample i, (W H)_ij / Σ_l (W H)_il
b_j    probability of feature j in the other counts, (c_j + 1)/(Σ_l c_l + m)
δ      share of b that is mixed with z
=====  ==================================================================

A fifth of the counts is held out by thinning (`sipower.selection.holdout`). W is computed from the
others for the given H. The perplexity is

    exp(−(1/N) Σ_ij v_ij log[(1 − δ) z_ij + δ b_j])    for the δ that makes it smallest.

It is the number of equally probable features among which a guess would be as hard: m if nothing is
known. Wallach et al. (2009, "Evaluation methods for topic models") call this document completion.
The share of b keeps it finite if a component lacks a feature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array
from sipower.selection.holdout import entry_products, thin

__all__ = ["held_out_perplexity"]

Numbers = NDArray[np.float64]
MIN_SHARE = 1e-6  # of b


def held_out_perplexity(
    V: RowBlocks, H: Array, weights: Callable[[Any], Array], seed: int
) -> float | None:
    """Return the perplexity of held-out counts, or None if no count is held out.

    Parameters
    ----------
    V
        Whole numbers in memory, (samples, features).
    H
        Components, (K, features).
    weights
        Returns W for counts with the rows of V.
    seed
        Seed of the split.
    """
    split = thin(V, seed)
    test = split.test.tocoo()
    if not test.sum() > 0:
        return None
    W = np.asarray(weights(split.train), np.float64)
    totals = W @ H.sum(axis=1, dtype=np.float64)
    z = entry_products(W / np.where(totals > 0, totals, 1.0)[:, None], H, test.row, test.col)
    seen = np.asarray(split.train.sum(axis=0), np.float64)
    b = ((seen + 1) / (seen.sum() + len(seen)))[test.col]
    v = test.data.astype(np.float64)

    def cross_entropy(share: float) -> float:
        return float(-(v * np.log((1 - share) * z + share * b)).sum() / v.sum())

    # The cross entropy is convex in the share.
    best = minimize_scalar(cross_entropy, bounds=(MIN_SHARE, 1), method="bounded")
    return math.exp(min(float(best.fun), cross_entropy(1.0)))
