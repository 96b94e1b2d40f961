# SPDX-License-Identifier: BSD-3-Clause
"""Guided components: they hold their features, the others stay free, and nonsense is reported."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sipower import KLNMF, as_matrix

RANK, SAMPLES, FEATURES, GUIDED = 6, 300, 200, 2
NAMES = [f"w{j}" for j in range(FEATURES)]


def topics(seed):
    """Return counts of generated topics and their profiles."""
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(FEATURES, 0.05), RANK)
    weights = rng.dirichlet(np.full(RANK, 0.2), SAMPLES)
    return rng.poisson(rng.poisson(120, SAMPLES)[:, None] * (weights @ profiles)), profiles


def seed_words(profiles, seed):
    """Draw four of the ten most frequent features of some topics."""
    rng = np.random.default_rng(seed)
    tops = {f"topic {k}": np.argsort(-profiles[k])[:10] for k in range(GUIDED)}
    return {
        name: [NAMES[j] for j in rng.choice(top, 4, replace=False)] for name, top in tops.items()
    }


def nonsense(profiles):
    """Return features that are each frequent in a different topic."""
    return [NAMES[int(np.argmax(profiles[k]))] for k in range(RANK)]


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.fixture(scope="module")
def data():
    V, profiles = topics(0)
    return pd.DataFrame(V, columns=NAMES), profiles, seed_words(profiles, 0)


@pytest.mark.parametrize("seed", range(4))
def test_guided_components_are_the_topics_of_their_features(seed):
    V, profiles = topics(seed)
    guides = seed_words(profiles, seed)
    model = KLNMF(RANK, guides=guides, random_state=seed).fit(pd.DataFrame(V, columns=NAMES))
    for k, words in enumerate(guides.values()):
        top = {NAMES[j] for j in np.argsort(-model.components_[k])[:20]}
        assert set(words) <= top
        assert cosine(model.components_[k], profiles[k]) > 0.95
    assert all(report.is_supported for report in model.guides_)
    assert [report.component for report in model.guides_] == [0, 1]


def test_a_guide_that_the_data_do_not_support_is_reported(data):
    X, profiles, guides = data
    with pytest.warns(UserWarning, match="The data do not support this guide"):
        model = KLNMF(RANK, guides=guides | {"all": nonsense(profiles)}, random_state=0).fit(X)
    assert [report.is_supported for report in model.guides_] == [True, True, False]
    assert set(model.guides_[2].unsupported) <= set(nonsense(profiles))
    assert str(model.guides_[2]).startswith("Guide 'all': ")


def test_every_form_of_the_same_guides_gives_the_same_bits(data):
    X, _, guides = data
    positions = {name: [NAMES.index(word) for word in words] for name, words in guides.items()}
    table = pd.DataFrame(0.0, index=list(guides), columns=NAMES[::-1])
    for name, words in guides.items():
        table.loc[name, words] = 2.5
    weights = {name: dict.fromkeys(words, 3) for name, words in guides.items()}
    reference = KLNMF(RANK, guides=guides, random_state=0).fit(X).components_
    for form in (table, weights):
        other = KLNMF(RANK, guides=form, random_state=0).fit(X).components_
        np.testing.assert_allclose(other, reference, rtol=1e-12)
    unnamed = KLNMF(RANK, guides=positions, random_state=0).fit(X.to_numpy()).components_
    np.testing.assert_array_equal(unnamed, reference)


def test_a_guide_is_prior_counts_of_one_component(data):
    X, _, guides = data
    a = np.zeros((RANK, FEATURES))
    for k, words in enumerate(guides.values()):
        a[k, [NAMES.index(word) for word in words]] = 50 / len(words)
    guided = KLNMF(RANK, guides=guides, guide_strength=50.0, random_state=0).fit(X)
    same = KLNMF(RANK, prior_H=a, random_state=0).fit(X)
    np.testing.assert_allclose(guided.components_, same.components_, rtol=1e-12)


def test_guided_components_follow_the_known_ones(data):
    X, profiles, guides = data
    model = KLNMF(RANK, guides=guides, components_fixed=profiles[-2:], random_state=0).fit(X)
    assert (model.components_[:2] == profiles[-2:]).all()
    assert [report.component for report in model.guides_] == [2, 3]
    assert cosine(model.components_[2], profiles[0]) > 0.95


def test_a_sparse_matrix_with_names_and_single_features(data):
    X, profiles, _ = data
    V = as_matrix(sparse.csr_array(X.to_numpy())).with_names(None, np.array(NAMES))
    word = NAMES[int(np.argmax(profiles[3]))]
    model = KLNMF(RANK, guides={"one": [word]}, random_state=0).fit(V)
    assert model.guides_[0].is_supported
    assert cosine(model.components_[0], profiles[3]) > 0.9


def test_features_that_the_data_lack_are_named(data):
    X, _, guides = data
    with pytest.warns(UserWarning, match="1 of 5 features of 'topic 0' are not in the data: owl"):
        KLNMF(RANK, guides={"topic 0": [*guides["topic 0"], "owl"]}, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("guides", "error", "sentence"),
    [
        ({"birds": ["owl", "emu"]}, ValueError, "no feature of 'birds' is in the data .owl, emu."),
        ({"birds": []}, ValueError, "no feature of 'birds' is in the data .none given."),
        ({"birds": "owl"}, TypeError, "'birds' must have a list of features"),
        (["w1", "w2"], TypeError, "`guides` must be a mapping from names to lists of features"),
        ({"a": {"w1": -1}}, ValueError, "the weights of 'a' must be positive and finite"),
        ({str(k): [f"w{k}"] for k in range(7)}, ValueError, "at most n_components = 6 components"),
    ],
)
def test_bad_guides_get_one_sentence(data, guides, error, sentence):
    with pytest.raises(error, match=sentence):
        KLNMF(RANK, guides=guides).fit(data[0])


def test_positions_are_refused_where_the_data_have_names_and_the_reverse(data):
    X, _, guides = data
    with pytest.raises(ValueError, match="the data have no feature names"):
        KLNMF(RANK, guides=guides).fit(X.to_numpy())
    with pytest.raises(ValueError, match="no feature of 'topic' is in the data"):
        KLNMF(RANK, guides={"topic": [1, 2]}).fit(X)


def test_a_fit_without_guides_forgets_those_of_an_earlier_one(data):
    X, _, guides = data
    model = KLNMF(RANK, guides=guides, random_state=0).fit(X)
    model.set_params(guides=None).fit(X)
    assert not hasattr(model, "guides_")
