# SPDX-License-Identifier: BSD-3-Clause
"""KLNMF.partial_fit: batch after batch it approaches the fit of all rows."""

import numpy as np
import pytest

from contract.small_fits import V, quick
from sipower import KLNMF


def test_partial_fit_approaches_fit():
    rng = np.random.default_rng(0)
    big = rng.poisson(rng.gamma(0.3, 3, (1200, 3)) @ rng.gamma(0.3, 3, (3, 30))).astype(float)
    model = KLNMF(3, random_state=0, forget_factor=0.9)
    for _ in range(12):
        for i in range(0, 1200, 100):
            model.partial_fit(big[i : i + 100])
    assert model.n_steps_ == 144
    best = KLNMF(3, random_state=0, tol=1e-5, max_iter=3000).fit(big)
    assert model.score(big) > best.score(big) * 1.05  # scores are negative


def test_partial_fit_goes_on_from_fit():
    model = quick().fit(V)
    before = model.score(V)
    model.partial_fit(V)
    assert model.score(V) >= before - 1e-3


def test_partial_fit_learns_features_that_come_later():
    rng = np.random.default_rng(1)
    big = rng.poisson(rng.gamma(0.3, 1, (300, 3)) @ rng.gamma(0.3, 1, (3, 30))).astype(float)
    big = big[big.sum(1) > 0]
    model = KLNMF(3, random_state=0)
    for row in big:
        model.partial_fit(row[None])
    assert (model.components_.sum(axis=0)[big.sum(0) > 20] > 1e-9).all()


def test_batches_without_counts_teach_nothing():
    rng = np.random.default_rng(1)
    V, nothing = rng.poisson(rng.gamma(0.5, 2, (60, 30))), np.zeros((2, 30))
    plain, late = KLNMF(3, random_state=0), KLNMF(3, random_state=0)
    late.partial_fit(nothing)
    for model in (plain, late):
        for _ in range(4):
            model.partial_fit(V)
    np.testing.assert_array_equal(late.components_, plain.components_)
    for _ in range(20):
        late.partial_fit(nothing)
    np.testing.assert_array_equal(late.components_, plain.components_)
    assert late.n_steps_ == plain.n_steps_ + 20


def test_statistics_fade_no_further_than_their_quotient_has_bits():
    topics = np.kron(np.eye(2), [[5.0, 4.0, 3.0, 2.0]])
    model = KLNMF(2, random_state=0, forget_factor=1e-3)
    for batch in [topics] * 30 + [topics[:1]] * 150:
        model.partial_fit(batch)
        quotient = model._numerator / model._denominator
        floor = 1e-14 * quotient.max()
        np.testing.assert_allclose(model.components_, quotient, rtol=1e-9, atol=floor)
    assert model._denominator.min() > 1e-210


def test_partial_fit_forgets_the_numbers_of_fit():
    model = quick().fit(V)
    model.partial_fit(V)
    assert not hasattr(model, "kl_divergence_")
    assert not hasattr(model, "trace_")
    with pytest.raises(ValueError, match="must be None after the first partial_fit"):
        model.partial_fit(V, H=model.components_)
