# SPDX-License-Identifier: BSD-3-Clause
"""Merge trees and flows between ranks: bounds, families, suggested ranks."""

import numpy as np
import pytest
from scipy.special import xlogy

from sipower import KLNMF
from sipower.datasets import poisson, poisson_topics
from sipower.nmf.merging import Merging
from sipower.selection import (
    ComponentFlows,
    MergeTree,
    component_flows,
    load_outcome,
    merge,
    merge_tree,
    save_outcome,
)


def kl(V, Z):
    return float((xlogy(V, V) - xlogy(V, Z) - V + Z).sum())


@pytest.fixture(scope="module")
def surplus():
    """Counts of 4 topics and factors of 8 components, at a minimum to 1e-7."""
    V = poisson_topics(120, 80, 4, seed=0).toarray()
    model = KLNMF(8, random_state=0, tol=1e-7, max_iter=5000)
    return V, model.fit_transform(V), model.components_


def test_bounds_are_those_of_merging(surplus):
    _, W, H = surplus
    tree, merging = merge_tree(W, H), Merging(W, H.T, None)
    for bound in tree.bounds:
        assert bound == merging.merge_cheapest()[2]
    np.testing.assert_allclose(tree.masses, W.sum(0) * H.sum(1))
    np.testing.assert_allclose(tree.relative_bounds * tree.masses.sum(), tree.bounds)


def test_bounds_hold_for_the_divergence_from_the_data(surplus):
    """D of the merged factors is at most D of the fit plus the bounds of the mergers made."""
    V, W, H = surplus
    tree, D = merge_tree(W, H), kl(V, W @ H)
    for k in range(1, 8):
        families = tree.families(k)
        counts = W * H.sum(1)
        merged_W = np.stack([counts[:, list(f)].sum(1) for f in families], axis=1)
        merged_H = np.stack([W.sum(0)[list(f)] @ H[list(f)] for f in families])
        merged_H /= merged_H.sum(1, keepdims=True)
        increase = kl(V, merged_W @ merged_H) - D
        bound = tree.bounds[: 8 - k].sum()
        assert 0 < increase <= bound + 1e-6 * V.sum()
        np.testing.assert_allclose(merged_W @ merged_H, np.matmul(*merge(W, H, k)), atol=1e-2)


def test_the_order_of_components_does_not_matter(surplus):
    _, W, H = surplus
    order = np.random.default_rng(0).permutation(8)
    tree, other = merge_tree(W, H), merge_tree(W[:, order], H[order])
    np.testing.assert_allclose(other.bounds, tree.bounds, rtol=1e-9)
    for k in range(1, 9):
        renamed = {tuple(sorted(order[list(f)].tolist())) for f in other.families(k)}
        assert renamed == set(tree.families(k))
    assert other.suggested_rank == tree.suggested_rank == 4
    scales = np.random.default_rng(1).gamma(1.0, size=8)
    np.testing.assert_allclose(merge_tree(W * scales, H / scales[:, None]).bounds, tree.bounds)


def test_cuts_are_nested_partitions(surplus):
    tree = merge_tree(*surplus[1:])
    assert tree.labels.shape == (8, 8)
    for k in range(1, 9):
        labels = tree.cut(k)
        np.testing.assert_array_equal(labels, tree.labels[k - 1])
        assert sorted(set(labels.tolist())) == list(range(k))
        assert all(set(labels[list(f)]) == {i} for i, f in enumerate(tree.families(k)))
        if k > 1:  # every family lies in one of the next
            above = tree.cut(k - 1)
            assert all(len(set(above[labels == i])) == 1 for i in range(k))


def test_trees_suggest_a_rank_only_where_the_bound_jumps():
    V = poisson_topics(200, 150, 5, seed=1)
    ranks = []
    for K in (5, 6, 10):
        model = KLNMF(K, random_state=0)
        ranks.append(merge_tree(model.fit_transform(V), model.components_).suggested_rank)
    assert ranks == [None, 5, 5]
    noise = KLNMF(6, random_state=0)
    tree = merge_tree(noise.fit_transform(poisson(200, 150, 0.3, seed=0)), noise.components_)
    assert tree.suggested_rank is None
    assert "no clear jump" in str(tree)


def test_a_single_component_is_a_tree():
    tree = merge_tree(np.ones((3, 1)), np.ones((1, 2)))
    assert (tree.mergers, tree.suggested_rank) == ((), None)
    assert tree.families(1) == ((0,),)


def test_trees_and_flows_survive_their_files(surplus, tmp_path):
    V, W, H = surplus
    tree = merge_tree(W, H)
    save_outcome(tree, tmp_path / "tree.json")
    back = load_outcome(MergeTree, tmp_path / "tree.json")
    assert (back.mergers, back.noise) == (tree.mergers, tree.noise)
    np.testing.assert_array_equal(back.bounds, tree.bounds)
    assert str(back) == str(tree)
    flows = component_flows(V, [merge(W, H, 3), (W, H)])
    save_outcome(flows, tmp_path / "flows.json")
    loaded = load_outcome(ComponentFlows, tmp_path / "flows.json")
    np.testing.assert_array_equal(loaded.flows[0], flows.flows[0])
    assert loaded.ranks == (3, 8)
    with pytest.raises(ValueError, match=r"tree\.json is not a ComponentFlows of sipower"):
        load_outcome(ComponentFlows, tmp_path / "tree.json")


def test_flows_of_minima_sum_to_the_counts_of_components(surplus):
    V, W, H = surplus
    small = KLNMF(3, random_state=0, tol=1e-7, max_iter=5000)
    U = small.fit_transform(V)
    flows = component_flows(V, [(W, H), small])
    assert flows.ranks == (3, 8)
    np.testing.assert_allclose(flows.masses(0), U.sum(0) * small.components_.sum(1), rtol=1e-3)
    np.testing.assert_allclose(flows.masses(1), W.sum(0) * H.sum(1), rtol=1e-3)
    shares = [U[:, :, None] * small.components_, W[:, :, None] * H]
    shares = [part / np.maximum(part.sum(axis=1, keepdims=True), 1e-300) for part in shares]
    expected = np.einsum("ij,iaj,ibj->ab", V, *shares)
    np.testing.assert_allclose(flows.flows[0], expected, rtol=1e-6, atol=1e-9)


def test_the_component_that_holds_two_topics_splits():
    V = poisson_topics(300, 200, 4, seed=0)
    fits = [KLNMF(k, random_state=0).fit(V) for k in (4, 3)]
    flows = component_flows(V, fits)
    ((parent, parts),) = flows.splits(0).items()
    assert len(parts) == 2
    both = fits[0].components_[list(parts)].sum(axis=0)
    own = fits[1].components_[parent]
    assert own @ both / np.linalg.norm(own) / np.linalg.norm(both) > 0.95
    assert flows.children(0)[parent] == parts
    assert set(flows.parents(0)[list(parts)]) == {parent}
    np.testing.assert_allclose(flows.shares(0).sum(axis=1), 1)


def test_bad_arguments_get_one_sentence(surplus):
    V, W, H = surplus
    tree, flows = merge_tree(W, H), component_flows(V, [(W, H), (W, H)])
    with pytest.raises(ValueError, match="`k` must be an integer from 1 to 8, got 9"):
        tree.cut(9)
    with pytest.raises(ValueError, match=r"`W` and `H` must have shapes \(n, K\) and \(K, m\)"):
        merge_tree(W, H.T)
    with pytest.raises(ValueError, match="`H` must be finite and non-negative"):
        merge_tree(W, -H)
    with pytest.raises(ValueError, match="`fit` must be an integer from 0 to 0, got 1"):
        flows.parents(1)
    with pytest.raises(ValueError, match="`fits` must have two or more fits, got 1"):
        component_flows(V, [(W, H)])
    with pytest.raises(ValueError, match="`fits` must be of data of shape"):
        component_flows(V, [(W, H), (W[1:], H)])
    with pytest.raises(TypeError, match=r"`fits` must hold fitted KLNMF or pairs \(W, H\)"):
        component_flows(V, [W, W])
