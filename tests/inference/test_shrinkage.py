# SPDX-License-Identifier: BSD-3-Clause
"""Adaptive shrinkage: the proportions are optimal, the posterior is that of Bayes' theorem."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from sipower.inference.shrinkage import shrink

RNG = np.random.default_rng(0)
EFFECTS = np.where(RNG.random(400) < 0.6, 0.0, RNG.normal(0, 2.0, 400))
ERRORS = RNG.uniform(0.2, 1.5, 400)
ESTIMATES = EFFECTS + RNG.normal(0, ERRORS)
RESULT = shrink(ESTIMATES, ERRORS)


def likelihood(scales):
    return norm.pdf(ESTIMATES[:, None], 0, np.sqrt(ERRORS[:, None] ** 2 + scales**2))


def test_the_proportions_are_those_of_a_direct_convex_solution():
    """Both likelihoods agree to 1e-6; the certificate bounds what is missing."""
    L = likelihood(RESULT.scales)
    K = L.shape[1]

    def value_and_slope(p):
        z = L @ p
        return -np.log(z).mean(), -(L / z[:, None]).mean(axis=0)

    direct = minimize(
        value_and_slope, np.full(K, 1 / K), jac=True, method="SLSQP", bounds=[(0, 1)] * K,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(K)},
        options={"maxiter": 2000, "ftol": 1e-14},
    )  # fmt: skip
    ours = value_and_slope(RESULT.proportions)[0]
    assert RESULT.proportions.sum() == pytest.approx(1)
    assert ours == pytest.approx(direct.fun, abs=1e-6)
    assert ours - direct.fun <= RESULT.gap + 1e-9
    assert RESULT.gap <= 1e-8
    posterior_direct = posterior_mean(direct.x, L)
    np.testing.assert_allclose(RESULT.mean, posterior_direct, atol=1e-3)


def posterior_mean(proportions, L):
    weights = L * proportions / (L @ proportions)[:, None]
    shrinkage = RESULT.scales**2 / (ERRORS[:, None] ** 2 + RESULT.scales**2)
    return (weights * shrinkage).sum(axis=1) * ESTIMATES


@pytest.mark.parametrize("j", range(0, 400, 57))
def test_the_posterior_is_that_of_bayes_theorem(j):
    """Mean, false sign rate and interval by numerical integration of the posterior density."""
    scales, proportions = RESULT.scales[1:], RESULT.proportions[1:]
    null = RESULT.proportions[0] * norm.pdf(ESTIMATES[j], 0, ERRORS[j])

    def density(b):
        return (proportions * norm.pdf(b, 0, scales)).sum() * norm.pdf(ESTIMATES[j], b, ERRORS[j])

    edges = np.array([-40, -5, -1, -0.1, 0, 0.1, 1, 5, 40.0])
    pieces = [quad(density, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(edges)]
    total = null + sum(pieces)
    below, above = sum(pieces[:4]) / total, sum(pieces[4:]) / total
    assert RESULT.false_sign[j] == pytest.approx(null / total + min(below, above), abs=1e-6)
    moments = [
        quad(lambda b: b * density(b), a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(edges)
    ]
    assert RESULT.mean[j] == pytest.approx(sum(moments) / total, abs=1e-6)


def test_intervals_have_their_probability():
    """They contain the mean, grow with their level, and cover the effects."""
    assert (RESULT.lower <= RESULT.mean).all()
    assert (RESULT.mean <= RESULT.upper).all()
    narrow = shrink(ESTIMATES, ERRORS, level=0.5)
    assert (narrow.upper - narrow.lower <= RESULT.upper - RESULT.lower).all()
    covered = (RESULT.lower <= EFFECTS) & (RESULT.upper >= EFFECTS)
    assert 0.92 <= covered.mean() <= 0.99


def test_estimates_shrink_towards_zero_and_keep_their_sign():
    assert (np.abs(RESULT.mean) <= np.abs(ESTIMATES)).all()
    assert (RESULT.mean * ESTIMATES >= 0).all()
    hits = RESULT.false_sign <= 0.05
    assert hits.sum() > 30
    assert (np.sign(RESULT.mean[hits]) != np.sign(EFFECTS[hits])).mean() <= 0.05


def test_pure_noise_shrinks_to_nothing():
    noise = np.random.default_rng(1).normal(0, 0.5, 2000)
    result = shrink(noise, np.full(2000, 0.5))
    assert np.abs(result.mean).max() < 0.2
    assert (result.false_sign > 0.05).all()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_units_do_not_matter(scale):
    result = shrink(scale * ESTIMATES, scale * ERRORS)
    np.testing.assert_allclose(result.mean / scale, RESULT.mean, rtol=1e-4, atol=1e-6)


def test_one_estimate_and_equal_estimates_are_finite():
    for estimates, errors in (([0.3], [0.1]), ([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])):
        result = shrink(np.array(estimates), np.array(errors))
        assert np.isfinite(np.concatenate([result.mean, result.lower, result.upper])).all()
