# SPDX-License-Identifier: BSD-3-Clause
"""A first good H for tall data from batches of rows: a sample, online EM, then anchored epochs.

A few batches are factorised with half as many components again, which are then merged down to K
(`merging`) and fitted a little more: components that a random start has put on the same pattern
are merged, and none is missing elsewhere.

With W(H) the exact rows, N(H) = H ∘ Σ_i (v_i ⊘ z_i) w_iᵀ are the counts that each component is
expected to have given to each feature, a sum over rows. A stationary H is proportional to N(H),
component by component, and its scale is free since W takes it up. A batch S of b rows has the
unbiased estimate N_S = (n/b) N over its rows, hence (Cappé & Moulines 2009)

    A ← (1 − ρ_t) A + ρ_t N_S(H),   H ← A with columns of sum 1,   ρ_0 = 1, ρ_t = (t + 4)^−½.

The estimate's variance keeps ρ_t small. An anchor H₀ whose N(H₀) is known takes it away (as in
SVRG and Algorithm 1 of the paper): the batch only says how N changes,

    A ← (1 − ρ) A + ρ [ N(H₀) + N_S(H) − N_S(H₀) ],

unbiased too, with a variance that vanishes as H and H₀ come to the same solution. The rows of the
batch at the anchor are known: N_S(H₀) costs one pass and no solving.
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

__all__ = ["anchored_epoch", "averaged_pass", "is_tall", "sampled_start"]

CHUNK, BATCH = 128, 4096  # rows that stay together, and most rows of a batch
MOST_TERMS = 2**20  # of a batch, on average: long rows tell more, and must fit into memory
LEAST_BATCHES = 16  # fewer are no good start
ANCHORED, FINE = 0.05, 1e-4  # ρ of anchored epochs, and certified gap of their rows
SAMPLE = 2  # batches that are factorised first
SURPLUS = 1.5  # components of that, times K
SURPLUS_ROUNDS, ROUNDS = 4, 3  # of it, before and after merging
ROUGH = 0.1  # certified gap of the rows of a batch: less than their chance


def is_tall(V: RowBlocks) -> bool:
    """Whether there are batches enough and far more rows than columns."""
    return V.shape[0] >= LEAST_BATCHES * BATCH and V.shape[0] >= 4 * V.shape[1]


def sampled_start(V: RowBlocks, rank: int, seed: int) -> Array:
    """H of a factorisation of the first few batches of V, wherever its rows are."""
    drawn = islice(_drawn(V, Draw(seed, Stream.ONLINE)), SAMPLE)
    sample = V.with_data(V.take(np.concatenate(list(drawn))))
    if not sample.total > 0:
        return random_factor(V, rank, seed, 1).astype(V.dtype)
    surplus = _improve(sample, None, math.ceil(SURPLUS * rank), seed, SURPLUS_ROUNDS)
    merged = Factors(*merge_components(*surplus, rank))
    return _improve(sample, merged, rank, seed, ROUNDS).H


def _improve(V: RowBlocks, x: Factors | None, rank: int, seed: int, rounds: int) -> Factors:
    """Return the factors after some rounds from x, or from a random start."""
    solver, stop = Extrapolated(CCD(2, "active")), Stop(0, rounds=rounds)
    factors: Factors = solve(Factorization(V, rank), solver, x, stop=stop, seed=seed).x
    return factors


def averaged_pass(V: RowBlocks, H: Array, seed: int) -> Array:
    """H after one pass over batches of rows, their statistics averaged."""
    A = np.zeros(H.shape)
    for t, (_, part) in enumerate(batches(V, Draw(seed, Stream.ONLINE))):
        rho = 1 / math.sqrt(t + SAMPLE + 2) if t > 0 else 1.0
        W = KLBlock(part, H).solution(ROUGH, exact=False)[0]
        A = (1 - rho) * A + rho * (V.shape[0] / part.shape[0]) * _counts(part, H, W)
        H = _normalised(A, H)
    return H


def anchored_epoch(V: RowBlocks, anchor: Any, g: Array, seed: int, epoch: int) -> Array:
    """H after one pass from an anchor (W, H) whose ratio sums over all rows are g."""
    W, H0 = anchor
    whole = H0 * g
    A, H = whole, _normalised(whole, H0)
    for rows, part in batches(V, Draw(seed, Stream.ONLINE, round=epoch)):
        now = KLBlock(part, H).solution(FINE)[0].astype(part.dtype)
        change = _counts(part, H, now) - _counts(part, H0, W[rows])
        estimate = whole + (V.shape[0] / part.shape[0]) * change
        A = np.maximum((1 - ANCHORED) * A + ANCHORED * estimate, 0)
        H = _normalised(A, H)
    return H


def batches(V: RowBlocks, draw: Draw) -> Iterator[tuple[Array, RowBlocks]]:
    """All rows, in batches of chunks drawn at random: near rows may be alike."""
    for rows in _drawn(V, draw):
        yield rows, V.with_data(V.take(rows), rows_only=True)


def _drawn(V: RowBlocks, draw: Draw) -> Iterator[Array]:
    n = V.shape[0]
    chunks, most = -(-n // CHUNK), min(BATCH, MOST_TERMS * n // max(V.nnz, 1))
    order, together = CHUNK * draw.batch(chunks, chunks).astype(np.int64), max(most // CHUNK, 1)
    for at in range(0, chunks, together):
        rows = (order[at : at + together, None] + np.arange(CHUNK)).ravel()
        yield rows[rows < n]


def _counts(part: RowBlocks, H: Array, W: Array) -> Array:
    """N over the rows of a batch."""
    return H * KLBlock(part.columns, W).ratio_sums(H)


def _normalised(A: Array, H: Array) -> Array:
    """Columns of sum 1; a component that no row has kept stays as it was.

    A feature that the batches so far did not have must be able to come.
    """
    sums = A.sum(axis=0)
    alive = sums > 0
    shares = np.maximum(A / np.where(alive, sums, 1), FLOOR)
    return np.ascontiguousarray(np.where(alive, shares, H), H.dtype)
