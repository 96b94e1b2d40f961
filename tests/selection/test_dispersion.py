# SPDX-License-Identifier: BSD-3-Clause
"""Over-dispersed counts: their dispersion, independent splits of them, and their rank."""

import numpy as np
import pytest

from sipower import KLNMF, rank_selection
from sipower.data.validate import as_matrix
from sipower.datasets import negative_binomial_topics, poisson_topics
from sipower.estimators.dispersion import (
    FeatureMoments,
    estimate_dispersion,
    shrunk_dispersions,
)
from sipower.selection.holdout import SHARE, thin


def model(rank):
    return KLNMF(rank, init="random", tol=1e-2, random_state=0, n_jobs=1)


def of_average_count(dispersion, V):
    return np.average(dispersion, weights=np.asarray(V.sum(axis=0)).ravel())


def programs(dispersion, *, seed, shape=(400, 250), depth=3000):
    """Return counts of two types with two states each, and the dispersion of every feature.

    Features of one state are moderate multiples of the same base, so that types are much easier to
    find than states; `dispersion` is a function of the mean.
    """
    rng = np.random.default_rng(seed)
    n, m = shape
    base = rng.lognormal(0, 2, m)
    types = np.exp(rng.normal(0, 2, (2, m)) * (rng.random((2, m)) < 0.2))
    states = np.exp(rng.normal(0, 1, (4, m)) * (rng.random((4, m)) < 0.3))
    H = base * np.repeat(types, 2, axis=0) * states
    H /= H.sum(axis=1, keepdims=True)
    kind, share = rng.integers(0, 2, n), rng.beta(0.4, 0.4, n)
    W = np.zeros((n, 4))
    W[np.arange(n), 2 * kind], W[np.arange(n), 2 * kind + 1] = share, 1 - share
    mean = depth * W @ H
    phi = dispersion(mean.mean(axis=0))
    return rng.poisson(mean * rng.gamma(1 / phi, phi, mean.shape)), phi


@pytest.mark.parametrize("dispersion", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("layout", [lambda V: V, lambda V: V.toarray()], ids=["sparse", "dense"])
def test_dispersion_is_estimated(dispersion, layout):
    V = negative_binomial_topics(
        300, 200, 5, dispersion=dispersion, alpha=0.2, beta=0.2, length=1000, seed=4
    )
    estimate = estimate_dispersion(model(8), as_matrix(layout(V)))
    assert estimate.shape == (200,)
    assert of_average_count(estimate, V) == pytest.approx(dispersion, rel=0.25)


def test_dispersion_is_estimated_from_some_rows_of_large_data(monkeypatch):
    V = negative_binomial_topics(400, 200, 3, dispersion=0.5, length=1000, seed=0)
    monkeypatch.setattr("sipower.estimators.dispersion.MAX_ENTRIES", 100 * 200)
    estimate = estimate_dispersion(model(4), as_matrix(V))
    assert of_average_count(estimate, V) == pytest.approx(0.5, rel=0.3)


@pytest.mark.parametrize("seed", range(4))
def test_poisson_counts_have_no_dispersion(seed):
    V = as_matrix(poisson_topics(200, 150, 4, length=300, seed=seed))
    np.testing.assert_array_equal(estimate_dispersion(model(8), V), np.zeros(150))


def test_data_that_a_fit_explains_completely_have_no_dispersion():
    V = as_matrix(np.random.default_rng(0).poisson(5.0, (6, 5)))
    np.testing.assert_array_equal(estimate_dispersion(model(5), V), np.zeros(5))


def test_parts_of_negative_binomial_counts_are_independent():
    """The covariance of the two parts is φ ε (1 − ε) Λ² if units are held out independently."""
    dispersion, mean = 0.8, 6.0
    rng = np.random.default_rng(1)
    V = as_matrix(rng.poisson(rng.gamma(1 / dispersion, dispersion * mean, (400, 300))))
    covariances = []
    for assumed in (0.0, dispersion):
        split = thin(V, 0, assumed)
        parts = [part.toarray().ravel() for part in (split.train, split.test)]
        np.testing.assert_array_equal(parts[0] + parts[1], V.array.ravel())
        assert parts[1].mean() == pytest.approx(SHARE * mean, rel=0.02)
        covariances.append(np.cov(parts)[0, 1])
    assert covariances[0] == pytest.approx(dispersion * SHARE * (1 - SHARE) * mean**2, rel=0.05)
    assert abs(covariances[1]) < 0.03 * covariances[0]


@pytest.mark.parametrize("K", [4, 7])
def test_rank_of_over_dispersed_topics_is_found(K, monkeypatch):
    V = negative_binomial_topics(
        300, 200, K, dispersion=1.0, alpha=0.2, beta=0.1, length=800, seed=200
    )
    selection = rank_selection(V, range(1, 13), replicates=2)
    assert abs(selection.best - K) <= 1
    assert 0.7 < selection.dispersion < 1.2
    assert "vary more than Poisson counts (dispersion" in selection.reason
    # Without the dispersion the held-out part follows the noise of the rest.
    monkeypatch.setattr("sipower.selection.rank.estimate_dispersion", lambda *_: np.zeros(200))
    assert rank_selection(V, range(1, 13), replicates=2).best >= K + 4


def small_for_frequent(mean):
    return np.where(mean > np.quantile(mean, 0.9), 0.02, 1.5)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_rank_is_found_where_frequent_features_vary_less_than_rare_ones(seed):
    """With one dispersion for all features, 3, 3 and 2 programs were recommended."""
    V, phi = programs(small_for_frequent, seed=seed)
    selection = rank_selection(V, range(1, 9), model(None), replicates=2)
    assert selection.best == 4
    frequent = phi == 0.02
    assert np.median(selection.feature_dispersion[frequent]) == pytest.approx(0.02, abs=0.01)
    rare = ~frequent & (V.sum(axis=0) > 200)
    assert np.median(selection.feature_dispersion[rare]) == pytest.approx(1.5, rel=0.25)
    assert selection.dispersion == pytest.approx(np.average(phi, weights=V.sum(axis=0)), rel=0.5)


@pytest.mark.parametrize(
    "dispersion",
    [
        lambda mean: np.full_like(mean, 0.5),
        lambda mean: 0.05 + 0.3 / np.maximum(mean, 0.1),
        lambda mean: 0.05 * np.maximum(mean, 0.1) ** 0.5,
    ],
    ids=["constant", "falling", "rising"],
)
def test_dispersion_of_each_feature_follows_the_mean(dispersion):
    """A fit follows the noise of frequent features; a weighted one shows their dispersion."""
    V, phi = programs(dispersion, seed=5)
    estimate = estimate_dispersion(model(8), as_matrix(V))
    order = np.argsort(V.sum(axis=0))
    for features in (order[-10:], order[-40:-10], order[-100:-40]):
        ratios = estimate[features] / phi[features]
        assert 0.7 < np.median(ratios) < 1.4


def test_features_keep_their_own_dispersion_if_it_is_known_well():
    """Estimates without noise are kept, those of nothing but noise are the trend."""
    rng = np.random.default_rng(0)
    true = rng.lognormal(np.log(0.3), 0.5, 200)
    means, samples = np.linspace(1, 20, 200), np.repeat([1e6, 1e-3], 100)
    rng.shuffle(samples)
    powers = samples * np.stack([means**p for p in range(1, 5)]) / (1 + means) ** 4
    scale = samples * means**2 / (1 + means) ** 2
    noise = np.where(samples > 1, 0, rng.normal(0, 50, 200))
    moments = FeatureMoments(means, scale * (true + noise), scale, powers)
    estimate = shrunk_dispersions(moments, 0.7)
    np.testing.assert_allclose(estimate[samples > 1], true[samples > 1], rtol=1e-3)
    np.testing.assert_allclose(estimate[samples < 1], 0.34, atol=0.15)


def test_a_feature_without_residuals_gets_the_trend_and_one_without_counts_none():
    means = np.append(np.full(60, 5.0), [5.0, 0.0])
    scale = np.append(np.full(60, 1e4), [0.0, 0.0])
    moments = FeatureMoments(means, 0.4 * scale, scale, np.ones((4, 62)))
    estimate = shrunk_dispersions(moments, 0.7)
    assert estimate[60] == pytest.approx(0.4, rel=1e-6)
    assert estimate[61] == 0
    nothing = FeatureMoments(means, 0 * scale, 0 * scale, np.ones((4, 62)))
    np.testing.assert_array_equal(shrunk_dispersions(nothing, 0.7), 0.7 * (means > 0))


def test_each_feature_is_split_with_its_own_dispersion():
    """The parts of Poisson and of negative binomial counts are independent, each with its own φ.

    With the other φ, the covariances are −ε (1 − ε) Λ² φ/(1 + φ) and φ ε (1 − ε) Λ².
    """
    phi, mean = 0.8, 6.0
    rng = np.random.default_rng(2)
    factors = np.ones((600, 200))
    factors[:, 100:] = rng.gamma(1 / phi, phi, (600, 100))
    V = as_matrix(rng.poisson(mean * factors))
    own = np.repeat([0.0, phi], 100)
    scale = SHARE * (1 - SHARE) * mean**2 * phi
    for assumed, expected in ((own, (0, 0)), (phi - own, (-scale / (1 + phi), scale))):
        split = thin(V, 0, assumed)
        parts = [part.toarray().astype(float) for part in (split.train, split.test)]
        covariances = np.prod([part - part.mean(axis=0) for part in parts], axis=0).mean(axis=0)
        assert covariances[:100].mean() == pytest.approx(expected[0], rel=0.1, abs=0.15)
        assert covariances[100:].mean() == pytest.approx(expected[1], rel=0.1, abs=0.15)


def test_counts_without_dispersion_are_split_as_before():
    """Splits of Poisson counts, and of counts with one dispersion, are the same bits for ever."""
    V = as_matrix(np.arange(60.0).reshape(6, 10))
    rng = np.random.default_rng(4)
    expected = rng.binomial(np.arange(1, 60), 1 - SHARE)
    for dispersion in (0.0, np.zeros(10)):
        np.testing.assert_array_equal(thin(V, 4, dispersion).train.toarray().ravel()[1:], expected)
    rng = np.random.default_rng(4)
    expected = rng.binomial(np.arange(1, 60), rng.beta((1 - SHARE) / 0.5, SHARE / 0.5, 59))
    for dispersion in (0.5, np.full(10, 0.5)):
        np.testing.assert_array_equal(thin(V, 4, dispersion).train.toarray().ravel()[1:], expected)


def test_dispersion_is_kept_in_the_folder(tmp_path, monkeypatch):
    V = negative_binomial_topics(100, 60, 2, dispersion=1.0, seed=0)
    first = rank_selection(V, [1, 2], model(2), replicates=1, folder=tmp_path)
    monkeypatch.setattr("sipower.selection.rank.estimate_dispersion", lambda *_: 1 / 0)
    again = rank_selection(V, [1, 2], model(2), replicates=1, folder=tmp_path)
    assert again.dispersion == first.dispersion > 0
    np.testing.assert_array_equal(again.feature_dispersion, first.feature_dispersion)


def test_bad_dispersion_is_refused():
    with pytest.raises(ValueError, match="`dispersion` must be a positive number, got 0"):
        negative_binomial_topics(5, 4, 2, dispersion=0)
