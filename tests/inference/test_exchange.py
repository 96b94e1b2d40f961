# SPDX-License-Identifier: BSD-3-Clause
"""Components that can be exchanged: the shares, and intervals that contain the truth with them."""

import warnings

import numpy as np
import pytest
from scipy.special import xlogy

from sipower import KLNMF, bootstrap
from sipower.data.validate import as_matrix
from sipower.estimators.observation import Observation

# The ranges alone are compared with plain NumPy; `bootstrap` returns them rounded into intervals.
from sipower.inference import exchange
from sipower.inference.exchange import GRID, LIMIT, find_exchange
from sipower.selection import match


def overlapping(seed=0, n=120, m=48, K=5):
    """Return counts, weights and profiles of components that share a flat part, without zeros."""
    rng = np.random.default_rng(seed)
    flat, own = rng.dirichlet(np.full(m, 3.0)), rng.dirichlet(np.full(m, 0.15), K)
    share = 0.8 * rng.random((K, 1))
    H = share * flat + (1 - share) * own
    W = np.zeros((n, K))
    for i in range(n):
        active = rng.choice(K, 3, replace=False)
        W[i, active] = rng.dirichlet(np.ones(3)) * rng.lognormal(np.log(1500), 0.7)
    return rng.poisson(W @ H).astype(float), W, H


def separated(seed=0, n=150, m=96, K=5):
    rng = np.random.default_rng(seed)
    H, W = rng.dirichlet(np.full(m, 0.08), K), np.zeros((n, K))
    for i in range(n):
        active = rng.choice(K, 3, replace=False)
        W[i, active] = rng.dirichlet(np.ones(3)) * rng.lognormal(np.log(1500), 0.7)
    return rng.poisson(W @ H).astype(float), W, H


def fit(V, K, **parameters):
    return KLNMF(K, tol=1e-5, max_iter=2000, random_state=0, n_jobs=1, **parameters).fit(V)


def coverage(interval, truth, is_large):
    covered = (interval.lower <= truth) & (truth <= interval.upper)
    return covered[is_large].mean()


# ---- the shares --------------------------------------------------------------------------------


def criterion(V, H):
    """Return min D + ½ positive weights by EM in plain NumPy, until nothing changes."""
    W = np.full((len(V), len(H)), V.sum(axis=1, keepdims=True) / len(H))
    for _ in range(5_000):
        W = W * ((V / (W @ H)) @ H.T) / H.sum(axis=1)
    Z = W @ H
    divergence = (xlogy(V, V) - xlogy(V, Z) - V + Z).sum()
    return divergence + (1e-6 * W.sum(axis=1, keepdims=True) < W).sum() / 2


def test_shares_are_the_largest_that_the_counts_allow():
    V, _, _ = overlapping(3, n=40, m=24, K=3)
    model = fit(V, 3)
    H = model.components_ / model.components_.sum(axis=1, keepdims=True)
    shares = find_exchange(model, as_matrix(V), Observation(), model.components_).shares
    assert (shares > 0).any()
    lowest = criterion(V, H)

    def rise(k, other, share):
        moved = H.copy()
        moved[k] = (H[k] + share * H[other]) / (1 + share)
        return criterion(V, moved) - lowest

    for k, other in zip(*np.nonzero(~np.eye(3, dtype=bool)), strict=True):
        at = np.searchsorted(GRID, shares[k, other] * 1.01)
        if at:
            assert rise(k, other, GRID[at - 1]) <= LIMIT + 0.1
        assert rise(k, other, GRID[at]) > LIMIT - 0.1
    assert not shares.diagonal().any()


def test_exchanged_profiles_stay_within_the_widened_intervals():
    V, _, _ = overlapping()
    model = fit(V, 5)
    found = find_exchange(model, as_matrix(V), Observation(), model.components_)
    H = model.components_ / model.components_.sum(axis=1, keepdims=True)
    for k, other in np.argwhere(found.shares > 0):
        share = found.shares[k, other]
        move = (H[k] + share * H[other]) / (1 + share) - H[k]
        assert (found.H[0][:, k] - 1e-12 <= move).all()
        assert (move <= found.H[1][:, k] + 1e-12).all()


# ---- what it does for intervals ----------------------------------------------------------------


def test_intervals_of_overlapping_components_contain_the_truth():
    """Quantiles of the replicates alone contained 0.73 of the profiles and 0.65 of the weights."""
    V, W, H = overlapping(K=4)
    model = fit(V, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = bootstrap(V, model, 40, n_jobs=2)
    order = match(model.components_, H)[0]
    truth, weights = H[order], W[:, order]
    is_large = truth * weights.sum(axis=0)[:, None] >= 10
    assert coverage(result.H, truth, is_large) > 0.91
    assert coverage(result.W, weights, weights >= 10) > 0.91


def test_components_that_can_be_exchanged_are_reported():
    V, _, _ = overlapping(K=4)
    with pytest.warns(UserWarning, match=r"from mixtures with each other: .* \(`widening`\)"):
        result = bootstrap(V, fit(V, 4), 5, n_jobs=2)
    assert result.widening.max() > 1.5
    frame = result.to_frames()["stability"]
    np.testing.assert_array_equal(frame["widening"], result.widening)
    np.testing.assert_array_equal(frame["exchange"], result.exchange.max(axis=1))


def test_separated_components_are_not_widened():
    V, _, _ = separated()
    result = bootstrap(V, fit(V, 5), 10, n_jobs=2)  # and no warning
    assert result.widening.max() < 1.1
    assert result.exchange.max() <= 0.002


def test_known_components_and_zeros_are_not_exchanged():
    V, _, H = overlapping()
    zero = np.zeros((5, 48), bool)
    zero[2, :5] = True
    model = fit(V, 5, components_fixed=H[:2], components_zero=zero)
    found = find_exchange(model, as_matrix(V), Observation(), model.components_)
    assert not found.shares[:2].any()
    assert found.shares[2:].any()
    for ends in found.H:
        assert not ends[:, :2].any()
        assert not ends[:5, 2].any()


def test_few_samples_stand_for_all(monkeypatch):
    V, _, _ = overlapping(n=400)
    model = fit(V, 5)
    data = as_matrix(V)
    whole = find_exchange(model, data, Observation(), model.components_)
    monkeypatch.setattr(exchange, "MAX_ROWS", 200)  # samples that A is computed from
    part = find_exchange(model, data, Observation(), model.components_)
    assert part.W[0].shape == (400, 5)
    ratio = part.shares.sum() / whole.shares.sum()
    assert 0.5 < ratio < 2
