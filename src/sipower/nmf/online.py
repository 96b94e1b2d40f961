# SPDX-License-Identifier: BSD-3-Clause
"""A first good H for tall data from batches of rows: online EM, then anchored epochs of it.

With W(H) the exact rows, N(H) = H ∘ Σ_i (v_i ⊘ z_i) w_iᵀ are the counts that each component is
expected to have given to each feature, a sum over rows. A stationary H is proportional to N(H),
component by component, and its scale is free since W takes it up. A batch S of b rows has the
unbiased estimate N_S = (n/b) N over its rows, hence (Cappé & Moulines 2009)

    A ← (1 − ρ_t) A + ρ_t N_S(H),   H ← A with columns of sum 1,   ρ_t = (t + 2)^−½.

The first batches are gone over several times, max(1, 8 − t): components that have not yet parted
would otherwise stay together.

The estimate's variance keeps ρ_t small. An anchor H₀ whose N(H₀) is known takes it away (as in
SVRG and Algorithm 1 of the paper): the batch only says how N changes,

    A ← (1 − ρ) A + ρ [ N(H₀) + N_S(H) − N_S(H₀) ],

unbiased too, with a variance that vanishes as H and H₀ come to the same solution. The rows of the
batch at the anchor are known: N_S(H₀) costs one pass and no solving.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from sipower.kernels import FLOOR, Array, Draw
from sipower.matrix import Matrix
from sipower.problems.kl import KLBlock

__all__ = ["anchored_epoch", "averaged_pass", "is_tall"]

STREAM = 3  # of the random numbers
CHUNK, BATCH = 128, 1024  # rows that stay together, and rows of a batch
LEAST_BATCHES = 64  # fewer are no good start
ANCHORED = 0.05  # ρ of anchored epochs
EARLY = 8  # visits of the first batch; the next has one less
ROUGH = 1e-2  # certified gap of the rows of a batch


def is_tall(V: Matrix) -> bool:
    """Whether there are batches enough and far more rows than columns."""
    return V.shape[0] >= LEAST_BATCHES * BATCH and V.shape[0] >= 4 * V.shape[1]


def averaged_pass(V: Matrix, H: Array, seed: int) -> Array:
    """H after one pass over batches of rows, their statistics averaged."""
    A = np.zeros(H.shape)
    for t, (_, part) in enumerate(batches(V, Draw(seed, STREAM))):
        rho = 1 / math.sqrt(t + 2) if t > 0 else 1.0
        for _ in range(max(1, EARLY - t)):
            A = (1 - rho) * A + rho * (V.shape[0] / part.shape[0]) * _counts(part, H)
            H = _normalised(A, H)
    return H


def anchored_epoch(V: Matrix, anchor: Any, g: Array, seed: int, epoch: int) -> Array:
    """H after one pass from an anchor (W, H) whose ratio sums over all rows are g."""
    W, H0 = anchor
    whole = H0 * g
    A, H = whole, _normalised(whole, H0)
    for rows, part in batches(V, Draw(seed, STREAM, round=epoch)):
        change = _counts(part, H) - _counts(part, H0, W[rows])
        estimate = whole + (V.shape[0] / part.shape[0]) * change
        A = np.maximum((1 - ANCHORED) * A + ANCHORED * estimate, 0)
        H = _normalised(A, H)
    return H


def batches(V: Matrix, draw: Draw) -> Iterator[tuple[Array, Matrix]]:
    """All rows, in batches of chunks drawn at random: near rows may be alike."""
    chunks = -(-V.shape[0] // CHUNK)
    order = draw.batch(chunks, chunks)
    for at in range(0, chunks, BATCH // CHUNK):
        spans = [
            (int(c) * CHUNK, min((int(c) + 1) * CHUNK, V.shape[0]))
            for c in order[at : at + BATCH // CHUNK]
        ]
        parts = [V.rows(*span) for span in spans]
        joined = np.vstack(parts) if V.dense else sp.csr_array(sp.vstack(parts, format="csr"))
        rows = np.concatenate([np.arange(*span) for span in spans])
        yield rows, Matrix(joined, V.dtype, V.threads, transposable=False)


def _counts(part: Matrix, H: Array, W: Array | None = None) -> Array:
    """N over the rows of a batch, which are solved where W is not known."""
    if W is None:
        W = KLBlock(part, H).solution(ROUGH)[0]
    block = KLBlock(part.columns, W.astype(part.dtype))
    return H * block.ratio_sums(H)


def _normalised(A: Array, H: Array) -> Array:
    """Columns of sum 1; a component that no row has kept stays as it was.

    A feature that the batches so far did not have must be able to come.
    """
    sums = A.sum(axis=0)
    alive = sums > 0
    shares = np.maximum(A / np.where(alive, sums, 1), FLOOR)
    return np.ascontiguousarray(np.where(alive, shares, H), H.dtype)
