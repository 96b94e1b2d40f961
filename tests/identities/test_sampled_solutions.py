# SPDX-License-Identifier: BSD-3-Clause
"""Exact solutions that begin with epochs of S-SCI-PI: certified, the same for any order of rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm

import oracles
from sipower import KLNMF
from sipower.problems import KLBlock, MixtureProportions, mixture_proportions

ALWAYS, NEVER = 0.0, np.inf


def gamma_likelihoods(n, K, seed=0):
    return np.random.default_rng(seed).gamma(0.5, 1.0, (n, K))


def normal_scale_likelihoods(n, K):
    """Nearly collinear: components on a fine grid of standard deviations."""
    rng = np.random.default_rng(0)
    scales = np.geomspace(0.1, 10, K)
    x = rng.normal(size=n) * np.sqrt(1 + rng.choice([0.3, 1.0, 4.0], n) ** 2)
    return norm.pdf(x[:, None], scale=np.sqrt(1 + scales**2))


@pytest.mark.parametrize(("n", "K"), [(4000, 3), (40_000, 20), (300, 5), (9, 2)])
def test_epochs_lead_to_the_certified_solution(n, K):
    L = gamma_likelihoods(n, K)
    problem = MixtureProportions(L)
    sampled = problem.solution(1e-10, sampling_threshold=ALWAYS)
    assert sampled.gaps[0] <= 1e-10
    # The certificate again, from its definition.
    x = sampled.h[0] / sampled.h[0].sum()
    assert (L.T @ (1 / (L @ x))).max() / n - 1 <= 1e-9
    plain = problem.solution(1e-10, sampling_threshold=NEVER)
    values = [problem.log_likelihood(h[0] / h[0].sum()) / n for h in (sampled.h, plain.h)]
    assert values[0] == pytest.approx(values[1], abs=2e-10)


def test_long_sums_take_fewer_passes_with_epochs():
    """An epoch costs 1 + 60 K²/n passes, and the default takes epochs from n = 40 K² on."""
    problem = MixtureProportions(gamma_likelihoods(64_000, 20))
    default, sampled, plain = (
        problem.solution(1e-8, sampling_threshold=share).passes[0] for share in (40, ALWAYS, NEVER)
    )
    assert default == sampled
    epochs = round((sampled - 1) / (1 + 1.5 * 79 * 200 / 64_000))
    assert sampled == pytest.approx(1 + epochs * (1 + 1.5 * 79 * 200 / 64_000))
    assert sampled < 0.6 * plain
    short = MixtureProportions(gamma_likelihoods(15_999, 20))
    assert (
        short.solution(1e-8).passes[0] == short.solution(1e-8, sampling_threshold=NEVER).passes[0]
    )


def test_where_epochs_stall_newton_steps_take_over():
    L = normal_scale_likelihoods(30_000, 25)
    assert len(L) >= 40 * 25**2
    result = mixture_proportions(L)
    assert result.gap <= 1e-8
    assert (L.T @ (1 / (L @ result.proportions))).max() / len(L) - 1 <= 2e-8


def test_a_limit_of_rounds_ends_epochs_too():
    problem = MixtureProportions(gamma_likelihoods(20_000, 10))
    for max_epochs in (0, 1, 3):
        result = problem.solution(0.0, max_epochs, sampling_threshold=ALWAYS)
        assert result.passes[0] == pytest.approx(1 + max_epochs * (1 + 1.5 * 39 * 100 / 20_000))
        assert result.gaps[0] == pytest.approx(
            float(problem.multiplier(result.h).max() - 1), rel=1e-6
        )


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("exact", [True, False])
def test_items_are_solved_each_for_itself(layout, exact):
    """Zeros among the terms, items of different lengths, any order and company: the same bits."""
    rng = np.random.default_rng(1)
    V = rng.poisson(rng.gamma(0.5, 2.0, (9, 3)) @ rng.gamma(0.5, 2.0, (3, 3000))) * 1.0
    V[:, ::7] = 0
    V[4, 50:] = 0
    B = rng.gamma(0.5, 1.0, (3000, 4)) + 1e-3
    options = {"exact": exact, "sampling_threshold": ALWAYS}
    whole = KLBlock(layout(V), B).solution(1e-8 if exact else 1e-4, **options)
    assert (whole.gaps <= (1e-8 if exact else 1e-4)).all()
    order = rng.permutation(9)
    shuffled = KLBlock(layout(V[order]), B).solution(1e-8 if exact else 1e-4, **options)
    np.testing.assert_array_equal(shuffled.h, whole.h[order])
    alone = KLBlock(layout(V[[3]]), B).solution(1e-8 if exact else 1e-4, **options)
    np.testing.assert_array_equal(alone.h[0], whole.h[3])
    if exact:
        for j in (0, 4):
            at = V[j] > 0
            value = B.sum(axis=0) @ whole.h[j] - V[j, at] @ np.log(B[at] @ whole.h[j])
            assert value <= oracles.best_item(V[j], B)[0] + 2e-8 * V[j].sum()


def test_transform_of_long_rows_is_the_same_for_any_batching():
    rng = np.random.default_rng(2)
    V = rng.poisson(rng.gamma(0.5, 2.0, (40, 3)) @ rng.gamma(0.5, 2.0, (3, 900)) + 0.5) * 1.0
    model = KLNMF(3, random_state=0).fit(V)
    W = model.transform(V)
    parts = [model.transform(V[at : at + 7]) for at in range(0, 40, 7)]
    np.testing.assert_array_equal(np.vstack(parts), W)
    np.testing.assert_array_equal(model.transform(V[::-1])[::-1], W)
