# SPDX-License-Identifier: BSD-3-Clause
"""Merging and matching of components."""

import numpy as np
import pytest
from scipy.special import xlogy

from sipower.selection import (
    match,
    merge,
)


def kl(V, Z):
    return float((xlogy(V, V) - xlogy(V, Z) - V + Z).sum())


def test_merging_a_split_component_gives_it_back():
    """Two halves of one component, by samples or by features alike, are the cheapest to merge."""
    rng = np.random.default_rng(0)
    W, H = rng.gamma(0.3, size=(30, 3)), rng.gamma(0.3, size=(3, 20))
    share = rng.uniform(size=30)
    split = np.c_[W, W[:, 0] * share]
    split[:, 0] *= 1 - share
    found_W, found_H = merge(split, np.r_[H, H[:1]], 3)
    np.testing.assert_allclose(found_W @ found_H, W @ H, rtol=1e-3, atol=1e-3)


def test_merging_costs_no_more_than_its_bound():
    """The docstring's bound, against the divergence between the pair and its merger."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        W, H = rng.gamma(0.5, size=(12, 2)), rng.gamma(0.5, size=(2, 9))
        mass = W.sum(0) * H.sum(1)
        u, v = W / W.sum(0), H / H.sum(1, keepdims=True)

        def disorder(p):
            return -xlogy(p, p).sum()

        bounds = []
        for F in (u.T, v):
            mean = mass @ F / mass.sum()
            bounds.append(mass.sum() * disorder(mean) - sum(mass * [disorder(f) for f in F]))
        one_W, one_H = merge(W, H, 1)
        assert kl(W @ H, one_W @ one_H) <= min(bounds) * (1 + 1e-4) + 1e-3
        assert (one_W @ one_H).sum() == pytest.approx(mass.sum(), rel=1e-4)


def test_merging_keeps_mass_and_has_no_zeros():
    rng = np.random.default_rng(2)
    W, H = rng.gamma(0.5, size=(12, 6)), rng.gamma(0.5, size=(6, 9))
    W[:, 4] = 0.0  # a dead component
    one, other = merge(W, H, 4)
    assert one.shape == (12, 4)
    assert one.min() > 0
    assert other.min() > 0
    assert (one @ other).sum() == pytest.approx((W @ H).sum(), rel=1e-4)


def test_matching_undoes_a_permutation():
    H = np.random.default_rng(0).gamma(0.2, size=(6, 40))
    order = np.array([3, 1, 0, 5, 4, 2])
    partners, cosine = match(H[order] * np.arange(1, 7)[:, None], H)
    np.testing.assert_array_equal(partners, order)
    np.testing.assert_allclose(cosine, 1.0)


def test_a_dead_component_matches_with_cosine_zero():
    H = np.eye(3)
    dead = H.copy()
    dead[1] = 0
    assert match(dead, H)[1].tolist() == [1.0, 0.0, 1.0]


def test_rows_without_a_partner_say_so():
    """The best assignment by brute force, whichever side has more rows."""
    A, B = np.eye(3), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(match(A, B), ([1, -1, 0], [1, 0, 1]))
    np.testing.assert_array_equal(match(B, A), ([2, 0], [1, 1]))
