# SPDX-License-Identifier: BSD-3-Clause
"""An initial H for tall data from batches of rows: a sample, online EM, then anchored epochs.

A few batches are factorised with 1.5 K components, which are then merged down to K (`merging`) and
improved by a few rounds. Components that a random start has put on the same pattern are merged,
which leaves the other components for the remaining patterns.

With W(H) the exact rows, N(H) = H ∘ Σ_i (v_i ⊘ z_i) w_iᵀ are the expected counts of each feature
from each component, a sum over rows. A stationary H is proportional to N(H), component by
component; its scale is free because W compensates for it. A batch S of b rows gives the unbiased
estimate N_S = (n/b) N over its rows, hence the update (Cappé & Moulines 2009)

    A ← (1 − ρ_t) A + ρ_t N_S(H),   H ← A with columns of sum 1,   ρ_0 = 1, ρ_t = (t + 4)^−½.

The variance of the estimate requires a small ρ_t. An anchor H₀ whose N(H₀) is known removes it (as
in SVRG and Algorithm 1 of the paper): the batch only estimates how N changes,

    A ← (1 − ρ) A + ρ [ N(H₀) + N_S(H) − N_S(H₀) ],

also unbiased, with a variance that vanishes as H and H₀ approach the same solution. The rows of the
batch at the anchor are known, so N_S(H₀) costs one pass and no row problems.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import FLOOR, Array, Draw, Stream
from sipower.loop.solve import Stop, solve
from sipower.nmf.coordinate import CCD
from sipower.nmf.extrapolated import Extrapolated
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.init import random_factor
from sipower.nmf.merging import merge_components
from sipower.problems.kl import KLBlock

__all__ = ["fit_sample", "is_tall", "run_anchored_epoch", "run_averaged_pass"]

ROWS_PER_GROUP = 128  # consecutive rows that are drawn together, so that they are read together
MAX_BATCH_ROWS = 4096
# The largest mean number of nonzeros in a batch. Batches of long rows have fewer rows, because each
# row carries more information and a batch must fit in memory.
MAX_BATCH_NONZEROS = 2**20
MIN_BATCHES = 16  # with fewer batches, a pass over them is no better than other starts
ANCHORED_RHO, ANCHORED_ROW_TOL = 0.05, 1e-4  # ρ of anchored epochs, and certified gap of their rows
SAMPLE_BATCHES = 2  # batches of the sample that is factorised first
SURPLUS = 1.5  # components of the sample's factorisation, times K
ROUNDS_BEFORE_MERGING, ROUNDS_AFTER_MERGING = 4, 3  # rounds on the sample
BATCH_ROW_TOL = 0.1  # certified gap of the rows of a batch, below their sampling noise


def is_tall(V: RowBlocks) -> bool:
    """Return whether V has enough rows for batches, and far more rows than columns."""
    return V.shape[0] >= MIN_BATCHES * MAX_BATCH_ROWS and V.shape[0] >= 4 * V.shape[1]


def fit_sample(V: RowBlocks, rank: int, seed: int) -> Array:
    """Factorise the first few batches of V and return their H, (m, K)."""
    drawn = islice(_draw_batches(V, Draw(seed, Stream.ONLINE)), SAMPLE_BATCHES)
    sample = V.with_data(V.take(np.concatenate(list(drawn))))
    if not sample.total > 0:
        return random_factor(V, rank, seed, 1).astype(V.dtype)
    surplus = _improve(sample, None, math.ceil(SURPLUS * rank), seed, ROUNDS_BEFORE_MERGING)
    merged = Factors(*merge_components(*surplus, rank))
    return _improve(sample, merged, rank, seed, ROUNDS_AFTER_MERGING).H


def _improve(V: RowBlocks, x: Factors | None, rank: int, seed: int, rounds: int) -> Factors:
    """Return the factors after some rounds from x, or from a random start."""
    solver, stop = Extrapolated(CCD(2, "active")), Stop(0, rounds=rounds)
    factors: Factors = solve(Factorization(V, rank), solver, x, stop=stop, seed=seed).x
    return factors


def run_averaged_pass(V: RowBlocks, H: Array, seed: int) -> Array:
    """Return H after one pass of online EM, which averages the statistics of the batches."""
    A = np.zeros(H.shape)
    for t, (_, part) in enumerate(batches(V, Draw(seed, Stream.ONLINE))):
        rho = 1 / math.sqrt(t + SAMPLE_BATCHES + 2) if t > 0 else 1.0
        W = KLBlock(part, H).solution(BATCH_ROW_TOL, exact=False)[0]
        A = (1 - rho) * A + rho * (V.shape[0] / part.shape[0]) * _expected_counts(part, H, W)
        H = _normalise_columns(A, H)
    return H


def run_anchored_epoch(V: RowBlocks, anchor: Any, g: Array, seed: int, epoch: int) -> Array:
    """Return H after one pass of anchored EM.

    Parameters
    ----------
    V
        Data, (n, m).
    anchor
        Factors (W, H₀), (n, K) and (m, K), with W the exact rows for H₀.
    g
        Ratio sums of the features over all rows at the anchor, (m, K).
    seed, epoch
        The key of the random order of the batches.
    """
    W, H0 = anchor
    whole = H0 * g
    A, H = whole, _normalise_columns(whole, H0)
    for rows, part in batches(V, Draw(seed, Stream.ONLINE, round=epoch)):
        now = KLBlock(part, H).solution(ANCHORED_ROW_TOL)[0].astype(part.dtype)
        change = _expected_counts(part, H, now) - _expected_counts(part, H0, W[rows])
        estimate = whole + (V.shape[0] / part.shape[0]) * change
        A = np.maximum((1 - ANCHORED_RHO) * A + ANCHORED_RHO * estimate, 0)
        H = _normalise_columns(A, H)
    return H


def batches(V: RowBlocks, draw: Draw) -> Iterator[tuple[Array, RowBlocks]]:
    """Yield all rows in random batches: row numbers and data.

    Groups of consecutive rows are drawn together. Neighbouring rows may be similar, so a batch has
    many groups.
    """
    for rows in _draw_batches(V, draw):
        yield rows, V.with_data(V.take(rows), rows_only=True)


def _draw_batches(V: RowBlocks, draw: Draw) -> Iterator[Array]:
    """Yield the row numbers of random batches, which together contain every row once."""
    n = V.shape[0]
    groups = -(-n // ROWS_PER_GROUP)
    max_rows = min(MAX_BATCH_ROWS, MAX_BATCH_NONZEROS * n // max(V.nnz, 1))
    first_rows = ROWS_PER_GROUP * draw.batch(groups, groups).astype(np.int64)
    groups_per_batch = max(max_rows // ROWS_PER_GROUP, 1)
    for at in range(0, groups, groups_per_batch):
        rows = first_rows[at : at + groups_per_batch, None] + np.arange(ROWS_PER_GROUP)
        rows = rows.ravel()
        yield rows[rows < n]


def _expected_counts(part: RowBlocks, H: Array, W: Array) -> Array:
    """Return N over the rows of a batch."""
    return H * KLBlock(part.columns, W).ratio_sums(H)


def _normalise_columns(A: Array, H: Array) -> Array:
    """Scale the columns of A to sum 1, with a small floor; take columns of sum 0 from H.

    The floor lets features enter a component that did not occur in the batches so far.
    """
    sums = A.sum(axis=0)
    alive = sums > 0
    shares = np.maximum(A / np.where(alive, sums, 1), FLOOR)
    return np.ascontiguousarray(np.where(alive, shares, H), H.dtype)
