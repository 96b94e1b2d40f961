# SPDX-License-Identifier: BSD-3-Clause
"""Over-dispersed counts: their dispersion, independent splits of them, and their rank."""

import numpy as np
import pytest

from sipower import KLNMF, rank_selection
from sipower.data.validate import as_matrix
from sipower.datasets import negative_binomial_topics, poisson_topics
from sipower.selection.dispersion import estimate_dispersion
from sipower.selection.holdout import SHARE, thin


def model(rank):
    return KLNMF(rank, init="random", tol=1e-2, random_state=0, n_jobs=1)


@pytest.mark.parametrize("dispersion", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("layout", [lambda V: V, lambda V: V.toarray()], ids=["sparse", "dense"])
def test_dispersion_is_estimated(dispersion, layout):
    V = negative_binomial_topics(
        300, 200, 5, dispersion=dispersion, alpha=0.2, beta=0.2, length=1000, seed=4
    )
    estimate = estimate_dispersion(model(8), as_matrix(layout(V)))
    assert estimate == pytest.approx(dispersion, rel=0.25)


def test_dispersion_is_estimated_from_some_rows_of_large_data(monkeypatch):
    V = as_matrix(negative_binomial_topics(400, 200, 3, dispersion=0.5, length=1000, seed=0))
    monkeypatch.setattr("sipower.selection.dispersion.MAX_ENTRIES", 100 * 200)
    assert estimate_dispersion(model(4), V) == pytest.approx(0.5, rel=0.3)


@pytest.mark.parametrize("seed", range(4))
def test_poisson_counts_have_no_dispersion(seed):
    V = as_matrix(poisson_topics(200, 150, 4, length=300, seed=seed))
    assert estimate_dispersion(model(8), V) == 0.0


def test_data_that_a_fit_explains_completely_have_no_dispersion():
    V = as_matrix(np.random.default_rng(0).poisson(5.0, (6, 5)))
    assert estimate_dispersion(model(5), V) == 0.0


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
    monkeypatch.setattr("sipower.selection.rank.estimate_dispersion", lambda *_: 0.0)
    assert rank_selection(V, range(1, 13), replicates=2).best >= K + 4


def test_dispersion_is_kept_in_the_folder(tmp_path, monkeypatch):
    V = negative_binomial_topics(100, 60, 2, dispersion=1.0, seed=0)
    first = rank_selection(V, [1, 2], model(2), replicates=1, folder=tmp_path)
    monkeypatch.setattr("sipower.selection.rank.estimate_dispersion", lambda *_: 1 / 0)
    again = rank_selection(V, [1, 2], model(2), replicates=1, folder=tmp_path)
    assert again.dispersion == first.dispersion > 0


def test_bad_dispersion_is_refused():
    with pytest.raises(ValueError, match="`dispersion` must be a positive number, got 0"):
        negative_binomial_topics(5, 4, 2, dispersion=0)
