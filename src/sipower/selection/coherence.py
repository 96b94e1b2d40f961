# SPDX-License-Identifier: BSD-3-Clause
"""Coherence of components: whether their leading features occur in the same samples.

=======  ==================================================================
n        number of samples
D(i)     number of samples in which feature i occurs, p(i) = D(i)/n
D(i, j)  number of samples in which features i and j occur, p(i, j) = D(i, j)/n
ε        1e-12, or the given number of samples divided by n
=======  ==================================================================

The coherence of a component is the mean over all pairs of its leading features of

    NPMI(i, j)  = log[(p(i, j) + ε) / (p(i) p(j))] / −log[p(i, j) + ε],
    UMass(i, j) = log[(p(i, j) + ε) / p(j)],    where j leads i.

NPMI is from Bouma (2009, "Normalized (pointwise) mutual information in collocation extraction") and
Röder, Both and Hinneburg (2015, "Exploring the space of topic coherence measures"), UMass from
Mimno et al. (2011, "Optimizing semantic coherence in topic models"), who add 1 to D(i, j) and sum
over the pairs. gensim 4.4 computes the same means: `c_npmi` with windows that hold whole documents,
and `u_mass`.

Two cases differ from gensim. A pair that occurs in every sample has NPMI 0, since it says nothing
(gensim: −1, the quotient of two rounding errors). A pair with a feature that never occurs has NPMI
−1, and its UMass is that of a feature in one sample (gensim: an error, and 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array

__all__ = ["Coherence", "coherence", "diversity", "mean_npmi", "rank_coherence", "top_features"]

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]
EPSILON = 1e-12  # gensim's and tomotopy's ε
N_TOP = 10  # leading features of a component
BITS = 32  # samples in one word of a bit set; sums of 32 powers of 2 are exact in float64
WORDS_AT_A_TIME = 2**21
NONE = np.zeros(0, np.intp)


@dataclass(frozen=True, eq=False)
class Coherence:
    """The coherence of each component.

    Parameters
    ----------
    npmi, umass
        Means over the pairs of leading features, (K,); 0 without a pair. NPMI is at most 1, and
        UMass at most 0 but for ε.
    pairs
        Numbers of pairs, (K,).
    n_top
        Largest number of leading features of a component.
    """

    npmi: Numbers
    umass: Numbers
    pairs: NDArray[np.int64]
    n_top: int


def top_features(H: Array, n: int) -> list[Indices]:
    """Return the positions of the n largest positive entries of every row, the largest first."""
    n = min(n, H.shape[1])
    if n < H.shape[1]:
        candidates = np.sort(np.argpartition(-H, n - 1, axis=1)[:, :n], axis=1)
    else:
        candidates = np.broadcast_to(np.arange(n), H.shape)
    values = np.take_along_axis(H, candidates, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    top = np.take_along_axis(candidates, order, axis=1)
    return [row[H[k, row] > 0] for k, row in enumerate(top)]


def coherence(V: RowBlocks, top: Sequence[Indices], added: float | None = None) -> Coherence:
    """Return the coherence of components with the leading features `top`, in decreasing order.

    Parameters
    ----------
    V
        Data (samples, features), in memory or on disk. A feature occurs where V is positive.
    top
        Positions of the leading features of every component.
    added
        Added to D(i, j) in UMass; None adds ε n, as gensim does, and 1 is the original formula.
    """
    sizes = np.array([len(features) for features in top], np.int64)
    pairs = sizes * (sizes - 1) // 2
    # Row i of the lower triangle pairs feature i with those that lead it.
    triangles = [np.tril_indices(size, -1) for size in sizes]
    later, leading = (
        np.concatenate([NONE, *(f[t[side]] for f, t in zip(top, triangles, strict=True))])
        for side in (0, 1)
    )
    D_later, D_leading, D_both = V.reduce(co_occurrences, later, leading)
    n = max(V.shape[0], 1)
    component = np.repeat(np.arange(len(top)), pairs)

    def means(values: Numbers) -> Numbers:
        return np.asarray(np.bincount(component, values, len(top)) / np.maximum(pairs, 1))

    npmi = _npmi(D_later / n, D_leading / n, D_both / n)
    umass = np.log((D_both + (EPSILON * n if added is None else added)) / np.maximum(D_leading, 1))
    return Coherence(means(npmi), means(umass), pairs, int(sizes.max(initial=0)))


def _npmi(p_i: Numbers, p_j: Numbers, p_ij: Numbers) -> Numbers:
    """Return NPMI(i, j), which is −1 if i or j never occurs, and 0 if both always do."""
    occur, always = (p_i > 0) & (p_j > 0), p_ij == 1
    product = np.where(occur, p_i * p_j, 1.0)
    information = -np.log(np.where(always, 0.5, p_ij) + EPSILON)
    quotient = np.log((p_ij + EPSILON) / product) / information
    return np.where(always, 0.0, np.where(occur, quotient, -1.0))


def co_occurrences(V: RowBlocks, first: Indices, second: Indices) -> tuple[Array, Array, Array]:
    """Return D(i), D(j) and D(i, j) for the features i in `first` and j in `second`.

    Only the columns of these features are used, as sets of bits: one bit for each sample.
    """
    features, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    i, j = np.split(places, 2)
    keys, pair = np.unique(np.minimum(i, j) * len(features) + np.maximum(i, j), return_inverse=True)
    a, b = np.divmod(keys, max(len(features), 1))
    single, both = np.zeros(len(features), np.int64), np.zeros(len(keys), np.int64)
    for begin, end in pairwise(V.bounds if len(keys) else [0]):
        bits = _bit_sets(V.rows(begin, end)[:, features])
        single += np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
        step = max(WORDS_AT_A_TIME // bits.shape[1], 1)
        for at in (slice(start, start + step) for start in range(0, len(keys), step)):
            both[at] += np.bitwise_count(bits[a[at]] & bits[b[at]]).sum(axis=1, dtype=np.int64)
    return single[i], single[j], both[pair]


def _bit_sets(columns: Any) -> NDArray[np.uint32]:
    """Return for each column the set of rows in which it is positive, (columns, words)."""
    if not isinstance(columns, np.ndarray):  # CSR
        entries = columns.tocoo()
        positive = entries.data > 0
        rows, places = entries.row[positive], entries.col[positive]
    else:
        rows, places = np.nonzero(columns > 0)
    words = -(-columns.shape[0] // BITS)
    at = places.astype(np.int64) * words + rows // BITS
    sums = np.bincount(at, np.ldexp(1.0, rows % BITS), columns.shape[1] * words)
    return sums.astype(np.uint32).reshape(columns.shape[1], words)


def mean_npmi(npmi: Numbers, pairs: Array) -> float:
    """Return the mean NPMI of the components that have at least one pair; 0 if none has."""
    return float(npmi[pairs > 0].mean()) if pairs.any() else 0.0


def diversity(top: Sequence[Indices]) -> float:
    """Return the share of different features among the leading ones of all components.

    It is 1 if no two components share a leading feature (Dieng, Ruiz and Blei, 2020, "Topic
    modeling in embedding spaces"), and 0 if there are none.
    """
    listed = list(chain.from_iterable(top))
    return len(set(listed)) / len(listed) if listed else 0.0


def rank_coherence(
    V: RowBlocks, profiles: Sequence[Sequence[Array]], features: Sequence[Array]
) -> dict[str, Numbers]:
    """Return the mean NPMI, "coherence", and the "diversity" of each rank, over all replicates.

    Parameters
    ----------
    V
        The whole data.
    profiles
        H of every rank and replicate.
    features
        The columns of V that the fits of each replicate have seen.
    """
    tops = [
        [
            [columns[f] for f in top_features(H, N_TOP)]
            for H, columns in zip(of, features, strict=True)
        ]
        for of in profiles
    ]
    fits = list(chain.from_iterable(tops))
    whole = coherence(V, list(chain.from_iterable(fits)))
    ends = np.cumsum([0, *map(len, fits)])
    means = [mean_npmi(whole.npmi[a:b], whole.pairs[a:b]) for a, b in pairwise(ends)]
    shape = len(profiles), len(features)
    npmi, different = np.reshape(means, shape), np.reshape([diversity(fit) for fit in fits], shape)
    return {"coherence": npmi.mean(axis=1), "diversity": different.mean(axis=1)}
