# SPDX-License-Identifier: BSD-3-Clause
"""The first H of tall data, and of data on workers, from a sample of the rows.

First, a small sample is factorised with 1.5 K components, which are then merged down to K (see
`merging`) and improved by a few rounds. Components that a random start has put on the same pattern
are merged, which leaves the other components for the remaining patterns. Then a larger sample, four
times the first one, improves H. A few rounds of the larger sample cost less than one round of all
rows, and lower D as much (docs/tall.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array, Draw, Stream
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

__all__ = ["ROW_TOL", "START_PASSES", "fit_sample", "is_tall", "sample_rows"]

ROWS_PER_GROUP = 128  # consecutive rows that are drawn together, so that they are read together
MAX_BATCH_ROWS = 4096
# The largest mean number of nonzeros in a batch. Batches of long rows have fewer rows, because each
# row carries more information and a batch must fit in memory.
MAX_BATCH_NONZEROS = 2**20
MIN_BATCHES = 16  # with fewer batches, a sample gives no better H than other starts
SMALL_SAMPLE, LARGE_SAMPLE = 2, 8  # number of batches
SURPLUS = 1.5  # the small sample is factorised with this many times K components
ROUNDS_BEFORE_MERGING, ROUNDS_AFTER_MERGING = 4, 3  # rounds on the small sample
ROUNDS_WITHOUT_MERGING = 6  # rounds before that, with K components, for about the same cost
LARGE_ROUNDS = 5  # rounds on the large sample; 8 gave the same H on topics
# Certified gap to which rows are solved for an H that is not final. On topics and counts like those
# of cells, 0.1 took a third of the time of 0.01, and the next rounds made up for it.
ROW_TOL = 0.1
START_PASSES = 8.0  # approximate cost of a fitted sample, and of solving all rows to ROW_TOL


def is_tall(V: RowBlocks) -> bool:
    """Return whether V has enough rows for batches, and far more rows than columns."""
    return V.shape[0] >= MIN_BATCHES * MAX_BATCH_ROWS and V.shape[0] >= 4 * V.shape[1]


def fit_sample(V: RowBlocks, rank: int, seed: int, terms: ModelTerms = PLAIN) -> Array:
    """Factorise a sample of the rows of V and return its H, (m, K).

    Of the terms of the model only fixed entries and prior counts of H matter. With fixed entries
    there are no surplus components, because merging would not keep them; prior counts come last.
    """
    drawn = list(islice(_draw_batches(V, Draw(seed, Stream.ONLINE)), LARGE_SAMPLE))
    small, large = (np.concatenate(drawn[:count]) for count in (SMALL_SAMPLE, LARGE_SAMPLE))
    sample = V.with_data(V.take(small))
    if not sample.total > 0:
        return random_factor(V, rank, seed, 1).astype(V.dtype)
    fixed = ModelTerms(fixed=terms.fixed, values=terms.values)
    if terms.fixed is None:
        surplus = _improve(sample, None, math.ceil(SURPLUS * rank), seed, ROUNDS_BEFORE_MERGING)
        x = Factors(*merge_components(*surplus, rank))
    else:
        x = _improve(sample, None, rank, seed, ROUNDS_WITHOUT_MERGING, fixed)
    x = _improve(sample, x, rank, seed, ROUNDS_AFTER_MERGING, fixed)
    if len(large) > len(small):
        del sample  # its memory is needed
        sample, H = V.with_data(V.take(large)), x.H
        W = KLBlock(sample, H, terms=fixed.row_terms(H)).solution(ROW_TOL, exact=False).h
        x = _improve(sample, Factors(W, H), rank, seed, LARGE_ROUNDS, fixed)
    if terms.prior is not None and terms.prior.columns is not None:
        columns = terms.prior.columns * (sample.total / V.total)
        fixed = replace(fixed, prior=PriorCounts(columns=columns))
        x, _ = guide_start(Factorization(sample, rank, fixed), x)
        x = _improve(sample, x, rank, seed, ROUNDS_AFTER_MERGING, fixed)
    return np.asarray(x.H, V.dtype)


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


def sample_rows(V: RowBlocks) -> int:
    """Return the number of rows of the larger sample, which is held in memory."""
    return min(LARGE_SAMPLE * _groups_per_batch(V) * ROWS_PER_GROUP, V.shape[0])


def _groups_per_batch(V: RowBlocks) -> int:
    max_rows = min(MAX_BATCH_ROWS, MAX_BATCH_NONZEROS * V.shape[0] // max(V.nnz, 1))
    return max(max_rows // ROWS_PER_GROUP, 1)


def _draw_batches(V: RowBlocks, draw: Draw) -> Iterator[Array]:
    """Yield the row numbers of random batches, which together contain every row once."""
    n = V.shape[0]
    groups = -(-n // ROWS_PER_GROUP)
    first_rows = ROWS_PER_GROUP * draw.batch(groups, groups).astype(np.int64)
    groups_per_batch = _groups_per_batch(V)
    for at in range(0, groups, groups_per_batch):
        rows = first_rows[at : at + groups_per_batch, None] + np.arange(ROWS_PER_GROUP)
        rows = rows.ravel()
        yield rows[rows < n]
