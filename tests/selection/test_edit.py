# SPDX-License-Identifier: BSD-3-Clause
"""Components that are merged, split and dropped by hand, and the refit."""

import numpy as np
import pandas as pd
import pytest

from sipower import KLNMF
from sipower.datasets import poisson_topics
from sipower.selection import component_flows, cosines, edit_components, merge_tree

V = poisson_topics(200, 120, 4, seed=0)
NAMES = list("abcdef")


@pytest.fixture(scope="module")
def model():
    return KLNMF(6, random_state=0).fit(V)


def assert_is_certified(edited, tol=1e-3):
    assert edited.model.status_ == "converged"
    assert edited.model.kkt_residual_ <= tol
    assert edited.divergence == edited.model.kl_divergence_
    assert edited.divergence <= edited.objective_start
    np.testing.assert_array_equal(edited.W, edited.model.transform(V))


def test_merging_families_gives_the_topics(model):
    tree = merge_tree(model.transform(V), model.components_)
    families = tree.families(4)
    before = model.components_.copy()
    edited = edit_components(V, model, merge=[f for f in families if len(f) > 1], names=NAMES)
    assert_is_certified(edited)
    np.testing.assert_array_equal(model.components_, before)
    assert edited.origins == families
    assert edited.names == tuple(" + ".join(NAMES[k] for k in f) for f in families)
    assert edited.divergence_before == model.kl_divergence_
    bound = tree.bounds[:2].sum()
    assert edited.divergence <= model.kl_divergence_ + bound + 1e-3 * V.sum()
    direct = KLNMF(4, random_state=0, n_init=4).fit(V)
    assert edited.divergence < 1.01 * direct.kl_divergence_
    assert "4 components, converged" in str(edited)


def test_splitting_finds_the_two_topics_and_lowers_the_divergence():
    small, four = (KLNMF(k, random_state=0).fit(V) for k in (3, 4))
    (parent,) = component_flows(V, [small, four]).splits(0)
    edited = edit_components(V, small, split=[parent])
    assert_is_certified(edited)
    assert edited.objective_start < small.kl_divergence_
    assert edited.origins == ((0,), (1,), (2,), (parent,))
    assert edited.names[parent] == f"component {parent + 1} (part 1)"
    assert edited.names[3] == f"component {parent + 1} (part 2)"
    assert cosines(edited.model.components_, four.components_).max(axis=1).min() > 0.99


def test_dropping_leaves_the_others_alike(model):
    edited = edit_components(V, model, drop=[1, 4], names=NAMES)
    assert_is_certified(edited)
    assert edited.names == ("a", "c", "d", "f")
    assert edited.W.shape == (200, 4)


def test_all_three_at_once_keep_the_other_components(model):
    edited = edit_components(V, model, merge=[(5, 0)], split=[2], drop=[1], names=NAMES)
    assert_is_certified(edited)
    assert edited.names == ("a + f", "c (part 1)", "d", "e", "c (part 2)")
    assert edited.origins == ((0, 5), (2,), (3,), (4,), (2,))


def test_guides_known_components_and_parameters_follow_their_components():
    X = pd.DataFrame(V.toarray(), columns=[f"g{j}" for j in range(120)])
    plain = KLNMF(4, random_state=0).fit(X)
    tops = [[f"g{j}" for j in np.argsort(-row)[:5]] for row in plain.components_]
    known = pd.DataFrame(plain.components_[:1], ["known"], X.columns)
    prior = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    model = KLNMF(
        5, random_state=0, components_fixed=known, guides={"x": tops[1], "y": tops[2]},
        prior_W=prior, tol=1e-2,
    ).fit(X)  # fmt: skip
    edited = edit_components(X, model, merge=[(2, 4)], drop=[1])
    assert edited.names == ("known", "y + component 5", "component 4")
    assert list(edited.model.guides) == ["y"]
    assert edited.model.guides_[0].component == 1
    np.testing.assert_array_equal(edited.model.prior_W, [0.1, 0.3, 0.4])
    np.testing.assert_array_equal(edited.model.components_[0], known.to_numpy()[0])
    without = edit_components(X, model, drop=[0, 1], split=[2]).model
    assert without.components_fixed is None
    assert (list(without.guides), without.n_components) == (["y"], 4)
    for changes in ({"merge": [(0, 3)]}, {"split": [0]}):
        with pytest.raises(ValueError, match="cannot change component 0, one of `components_fixed"):
            edit_components(X, model, **changes)
    with pytest.raises(ValueError, match=r"`merge` cannot join \(1, 2\), which have a guide each"):
        edit_components(X, model, merge=[(1, 2)])


def test_observed_arguments_are_used():
    offsets = np.random.default_rng(0).uniform(0.5, 2, 200)
    model = KLNMF(5, random_state=0).fit(V, offsets=offsets)
    edited = edit_components(V, model, split=[0], merge=[(1, 2)], offsets=offsets)
    assert edited.model.status_ == "converged"
    np.testing.assert_array_equal(edited.W, edited.model.transform(V, offsets=offsets))


def test_bad_edits_get_one_sentence(model):
    cases = {
        "`merge`, `split` or `drop` must name a component": {},
        "`drop` must leave a component, got all 6": {"drop": range(6)},
        "must name a component once, got 2 more": {"merge": [(1, 2)], "split": [2]},
        "`split` must name components from 0 to 5, got 6": {"split": [6]},
        "`merge` must hold tuples of two or more components": {"merge": [(1,)]},
        "`names` must have one name for each of the 6": {"drop": [0], "names": ["a"]},
    }
    for message, changes in cases.items():
        with pytest.raises(ValueError, match=message):
            edit_components(V, model, **changes)
    with pytest.raises(TypeError, match="`merge` must be a list of tuples of integers"):
        edit_components(V, model, merge=[1, 2])
    with pytest.raises(TypeError, match="`model` must be a fitted KLNMF, got a ndarray"):
        edit_components(V, model.components_, drop=[0])
    online = KLNMF(3, random_state=0).partial_fit(V)
    with pytest.raises(ValueError, match="`model` must come from `fit`"):
        edit_components(V, online, drop=[0])


def test_a_component_without_counts_cannot_be_split():
    model = KLNMF(3, random_state=0).fit(V)
    model.components_ += 1e-6
    model.components_[1] = 0
    with pytest.raises(ValueError, match="but component 1 has none"):
        edit_components(V, model, split=[1])
