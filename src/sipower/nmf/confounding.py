# SPDX-License-Identifier: BSD-3-Clause
"""Batch effects that cannot be told from a component that only one batch contains.

Effects multiply all samples of a batch alike. So they explain differences between batches, but none
within a batch, and only what varies within a batch tells effects from components. Two things are
looked for; neither uses the size of an effect that a private component may have bent:

- a *uniform* batch, whose samples hardly differ in their components although its effects explain
  much. Any profile of these samples is then some profile times some effects.
- a *private* component, whose share varies from sample to sample in one batch and nowhere else.

With too few components a fit merges a private component with another one and bends the effects. So
the private ones are also looked for after a few rounds with some more components, which begin at
the samples that are fitted worst, on a sample of the rows. A few of them may all merge with types
of all batches, so with many batches there is another try with twice as many.

======  ===============================================================  ============
symbol  meaning                                                          shape
======  ===============================================================  ============
s       share of every component in the expected counts of every sample  (n, K)
E       counts that every batch and feature is expected to have          (batches, m)
γ       effects of every batch relative to those of the others           (batches, m)
======  ===============================================================  ============
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array
from sipower.loop.solve import Stop, solve
from sipower.nmf.batch_effects import BatchEffects, BatchFactorization, BatchFactors
from sipower.nmf.exposure import Exposure, batch_sums
from sipower.nmf.terms import ModelTerms

__all__ = ["Confounding", "find_confounding"]

Float = NDArray[np.float64]
MAX_ROWS, MAX_BATCH_ROWS = 500, 100  # rows of the sample, in all and of one batch
MIN_BATCH_ROWS = 20  # of many batches
MAX_SAMPLED_BATCHES = 50  # with more batches, no components are added
ROUNDS = 6  # rounds with additional components; with 4 on twice the rows, more were missed
ADDED = 3  # additional components, each for another batch; then twice as many
WORST_SHARE = 0.1  # of the samples of a batch, that a component begins at
ADDED_SHARE = 0.1  # share of the counts that `ADDED` components begin with
# A component is private if the fourth central moment of its share is smaller than this elsewhere,
# relative to its batch. (The fourth depends little on the share of samples that have the component
# and on the noise of the others.) On simulated batches (`benchmarks/observed.py`) it was below 0.07
# for nearly all private components, and above 0.14 for shared ones.
MAX_RELATIVE_SPREAD = 0.08
MIN_VARIANCE = 0.003  # of the share; a component of 1 % of the samples has more
MIN_PRIVATE_SAMPLES = 5.0  # in the batch
MIN_EXPECTED_ELSEWHERE = 10.0  # samples that the other batches would have
# A batch is uniform if its components gain less than these shares of what they gain in another
# batch, or of what its effects gain. In simulated uniform batches, one of them was below 0.07 or
# 0.042. In others both were above 0.3, or 0.08 with ±1 log unit on a third of the features.
MAX_RELATIVE_GAIN, MAX_GAIN_OF_EFFECTS = 0.1, 0.05
MIN_UNIFORM_SAMPLES = 10
MIN_LOG_EFFECT = 0.1  # smaller effects, as with a large `batch_prior`, take up no component
NAMED_FEATURES = 3
TINY = np.finfo(float).tiny


class Confounding(NamedTuple):
    """A batch, and the features whose effects cannot be told from a component of it alone."""

    batch: int
    features: Array


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A fit of some rows: factors in float64, and the exposure with the fitted effects."""

    x: BatchFactors
    exposure: Exposure

    @property
    def batch(self) -> Array:
        """The batch of every sample."""
        assert self.exposure.batch is not None
        return self.exposure.batch

    @property
    def sizes(self) -> Array:
        """The number of samples of every batch."""
        return np.bincount(self.batch, minlength=len(self.x.effects))

    def component_counts(self) -> Float:
        """Return the counts that each component is expected to have in each sample, (n, K)."""
        return np.asarray(self.x.W * self.exposure.linear_terms(0, self.x.H))


def _as_fitted(x: BatchFactors, exposure: Exposure) -> _Fitted:
    W, H = (np.asarray(factor, np.float64) for factor in x[:2])
    return _Fitted(BatchFactors(W, H, x.effects), replace(exposure, effects=x.effects))


def find_confounding(problem: BatchFactorization, x: BatchFactors) -> list[Confounding]:
    """Return the confounded batches of a fitted problem, the largest effects or shares first.

    The cost is that of about 33 passes over at most `MAX_SAMPLED_BATCHES` · `MIN_BATCH_ROWS` rows
    with `ADDED` more components, and with more batches than these of as many passes again with
    twice as many. There are no random numbers.
    """
    batches = len(x.effects)
    if batches < 2 or not problem.V.total > 0 or not problem.is_finite(x):
        return []
    if np.abs(np.log(x.effects)).max() < MIN_LOG_EFFECT:
        return []
    fitted = _as_fitted(x, problem.exposure)
    rows = _sample_rows(problem.V.mass, fitted.batch)
    V, exposure = _take(problem.V, problem.exposure, rows)
    sample = _as_fitted(x._replace(W=x.W[rows]), exposure)
    found = _uniform_batches(V, sample, fitted) or _private_components(fitted)
    if found or batches > MAX_SAMPLED_BATCHES:
        return found
    found = _private_components(_add_components(V, sample, problem.prior, ADDED))
    if found or batches <= ADDED:
        return found
    return _private_components(_add_components(V, sample, problem.prior, 2 * ADDED))


def _sample_rows(mass: Float, batch: Array) -> Array:
    """Return evenly spaced rows of every batch, without rows of zeros."""
    batches = int(batch.max()) + 1
    size = min(MAX_BATCH_ROWS, max(MAX_ROWS // batches, MIN_BATCH_ROWS))
    rows = []
    for b in range(batches):
        mine = np.flatnonzero((batch == b) & (mass > 0))
        at = np.linspace(0, len(mine) - 1, min(size, len(mine))).round().astype(np.int64)
        rows.append(mine[at])
    return np.sort(np.concatenate(rows))


def _take(V: RowBlocks, exposure: Exposure, rows: Array) -> tuple[RowBlocks, Exposure]:
    """Return some rows of the data with their exposure."""
    assert exposure.batch is not None
    assert exposure.effects is not None
    part = V.with_data(V.take(rows))
    batch = exposure.batch[rows]
    special = None if exposure.special is None else sparse.csr_array(exposure.special[rows])
    of_batch = [part.array[batch == b] for b in range(len(exposure.effects))]
    counts = np.stack([np.asarray(rows.sum(axis=0, dtype=np.float64)) for rows in of_batch])
    return part, Exposure(special, 0.0, exposure.effects, batch, counts)


# ---- uniform batches -----------------------------------------------------------------------------


def _uniform_batches(V: RowBlocks, sample: _Fitted, fitted: _Fitted) -> list[Confounding]:
    """Return the batches whose effects explain much, and whose components explain little."""
    if fitted.x.W.shape[1] < 2:
        return []
    within, sizes = _gain_within(V, sample, fitted), fitted.sizes
    gains, logs = _gain_of_effects(fitted)
    found: dict[int, tuple[float, Array]] = {}
    for b in map(int, np.flatnonzero(sizes >= MIN_UNIFORM_SAMPLES)):
        gain = gains[b].sum() / sizes[b]
        largest = max(MAX_RELATIVE_GAIN * within.max(), MAX_GAIN_OF_EFFECTS * gain)
        # Effects of no meaning gain half a unit of likelihood for each feature.
        is_large = gain > max(MAX_RELATIVE_GAIN * within.max(), len(gains[b]) / sizes[b])
        if is_large and within[b] < largest:
            found[b] = gain, _strongest(np.where(logs[b] > 0, gains[b], 0))
    return _sort(found)


def _gain_within(V: RowBlocks, sample: _Fitted, fitted: _Fitted) -> Float:
    """Return how much the weights of single samples gain over those of their batch, (batches,).

    It is the mean gain of the log likelihood of a sample, less that of K − 1 weights of no meaning.
    """
    W, H, effects = sample.x
    mean = batch_sums(fitted.x.W, fitted.batch, len(effects))[sample.batch]
    d = sample.exposure.linear_terms(0, H)
    rows, columns, values = _entries(V)
    ratio = _products(W, H, rows, columns) / _products(mean, H, rows, columns)
    gains = np.bincount(rows, values * np.log(ratio), len(W))
    gains -= V.mass * np.log((W * d).sum(axis=1) / (mean * d).sum(axis=1))
    sizes = np.maximum(sample.sizes, 1)
    return np.asarray(np.bincount(sample.batch, gains, len(effects)) / sizes - (H.shape[1] - 1) / 2)


def _gain_of_effects(fitted: _Fitted) -> tuple[Float, Float]:
    """Return what γ gains for every batch and feature, and log γ at equal expected counts."""
    logs, sizes = np.log(fitted.x.effects), fitted.sizes[:, None]
    gamma = logs - (sizes.T @ logs - sizes * logs) / (len(fitted.batch) - sizes)
    E = fitted.x.effects * fitted.exposure.expected(fitted.x.W, fitted.x.H)
    without = (E * np.exp(-gamma)).sum(axis=1, keepdims=True)
    gamma = gamma - np.log(E.sum(axis=1, keepdims=True) / without)
    return E * gamma - E * (1 - np.exp(-gamma)), gamma


# ---- private components --------------------------------------------------------------------------


def _private_components(fitted: _Fitted) -> list[Confounding]:
    """Return the largest component of each batch that varies in no other batch."""
    counts, batches = fitted.component_counts(), len(fitted.sizes)
    used = counts.sum(axis=1) > 0
    batch, sizes = fitted.batch[used], np.maximum(fitted.sizes, 1)[:, None]
    share = counts[used] / counts[used].sum(axis=1, keepdims=True)
    deviation = share - (batch_sums(share, batch, batches) / sizes)[batch]
    variance = batch_sums(deviation**2, batch, batches) / sizes
    spread = batch_sums(deviation**4, batch, batches) / sizes
    # About the share of the samples that have the component, if it is small and others lack it.
    frequency = variance**2 / np.maximum(spread, TINY)
    found: dict[int, tuple[float, Array]] = {}
    for b in range(batches):
        elsewhere = np.delete(spread, b, axis=0).max(axis=0)
        is_private = (
            (variance[b] > MIN_VARIANCE)
            & (elsewhere < MAX_RELATIVE_SPREAD * spread[b])
            & (frequency[b] * sizes[b] >= MIN_PRIVATE_SAMPLES)
            & (frequency[b] * (len(batch) - sizes[b]) >= MIN_EXPECTED_ELSEWHERE)
        )
        if is_private.any():
            k = int(np.argmax(np.where(is_private, variance[b], 0)))
            found[b] = float(variance[b, k]), _distinct_features(fitted, b, k)
    return _sort(found)


def _distinct_features(fitted: _Fitted, b: int, k: int) -> Array:
    """Return the features that tell component k from the other components of batch b."""
    W, H, effects = fitted.x
    weights = W[fitted.batch == b].sum(axis=0)
    profiles = effects[b] * (H * weights).T  # (K, m)
    own, others = profiles[k], profiles.sum(axis=0) - profiles[k]
    own, others = own / own.sum(), others / max(others.sum(), TINY)
    ratio = (own + TINY) / np.maximum(others, 1e-3 * own + TINY)
    return _strongest(own * np.log(ratio))


def _sort(found: dict[int, tuple[float, Array]]) -> list[Confounding]:
    """Return batches with their size and features, the largest first."""
    order = sorted(found, key=lambda b: -found[b][0])
    return [Confounding(b, found[b][1]) for b in order]


def _strongest(gains: Float) -> Array:
    """Return the features with the largest gains, all of them positive."""
    order = np.argsort(-gains, kind="stable")[:NAMED_FEATURES]
    return order[gains[order] > 0]


# ---- more components -----------------------------------------------------------------------------


def _add_components(V: RowBlocks, sample: _Fitted, prior: float, added: int) -> _Fitted:
    """Return a fit of the sample with more components, one for each batch that is fitted worst."""
    (W, H, effects), batch = sample.x, sample.batch
    rows, columns, values = _entries(V)
    expected = effects[batch[rows], columns] * _products(W, H, rows, columns)
    misfit = np.bincount(rows, values * np.log(values / expected), len(W)) / V.mass
    worst, profiles = {}, []
    for b in range(len(effects)):
        mine = np.flatnonzero(batch == b)
        if len(mine):
            order = mine[np.argsort(-misfit[mine], kind="stable")]
            worst[b] = order[: max(int(WORST_SHARE * len(mine)), 1)]
    for b in sorted(worst, key=lambda b: -misfit[worst[b]].mean())[:added]:
        everywhere = H @ W.sum(axis=0)
        own = np.asarray(V.array[worst[b]].sum(axis=0), np.float64) / effects[b]
        profile = own / own.sum() + 1e-3 * everywhere / everywhere.sum()
        profiles.append(profile)
    share = ADDED_SHARE / min(len(profiles), ADDED)
    weights = np.repeat(share * V.mass[:, None], len(profiles), axis=1)
    start = BatchFactors(
        np.hstack([W, weights]).astype(V.dtype),
        np.column_stack([H, *profiles]).astype(V.dtype),
        effects,
    )
    problem = BatchFactorization(V, start.H.shape[1], ModelTerms(sample.exposure), prior)
    stop = Stop(0.0, rounds=ROUNDS)
    result = solve(problem, BatchEffects(near=True), start, stop=stop, seed=0)
    return _as_fitted(result.x, sample.exposure)


def _entries(V: RowBlocks) -> tuple[Array, Array, Float]:
    """Return rows, columns and values of the positive entries of data in memory."""
    entries: Any = sparse.coo_array(V.array)
    kept = entries.data > 0
    rows, columns = (index[kept] for index in entries.coords)
    return rows, columns, entries.data[kept].astype(np.float64)


def _products(W: Float, H: Float, rows: Array, columns: Array) -> Float:
    """Return the entries of W Hᵀ at the given places."""
    out = np.zeros(len(rows))
    for k in range(H.shape[1]):
        out += W[rows, k] * H[columns, k]
    return np.maximum(out, TINY)
