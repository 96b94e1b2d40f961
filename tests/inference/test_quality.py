# SPDX-License-Identifier: BSD-3-Clause
"""`topic_quality`: every measure by hand, with finite values for empty and odd components."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sipower import KLNMF, topic_quality
from sipower.datasets import poisson_topics
from sipower.inference.quality import effective_components, exclusivities, frex_scores

MEASURES = ("npmi", "umass", "exclusivity", "frex", "effective")


@pytest.fixture(scope="module")
def fit():
    V = poisson_topics(200, 60, 3, length=80, seed=0)
    model = KLNMF(3, random_state=0)
    return V, model, model.fit_transform(V)


def test_exclusivity_and_frex_by_hand():
    profiles = np.array([[0.5, 0.5, 0.0, 0.0], [0.1, 0.3, 0.6, 0.0]])
    expected = [[5 / 6, 5 / 8, 0, 0], [1 / 6, 3 / 8, 1, 0]]
    assert_allclose(exclusivities(profiles), expected)
    # ranks in component 2: of the probability 1, 2, 3 and of the exclusivity 1, 2, 3, of 3 each
    assert_allclose(frex_scores(profiles)[1], [1 / 3, 2 / 3, 1, 0])
    # in component 1: 3, 3 (a tie) and 3, 2
    assert_allclose(frex_scores(profiles)[0], [1, 2 / (1 + 3 / 2), 0, 0])


def test_effective_number_of_components_by_hand():
    weights = np.array([[3.0, 0, 0], [1, 1, 0], [2, 2, 2], [0, 0, 0]])
    assert_allclose(effective_components(weights), [1, 2, 3, 0])


def test_scale_and_order_of_components_do_not_matter(fit):
    V, model, W = fit
    plain = topic_quality(V, model.components_, W)
    scale, order = np.array([0.1, 1, 70]), [2, 0, 1]
    other = topic_quality(V, (model.components_ * scale[:, None])[order], (W / scale)[:, order])
    for name in MEASURES[:-1]:
        assert_allclose(getattr(other, name), getattr(plain, name)[order], rtol=1e-9)
    assert_allclose(other.effective, plain.effective, rtol=1e-9)
    assert other.diversity == plain.diversity
    assert other.perplexity == pytest.approx(plain.perplexity, rel=1e-6)


def test_model_gives_the_quality_of_its_factors(fit):
    V, model, W = fit
    own, arrays = topic_quality(V, model), topic_quality(V, model.components_, W)
    for name in MEASURES:
        assert_allclose(getattr(own, name), getattr(arrays, name), rtol=1e-6)
    assert own.perplexity == pytest.approx(arrays.perplexity, rel=1e-6)
    assert topic_quality(V, model, held_out=False).perplexity is None


def test_perplexity_is_lowest_at_the_true_rank_and_bounded():
    V = poisson_topics(300, 80, 3, length=100, seed=0)
    train, new = V[:200], V[200:]
    found = {
        k: topic_quality(train, KLNMF(k, random_state=0).fit(train), held_out=new).perplexity
        for k in (1, 3, 12)
    }
    assert found[3] < found[12] < found[1] < 80
    uniform = topic_quality(np.full((40, 50), 30), np.ones((1, 50))).perplexity
    assert uniform == pytest.approx(50, rel=0.01)


def test_held_out_words_that_no_component_has_leave_it_finite():
    V = poisson_topics(60, 30, 2, length=40, seed=1).toarray()
    H = np.zeros((2, 30))
    H[0, :3] = H[1, 2:5] = 1
    assert 1 < topic_quality(V, H).perplexity < 1e4


def test_odd_components_have_finite_values():
    """No word, one word, words that never occur, and two equal components."""
    V = np.zeros((20, 8))
    V[:12, :4] = np.random.default_rng(0).poisson(1.0, (12, 4))
    H = np.zeros((5, 8))
    H[1, 0] = 1
    H[2, 6:] = 1
    H[3:, :4] = [4, 3, 2, 1]
    quality = topic_quality(V, H, np.ones((20, 5)))
    for name in MEASURES:
        assert np.isfinite(getattr(quality, name)).all(), name
    assert_array_equal(quality.pairs, [0, 0, 1, 6, 6])
    assert quality.npmi[2] == -1
    assert np.isfinite([quality.diversity, quality.mean_npmi, quality.mean_effective]).all()
    assert quality.mean_npmi == pytest.approx(quality.npmi[2:].mean())
    assert "nan" not in repr(quality).lower()
    assert quality.top_features()[0] == []
    nothing = topic_quality(np.zeros((3, 8)), H, np.zeros((3, 5)))
    assert nothing.mean_effective == 0
    assert nothing.perplexity is None
    assert "nan" not in repr(nothing).lower()


def test_frame_and_repr_show_names():
    V = poisson_topics(60, 12, 2, seed=0).toarray()
    names = [f"word{j}" for j in range(12)]
    table = pd.DataFrame(V, columns=names)
    guided = KLNMF(3, guides={"first": ["word1"]}, random_state=0)
    quality = topic_quality(table, guided.fit(table), n_top=4)
    frame = quality.to_frame()
    assert frame.index.tolist() == ["first", "component 2", "component 3"]
    assert_array_equal(frame["npmi"], quality.npmi)
    assert set(frame["top features"].iloc[0].split(", ")) <= set(names)
    assert "first: NPMI" in repr(quality)
    assert "perplexity" in repr(quality)
    renamed = topic_quality(V, guided.components_, features=list("abcdefghijkl"))
    assert set(renamed.top_features()[0]) <= set("abcdefghijkl")
    many = topic_quality(V, np.random.default_rng(0).random((30, 12)))
    assert "and 10 more components" in repr(many)
    assert list(quality.effective_quantiles()) == [0.05, 0.25, 0.5, 0.75, 0.95]


def test_data_that_are_no_counts_have_no_perplexity(fit):
    V, model, _ = fit
    assert topic_quality(V * 0.5, model.components_).perplexity is None
    with pytest.raises(ValueError, match="`held_out` must hold whole numbers"):
        topic_quality(V, model, held_out=V * 0.5)


def test_bad_arguments_are_refused(fit):
    V, model, W = fit
    with pytest.raises(ValueError, match="`n_top` must be at least 2"):
        topic_quality(V, model, n_top=1)
    with pytest.raises(ValueError, match="`added` must be positive"):
        topic_quality(V, model, added=0)
    with pytest.raises(ValueError, match="`V` must have one column for each of the 60 features"):
        topic_quality(V[:, :5], model)
    with pytest.raises(ValueError, match="`held_out` must have one column"):
        topic_quality(V, model, held_out=V[:, :5])
    with pytest.raises(ValueError, match=r"`W` must have shape \(200, 3\), got \(200, 2\)"):
        topic_quality(V, model, W[:, :2])
    with pytest.raises(ValueError, match="`features` must have 60 names, got 1"):
        topic_quality(V, model, features=["a"])
    with pytest.raises(ValueError, match="`model` must be finite and non-negative"):
        topic_quality(V, -model.components_)
    with pytest.raises(ValueError, match="`model` must have two dimensions"):
        topic_quality(V, np.ones(60))
    with pytest.raises(TypeError, match="`model` must be a fitted KLNMF or an array"):
        topic_quality(V, "a model")
