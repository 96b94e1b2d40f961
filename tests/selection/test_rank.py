# SPDX-License-Identifier: BSD-3-Clause
"""`rank_selection`: the recommended K, its reason, its resumption."""

import numpy as np
import pytest

from sipower import KLNMF, as_matrix, consensus, rank_selection
from sipower.datasets import poisson, poisson_topics
from sipower.selection import (
    estimated_seconds,
)
from sipower.selection.holdout import thin
from sipower.selection.recommendation import explain, recommend, standard_errors


@pytest.mark.parametrize("scale", [1, 0.37], ids=["thinning", "bi-cross-validation"])
def test_rank_of_a_topic_model_is_found(scale):
    V = poisson_topics(300, 200, 5, length=300, seed=2) * scale
    result = rank_selection(V, range(2, 9), replicates=2)
    assert result.method == ("thinning" if scale == 1 else "bi-cross-validation")
    assert result.best == 5
    assert result.stability[3] > 0.95
    assert result.deviance.shape == (7, 2)
    assert "the lowest of all" in result.reason


def test_independent_counts_have_rank_one():
    result = rank_selection(poisson(200, 150, 0.3, seed=5), range(1, 5), replicates=3)
    assert result.best <= 2


@pytest.mark.parametrize("seed", range(6))
def test_independent_counts_of_any_seed_have_a_small_rank(seed):
    """Chance in the held-out counts made K = 3 look best before it was allowed for."""
    V = np.random.default_rng(10 + seed).poisson(1.0, (100, 60))
    assert rank_selection(V, range(1, 6), replicates=3).best <= 2


def test_exact_products_have_their_rank():
    for seed in range(3):
        u, v = np.random.default_rng(seed).random(40), np.random.default_rng(seed + 9).random(30)
        assert rank_selection(np.outer(u, v), range(1, 5), replicates=3).best == 1


def test_too_few_counts_are_refused():
    with pytest.raises(ValueError, match="The data are all zero"):
        rank_selection(np.zeros((5, 4)), [1, 2])
    one = np.zeros((5, 4))
    one[2, 2] = 1
    with pytest.raises(ValueError, match="too few counts"):
        rank_selection(one, [1, 2], replicates=2)


def recommendation(ranks, errors, stability):
    """Return the recommended rank and the reason for errors (ranks, replicates) of equal groups."""
    groups = np.repeat(errors[:, :, None] / 20, 20, axis=2)
    at = recommend(errors, standard_errors(groups))
    return ranks[at], explain(ranks, errors.mean(axis=1), stability, at)


def test_recommendation_is_the_smallest_within_one_standard_error():
    errors = np.array([[2.0, 2.0], [1.02, 0.99], [1.0, 1.0]])  # +0.005 ± 0.015
    best, reason = recommendation((2, 3, 4), errors, np.array([1.0, 0.5, 1.0]))
    assert best == 3
    assert "within one standard error of the lowest (1 at K = 4, the largest tried)" in reason
    assert "few of them should be interpreted" in reason
    assert "still falling" not in reason


def test_an_error_that_still_falls_is_called_so():
    errors = np.array([[2.0, 2.1], [1.5, 1.6], [1.0, 1.1]])
    best, reason = recommendation((2, 3, 4), errors, np.array([0.9, 0.95, 0.7]))
    assert best == 4
    assert "still falling at K = 4, the largest K tried: try larger ones" in reason
    assert "most stable at K = 3 (0.95)" in reason


@pytest.mark.parametrize(("top", "expected"), [(4, True), (9, False)])
def test_selection_says_whether_larger_ranks_may_be_better(top, expected):
    V = poisson_topics(200, 150, 6, length=300, seed=1)
    selection = rank_selection(V, range(2, top + 1), replicates=2)
    assert selection.still_falling == expected
    assert ("still falling" in selection.reason) == expected
    assert selection.best == min(top, 6)


def test_table_has_a_named_column_for_each_result():
    selection = rank_selection(poisson_topics(60, 40, 2, seed=0), [1, 2, 3], replicates=2)
    table = selection.table()
    assert table["rank"] == [1, 2, 3]
    assert table["recommended"] == [False, True, False]
    assert table["standard error"] == selection.standard_error.tolist()
    np.testing.assert_array_equal(
        [table["replicate 1"], table["replicate 2"]], selection.deviance.T
    )
    np.testing.assert_allclose(table["mean error"], selection.deviance.mean(axis=1))


def test_bad_ranks_are_refused():
    V = np.ones((4, 4))
    for ranks in ([], [0, 3]):
        with pytest.raises(ValueError, match="`ranks` must be"):
            rank_selection(V, ranks)
    with pytest.raises(ValueError, match="`replicates` must be a positive integer, got 0"):
        rank_selection(V, [2], replicates=0)
    with pytest.raises(ValueError, match="at least 2 rows and 2 columns to choose a rank, got"):
        rank_selection(np.full((1, 5), 0.5), [1])


def test_cost_is_estimated():
    V = poisson_topics(100, 80, 3, seed=0)
    assert 0 < estimated_seconds(V, [2, 4], replicates=2) < 60


def test_interrupted_rank_selection_goes_on(tmp_path):
    V = poisson_topics(120, 90, 3, length=150, seed=0)
    whole = rank_selection(V, range(1, 6), replicates=2)

    def interrupt(completed, total):
        assert total == 10
        if completed == 4:
            raise KeyboardInterrupt

    model = KLNMF(init="random", tol=1e-2, random_state=0, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        rank_selection(V, range(1, 6), model, replicates=2, folder=tmp_path, on_fit=interrupt)
    counted = []
    again = rank_selection(
        V, range(1, 6), replicates=2, folder=tmp_path, on_fit=lambda *n: counted.append(n)
    )
    assert len(counted) < 10  # what was finished is not fitted again
    np.testing.assert_array_equal(again.deviance, whole.deviance)
    np.testing.assert_array_equal(again.stability, whole.stability)


def test_a_model_whose_output_is_a_frame_chooses_as_any_other(tmp_path):
    V = poisson_topics(60, 40, 2, length=80, seed=0)
    plain = KLNMF(2, tol=1e-2, random_state=0)
    framed = KLNMF(2, tol=1e-2, random_state=0).set_output(transform="pandas")
    one, other = (rank_selection(V, [1, 2], model, replicates=2) for model in (plain, framed))
    np.testing.assert_array_equal(one.deviance, other.deviance)
    for _ in range(2):  # made, and read again
        result = consensus(V, framed, replicates=2, folder=tmp_path / "fits")
        assert isinstance(result.W, np.ndarray)


def test_the_perplexity_is_that_of_the_held_out_counts():
    """exp(−Σ v log(z_ij/m_i)/Σ v), for the predictions of the fits themselves."""
    V = poisson_topics(120, 80, 3, length=150, seed=0)
    data = as_matrix(V)
    selection = rank_selection(V, [1, 3, 5], replicates=1)
    split = thin(data, 0, selection.feature_dispersion)
    model = KLNMF(1, init="random", tol=1e-2, random_state=0).fit(split.train)
    W = model.transform(split.train) * 0.25
    Z, test = W @ model.components_, split.test.toarray()
    p = Z / np.maximum(test.sum(axis=1, keepdims=True), 1)
    seen = (test > 0) & (Z > 0)
    direct = np.exp(-(test[seen] * np.log(p[seen])).sum() / test.sum())
    assert selection.perplexity[0] == pytest.approx(direct, rel=0.02)
    assert np.argmin(selection.perplexity) == 1
    ratio = np.exp(np.subtract(*selection.deviance[:2, 0]))
    assert selection.perplexity[0] / selection.perplexity[1] == pytest.approx(ratio)
    assert rank_selection(V * 0.37, [1, 2], replicates=1).perplexity.size == 0
