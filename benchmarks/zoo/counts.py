# SPDX-License-Identifier: BSD-3-Clause
"""Generators of count matrices: text, single cells, ratings, graphs and other sparse data.

Each function draws from a numpy Generator with the given seed, so that its result is the same in
every process, and returns float64 values.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from sipower import datasets


def draw_tokens(
    rng: np.random.Generator, weights: np.ndarray, topics: np.ndarray, length: np.ndarray
) -> sp.csr_array:
    """Draw V_ij ~ Poisson(length_i (weights topics)_ij) token by token, without a dense matrix."""
    (n, _), m = weights.shape, topics.shape[1]
    tokens = rng.poisson(length[:, None] * weights)
    rows, columns = [], []
    for k, topic in enumerate(topics):
        rows.append(np.repeat(np.arange(n, dtype=np.int32), tokens[:, k]))
        columns.append(rng.choice(m, len(rows[-1]), p=topic / topic.sum()).astype(np.int32))
    entries = np.concatenate(rows), np.concatenate(columns)
    return sp.coo_array((np.ones(len(entries[0])), entries), shape=(n, m)).tocsr()


def text(
    shape: tuple[int, int], topics: int, length: float, seed: int, overlap: float = 0.3
) -> sp.csr_array:
    """Draw documents whose words follow Zipf's law.

    Parameters
    ----------
    shape
        Number of documents and of words.
    topics
        Number of topics.
    length
        Median number of tokens of a document; lengths are log-normal.
    seed
        Seed of the generator.
    overlap
        Share of the tokens that all topics draw from the same distribution.
    """
    rng, (n, m) = np.random.default_rng(seed), shape
    common = rng.permutation(1 / (np.arange(m) + 2.7))
    special = common * rng.gamma(0.1, size=(topics, m))
    H = overlap * common / common.sum() + (1 - overlap) * special / special.sum(1, keepdims=True)
    W = rng.dirichlet(rng.uniform(0.02, 0.3, topics), n)
    return draw_tokens(rng, W, H, rng.lognormal(np.log(length), 0.8, n))


def tfidf(shape: tuple[int, int], topics: int, length: float, seed: int) -> sp.csr_array:
    """Weight the counts of `text` by tf-idf and scale the rows to unit length."""
    return sp.csr_array(TfidfTransformer().fit_transform(text(shape, topics, length, seed)))


def docstring_words() -> sp.csr_array:
    """Count the words of the installed docstrings."""
    return datasets.docstrings().counts.astype(float)


def docstring_trigrams(min_count: int = 100) -> sp.csr_array:
    """Count the letter trigrams of the words of every third installed docstring."""
    corpus = datasets.docstrings()
    trigrams: dict[str, int] = {}
    pairs = [
        (i, trigrams.setdefault(word[at : at + 3], len(trigrams)))
        for i, word in enumerate(corpus.words)
        for at in range(len(word) - 2)
    ]
    rows, columns = np.array(pairs).T
    spelling = sp.coo_array((np.ones(len(pairs)), (rows, columns))).tocsr()
    V = sp.csr_array(corpus.counts[::3].astype(float) @ spelling)
    return V[:, V.sum(axis=0) >= min_count]


def cells(
    shape: tuple[int, int], types: int, depth: float, seed: int, dispersion: float = 2.0
) -> np.ndarray:
    """Draw negative binomial counts of genes in single cells.

    Parameters
    ----------
    shape
        Number of cells and of genes.
    types
        Number of cell types; a tenth of the genes are markers of each.
    depth
        Median total count of a cell; totals are log-normal.
    seed
        Seed of the generator.
    dispersion
        Shape of the gamma distribution of the rates; smaller is noisier.
    """
    rng, (n, m) = np.random.default_rng(seed), shape
    profile = rng.lognormal(0, 1.5, m) * np.where(rng.random((types, m)) < 0.1, 8.0, 1.0)
    profile /= profile.sum(axis=1, keepdims=True)
    mean = profile[rng.choice(types, n, p=rng.dirichlet(np.full(types, 2.0)))]
    mean *= rng.lognormal(np.log(depth), 0.5, (n, 1)) / dispersion
    return rng.poisson(mean * rng.standard_gamma(dispersion, (n, m))).astype(float)


def ratings(
    shape: tuple[int, int], stars: int, per_user: float, tastes: int, seed: int
) -> sp.csr_array:
    """Draw ratings from 1 to `stars` of popular and unpopular things by busy and idle users."""
    rng, (n, m) = np.random.default_rng(seed), shape
    popularity = rng.permutation(1 / (np.arange(m) + 20.0))
    counts = np.clip(rng.lognormal(np.log(per_user), 0.9, n), 3, m / 2).astype(int)
    users = np.repeat(np.arange(n), counts)
    things = rng.choice(m, len(users), p=popularity / popularity.sum())
    users, things = np.divmod(np.unique(users * m + things), m)
    liking = rng.normal(size=(n, tastes)), rng.normal(size=(m, tastes))
    score = (liking[0][users] * liking[1][things]).sum(axis=1) / np.sqrt(tastes)
    score += rng.normal(0, 0.7, m)[things] + rng.normal(0, 0.5, len(users))
    values = np.clip(np.round(0.62 * stars + 0.2 * stars * score), 1, stars)
    return sp.coo_array((values, (users, things)), shape=(n, m)).tocsr()


def graph(nodes: int, groups: int, degree: float, mixing: float, seed: int) -> sp.csr_array:
    """Draw the symmetric 0/1 adjacency matrix of groups of nodes with heavy-tailed degrees."""
    rng = np.random.default_rng(seed)
    member = rng.choice(groups, nodes, p=rng.dirichlet(np.full(groups, 3.0)))
    weight = rng.pareto(2.0, nodes) + 0.3
    edges = int(degree * nodes)
    first, second = rng.choice(nodes, (2, edges), p=weight / weight.sum())
    for group in range(groups):  # the others end inside of the group of their first node
        inside = np.flatnonzero(member == group)
        ends = np.flatnonzero((member[first] == group) & (rng.random(edges) >= mixing))
        second[ends] = rng.choice(inside, len(ends), p=weight[inside] / weight[inside].sum())
    A = sp.coo_array((np.ones(edges), (first, second)), shape=(nodes, nodes)).tocsr()
    A = sp.csr_array(A + A.T)
    A.data[:] = 1.0
    return A


def sparse_mixture(
    shape: tuple[int, int], topics: int, length: float, seed: int, spread: float = 0.05
) -> sp.csr_array:
    """Draw samples of topics with Dirichlet(spread) features; all samples are as long."""
    rng, (n, m) = np.random.default_rng(seed), shape
    H = rng.dirichlet(np.full(m, spread), topics)
    W = rng.dirichlet(np.full(topics, 0.1), n)
    return draw_tokens(rng, W, H, np.full(n, length))


def sparse_rank_one(shape: tuple[int, int], length: float, seed: int) -> sp.csr_array:
    """Draw samples of one heavy-tailed distribution, with a fiftieth of the counts from others."""
    rng, (n, m) = np.random.default_rng(seed), shape
    H = rng.lognormal(0, 1.5, (6, m))
    W = np.hstack([np.full((n, 1), 0.98), 0.02 * rng.dirichlet(np.full(5, 0.2), n)])
    H /= H.sum(axis=1, keepdims=True)
    return draw_tokens(rng, W, H, rng.lognormal(np.log(length), 0.7, n))
