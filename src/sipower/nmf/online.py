# SPDX-License-Identifier: BSD-3-Clause
"""Initial H for tall data from batches of rows: fit a sample, then run online EM.

First, a few batches are factorised with 1.5 K components, which are then merged down to K (see
`merging`) and improved by a few rounds. Components that a random start has put on the same pattern
are merged, which leaves the other components for the remaining patterns.

Then online EM passes over all batches. Let W(H) be the exact solution of the row problems for H.
The expected counts of each feature from each component, N(H) = H ∘ Σ_i (v_i ⊘ z_i) w_iᵀ, are a sum
over rows. At a stationary point each column of H is proportional to the same column of N(H); its
scale is free because W compensates for it. For a batch S of b rows, n/b times the sum over its rows
is an unbiased estimate N_S(H) of N(H). This leads to the update (Cappé & Moulines 2009)

    A ← (1 − ρ_t) A + ρ_t N_S(H),   H ← A with columns of sum 1,   ρ_0 = 1, ρ_t = (t + 4)^−½.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import FLOOR, Array, Draw, Stream
from sipower.loop.solve import Stop, solve
from sipower.nmf.coordinate import CCD
from sipower.nmf.extrapolated import Extrapolated
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.guided_start import guide_start
from sipower.nmf.init import random_factor
from sipower.nmf.merging import merge_components
from sipower.nmf.prior_counts import PriorCounts
from sipower.nmf.terms import PLAIN, ModelTerms
from sipower.problems.kl import KLBlock

__all__ = ["fit_sample", "is_tall", "run_averaged_pass"]

ROWS_PER_GROUP = 128  # consecutive rows that are drawn together, so that they are read together
MAX_BATCH_ROWS = 4096
# The largest mean number of nonzeros in a batch. Batches of long rows have fewer rows, because each
# row carries more information and a batch must fit in memory.
MAX_BATCH_NONZEROS = 2**20
MIN_BATCHES = 16  # with fewer batches, a pass over them gives no better H than other starts
SAMPLE_BATCHES = 2  # number of batches in the sample that is factorised first
SURPLUS = 1.5  # the sample is factorised with this many times K components
ROUNDS_BEFORE_MERGING, ROUNDS_AFTER_MERGING = 4, 3  # rounds on the sample
ROUNDS_WITHOUT_MERGING = 6  # rounds before that, with K components, for about the same cost
BATCH_ROW_TOL = 0.1  # certified gap of the rows in online EM; the sampling noise is larger


def is_tall(V: RowBlocks) -> bool:
    """Return whether V has enough rows for batches, and far more rows than columns."""
    return V.shape[0] >= MIN_BATCHES * MAX_BATCH_ROWS and V.shape[0] >= 4 * V.shape[1]


def fit_sample(V: RowBlocks, rank: int, seed: int, terms: ModelTerms = PLAIN) -> Array:
    """Factorise the first few batches of V and return their H, (m, K).

    Of the terms of the model only fixed entries and prior counts of H matter. With fixed entries
    there are no surplus components, because merging would not keep them; prior counts come last.
    """
    drawn = islice(_draw_batches(V, Draw(seed, Stream.ONLINE)), SAMPLE_BATCHES)
    sample = V.with_data(V.take(np.concatenate(list(drawn))))
    if not sample.total > 0:
        return random_factor(V, rank, seed, 1).astype(V.dtype)
    fixed = ModelTerms(fixed=terms.fixed, values=terms.values)
    if terms.fixed is None:
        surplus = _improve(sample, None, math.ceil(SURPLUS * rank), seed, ROUNDS_BEFORE_MERGING)
        x = Factors(*merge_components(*surplus, rank))
    else:
        x = _improve(sample, None, rank, seed, ROUNDS_WITHOUT_MERGING, fixed)
    if terms.prior is not None and terms.prior.columns is not None:
        columns = terms.prior.columns * (sample.total / V.total)
        fixed = replace(fixed, prior=PriorCounts(columns=columns))
        x, _ = guide_start(Factorization(sample, rank, fixed), x)
    return _improve(sample, x, rank, seed, ROUNDS_AFTER_MERGING, fixed).H


def _improve(
    V: RowBlocks,
    x: Factors | None,
    rank: int,
    seed: int,
    rounds: int,
    terms: ModelTerms = PLAIN,
) -> Factors:
    """Return the factors after `rounds` rounds from x, or from a random start if x is None."""
    solver, stop = Extrapolated(CCD(2, "active")), Stop(0, rounds=rounds)
    factors: Factors = solve(Factorization(V, rank, terms), solver, x, stop=stop, seed=seed).x
    return factors


def run_averaged_pass(V: RowBlocks, H: Array, seed: int) -> Array:
    """Return H after one pass of online EM, which averages the expected counts of the batches."""
    A = np.zeros(H.shape)
    for t, (_, part) in enumerate(batches(V, Draw(seed, Stream.ONLINE))):
        rho = 1 / math.sqrt(t + SAMPLE_BATCHES + 2) if t > 0 else 1.0
        W = KLBlock(part, H).solution(BATCH_ROW_TOL, exact=False)[0]
        A = (1 - rho) * A + rho * (V.shape[0] / part.shape[0]) * _expected_counts(part, H, W)
        H = _normalise_columns(A, H)
    return H


def batches(V: RowBlocks, draw: Draw) -> Iterator[tuple[Array, RowBlocks]]:
    """Yield row numbers and data of random batches, which together contain every row once.

    Groups of consecutive rows are drawn together. Neighbouring rows may be similar, so a batch
    consists of many groups.
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
    """Return the expected counts N(H) of a batch; W holds the rows that belong to the batch."""
    return H * KLBlock(part.columns, W).ratio_sums(H)


def _normalise_columns(A: Array, H: Array) -> Array:
    """Return A with its columns scaled to sum 1; columns whose sum is 0 are taken from H.

    Every entry is at least FLOOR, so that a feature that did not occur in the batches so far can
    still enter a component.
    """
    sums = A.sum(axis=0)
    alive = sums > 0
    shares = np.maximum(A / np.where(alive, sums, 1), FLOOR)
    return np.ascontiguousarray(np.where(alive, shares, H), H.dtype)
