# SPDX-License-Identifier: BSD-3-Clause
"""Held-out counts: thinning, blocks, prediction errors."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import xlogy

from sipower import as_matrix
from sipower.datasets import poisson_topics
from sipower.selection.holdout import SHARE, are_counts, halve, prediction_errors, thin


def kl(V, Z):
    return float((xlogy(V, V) - xlogy(V, Z) - V + Z).sum())


def test_thinning_splits_every_count():
    V = poisson_topics(40, 30, 3, seed=1)
    split = thin(as_matrix(V), seed=0)
    np.testing.assert_array_equal((split.train + split.test).toarray(), V.toarray())
    assert split.test.min() >= 0
    assert split.test.sum() / V.sum() == pytest.approx(SHARE, abs=0.02)


def test_thinned_halves_of_poisson_counts_are_independent():
    """The covariance of the two parts of Poisson(λ) is 0; of a fixed count n it is -n ε (1 - ε)."""
    V = np.random.default_rng(0).poisson(20.0, (300, 300))
    split = thin(as_matrix(V), seed=3)
    train, test = split.train.toarray().ravel(), split.test.toarray().ravel()
    covariance = np.cov(train, test)[0, 1]
    assert abs(covariance) < 0.1  # a fixed count of 20 would give -3.2


@pytest.mark.parametrize("dense", [True, False])
def test_halves_are_blocks_of_the_data(dense):
    V = np.random.default_rng(0).gamma(1.0, size=(11, 8))
    split = halve(as_matrix(V if dense else sparse.csr_array(V)), seed=0)
    total = sum(np.asarray(block.sum()) for block in
                (split.train, split.test, split.beside, split.below))  # fmt: skip
    assert total == pytest.approx(V.sum())
    assert split.train.shape == (5, 4)
    assert len(split.features) == 4


def test_what_counts_as_counts():
    assert are_counts(as_matrix(np.array([[1, 2], [0, 3]])))
    assert are_counts(as_matrix(np.array([[1.0, 2.0], [0.0, 3.0]])))
    assert not are_counts(as_matrix(np.array([[1.5, 2.0], [0.0, 3.0]])))


def test_prediction_error_is_the_divergence_of_the_best_mixture():
    rng = np.random.default_rng(0)
    W, H = rng.gamma(1.0, size=(9, 2)), rng.gamma(1.0, size=(2, 7))
    r, c = rng.gamma(1.0, size=(9, 1)), rng.gamma(1.0, size=(1, 7))
    V = rng.poisson(W @ H)
    result = prediction_errors(sparse.csr_array(V), (W, H), (r, c)).sum()
    shares = np.linspace(1e-6, 1, 20001)
    tried = [kl(V, (1 - s) * W @ H + s * r @ c) / V.sum() for s in shares[::200]]
    assert result <= min(tried) + 1e-5
    assert result >= min(tried) - 1e-3


def test_a_feature_that_was_never_seen_does_not_count():
    W, H = np.ones((3, 1)), np.array([[1.0, 0.0]])
    background = np.ones((3, 1)), np.array([[1.0, 0.0]])
    test = sparse.csr_array(np.array([[1, 5], [1, 0], [1, 0]]))
    assert prediction_errors(test, (W, H), background).sum() == pytest.approx(0.0, abs=1e-9)
