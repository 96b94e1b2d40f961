# SPDX-License-Identifier: BSD-3-Clause
"""Generators of random count matrices."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed

_ROWS_AT_A_TIME = 500


def poisson(
    n: int, m: int, share: float, seed: int = DEFAULT_SEED, *, rng: RNG = None
) -> sparse.csr_array[np.int32, tuple[int, int]]:
    """Draw independent Poisson counts of which about the given share is positive.

    Their mean is −log(1 − share).

    Parameters
    ----------
    n, m
        Numbers of rows and columns.
    share
        Expected share of nonzeros, between 0 and 1.
    seed
        Seed of the random numbers; the same seed gives the same counts.
    rng
        Seed or NumPy generator, instead of `seed`.

    Examples
    --------
    >>> from sipower.datasets import poisson
    >>> V = poisson(300, 200, 0.1)
    >>> bool(abs(V.nnz / 60_000 - 0.1) < 0.01)
    True
    """
    seed = choose_seed(rng, "seed", seed)
    if not 0 < share < 1:
        raise ValueError(f"`share` must be a number between 0 and 1, got {share}.")
    draw, mean = np.random.default_rng(seed), -np.log1p(-share)
    starts = range(0, n, _ROWS_AT_A_TIME)
    parts = [draw.poisson(mean, (min(_ROWS_AT_A_TIME, n - at), m)) for at in starts]
    return sparse.csr_array(sparse.vstack([sparse.csr_array(p.astype(np.int32)) for p in parts]))


def poisson_topics(
    n: int,
    m: int,
    K: int,
    *,
    alpha: float = 0.1,
    beta: float = 0.05,
    length: float = 400,
    seed: int = DEFAULT_SEED,
    rng: RNG = None,
) -> sparse.csr_array[np.int32, tuple[int, int]]:
    """Draw documents from a topic model: V_ij ~ Poisson(length · (ΘΦ)_ij).

    Parameters
    ----------
    n, m, K
        Numbers of documents, words and topics.
    alpha, beta
        Dirichlet parameters: the rows of Θ (n, K) are drawn from Dirichlet(alpha), the rows of
        Φ (K, m) from Dirichlet(beta).
    length
        Mean number of words in a document.
    seed
        Seed of the random numbers; the same seed gives the same counts.
    rng
        Seed or NumPy generator, instead of `seed`.

    Examples
    --------
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(300, 200, 5)
    >>> bool(abs(V.sum() / 300 - 400) < 10)
    True
    """
    draw = np.random.default_rng(choose_seed(rng, "seed", seed))
    theta, phi = draw.dirichlet(np.full(K, alpha), n), draw.dirichlet(np.full(m, beta), K)
    parts = [
        sparse.csr_array(draw.poisson(length * (rows @ phi)).astype(np.int32))
        for rows in np.array_split(theta, max(1, n // _ROWS_AT_A_TIME))
    ]
    return sparse.csr_array(sparse.vstack(parts))


def negative_binomial_topics(  # noqa: PLR0913 - the sizes and the four parameters of the model
    n: int,
    m: int,
    K: int,
    *,
    dispersion: float = 0.5,
    alpha: float = 0.1,
    beta: float = 0.05,
    length: float = 400,
    seed: int = DEFAULT_SEED,
    rng: RNG = None,
) -> sparse.csr_array[np.int32, tuple[int, int]]:
    """Draw over-dispersed documents from a topic model, with the means of `poisson_topics`.

    V_ij is negative binomial with the mean Λ_ij = length · (ΘΦ)_ij and the variance
    Λ_ij + dispersion · Λ_ij²: a Poisson count whose mean varies by a Gamma factor of its own.

    Parameters
    ----------
    n, m, K
        Numbers of documents, words and topics.
    dispersion
        Squared coefficient of variation of the Gamma factors, positive.
    alpha, beta, length, seed, rng
        As in `poisson_topics`.

    Examples
    --------
    >>> from sipower.datasets import negative_binomial_topics
    >>> V = negative_binomial_topics(300, 200, 5, dispersion=0.3)
    >>> V.shape, bool(abs(V.sum() / 300 - 400) < 20)
    ((300, 200), True)
    """
    if not dispersion > 0:
        raise ValueError(
            f"`dispersion` must be a positive number, got {dispersion}: use poisson_topics for 0."
        )
    draw = np.random.default_rng(choose_seed(rng, "seed", seed))
    theta, phi = draw.dirichlet(np.full(K, alpha), n), draw.dirichlet(np.full(m, beta), K)
    parts = []
    for rows in np.array_split(theta, max(1, n // _ROWS_AT_A_TIME)):
        factors = draw.gamma(1 / dispersion, dispersion, (len(rows), m))
        parts.append(
            sparse.csr_array(draw.poisson(length * (rows @ phi) * factors).astype(np.int32))
        )
    return sparse.csr_array(sparse.vstack(parts))
