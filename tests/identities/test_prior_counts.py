# SPDX-License-Identifier: BSD-3-Clause
"""Prior counts of weights and profiles: the posterior mode, its certificate and its invariances."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import xlogy

import oracles
from identities.item_examples import LAYOUTS
from identities.model_examples import RANK, M, N, V, divergence, model
from sipower import KLNMF, Status, Stop, solve
from sipower.nmf import Factorization, Factors, make_solver
from sipower.nmf.prior_counts import PriorCounts
from sipower.nmf.row_sums import RowSums
from sipower.nmf.terms import ModelTerms

KINDS = ("smooth profiles", "guided profiles", "smooth weights", "weak both", "strong weights")
TAKES_PRIORS = ("auto", "ccd", "scd", "newton", "mu", "sci-pi")
C = V.sum(axis=1)


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request):
    return LAYOUTS[request.param]


@pytest.fixture
def x0():
    return Factors(*oracles.factors(N, M, RANK))


def counts(kind):
    """Return b (N, K) and a (M, K), dense."""
    rng = np.random.default_rng(5)
    b, a = np.zeros((N, RANK)), np.zeros((M, RANK))
    if kind == "smooth profiles":
        a += 0.3
    elif kind == "guided profiles":
        a[:4, 0], a[4:6, 1] = 30.0, 5.0
    elif kind == "smooth weights":
        b += 0.2
    elif kind == "weak both":
        b, a = rng.uniform(0, 0.1, b.shape), rng.uniform(0, 0.5, a.shape)
    else:
        b, a = rng.uniform(1, 5, b.shape), rng.uniform(0, 0.1, a.shape)
    return b, a


def prior(kind):
    b, a = counts(kind)
    has_b, has_a = b.any(), a.any()
    rates = b.sum(axis=1) / C
    return PriorCounts(b if has_b else None, rates if has_b else None, a if has_a else None)


def problem_with(kind, layout=np.asarray, **terms):
    return Factorization(layout(V), RANK, ModelTerms(prior=prior(kind), **terms))


def posterior(x, kind):
    """Return D plus the negative logarithms of the Gamma and Dirichlet densities of a model."""
    b, a = counts(kind)
    S = x.H.sum(axis=0)
    weights, profiles = x.W * S, x.H / S
    gamma = (b.sum(axis=1) / C)[:, None] * weights - xlogy(b, weights)
    return divergence(V, 1.0, x) + gamma.sum() - xlogy(a, profiles).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_the_posterior(kind, x0, layout):
    problem = problem_with(kind, layout)
    assert problem.value(x0) == pytest.approx(posterior(x0, kind), rel=1e-12)
    assert problem.without_penalties(problem.value(x0), x0) == pytest.approx(
        divergence(V, 1.0, x0), rel=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_scale_of_a_component_does_not_matter(kind, x0):
    problem, scale = problem_with(kind), np.array([0.01, 3.0, 200.0])
    scaled = Factors(x0.W / scale, x0.H * scale)
    assert problem.value(scaled) == pytest.approx(problem.value(x0), rel=1e-12)
    assert problem.residual(scaled) == pytest.approx(problem.residual(x0), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TAKES_PRIORS)
def test_every_round_descends_to_the_posterior_mode(name, kind, x0, layout):
    problem, values = problem_with(kind, layout), []
    result = solve(
        problem,
        make_solver(name),
        x0,
        stop=Stop(1e-9, rounds=200 if name in ("mu", "sci-pi") else 3000),
        on_state=lambda record, state: values.append(problem.value(state.x)),
    )
    assert (np.diff(values) <= problem.rounding(values[0])).all()
    np.testing.assert_allclose(result.x.H.sum(axis=0), 1, rtol=1e-12)
    if name not in ("mu", "sci-pi"):
        assert result.status is Status.CONVERGED
        assert result.value == pytest.approx(mode_near(result.x, kind), rel=1e-8)


def mode_near(x, kind):
    """Return the smallest posterior that L-BFGS-B finds from x, in logarithms of W and H."""
    b, a = counts(kind)
    rates = (b.sum(axis=1) / C)[:, None]

    def value_and_slope(t):
        W, H = np.exp(t[: N * RANK]).reshape(N, RANK), np.exp(t[N * RANK :]).reshape(M, RANK)
        S, quotient = H.sum(axis=0), 1 - V / (W @ H.T)
        slope_W = W * (quotient @ H + rates * S) - b
        pull = (rates * W).sum(axis=0) + (a.sum(axis=0) - b.sum(axis=0)) / S
        slope_H = H * (quotient.T @ W + pull) - a
        slope = np.concatenate([slope_W.ravel(), slope_H.ravel()])
        return posterior(Factors(W, H), kind), slope

    start = np.log(np.maximum(np.concatenate([x.W.ravel(), x.H.ravel()]), 1e-14))
    options = {"maxiter": 2000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-9}
    return minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_bounds_what_either_factor_can_gain(kind, x0):
    """W changes freely; H changes with the sums of its components, as its profiles do."""
    problem = problem_with(kind)
    x = solve(problem, make_solver("ccd"), x0, stop=Stop(0, rounds=4)).x
    W = problem.half(0, x).solution(1e-13, 3000, start=x.W).h
    gain = problem.value(x) - problem.value(Factors(W, x.H))
    profiles = Factors(x.W, best_profiles(x, counts(kind)[1]))
    gain += problem.value(x) - problem.value(profiles)
    assert gain > 0
    assert gain <= problem.residual(x) * V.sum() * (1 + 1e-9)


def best_profiles(x, a):
    """Return the best H given W with the sums of x.H, by EM: φ ∝ φ∘g + a."""
    H, S = x.H.copy(), x.H.sum(axis=0)
    for _ in range(3000):
        Z = x.W @ H.T
        share = H * (np.divide(V, Z, out=np.zeros_like(V), where=V > 0).T @ x.W) + a
        H = S * share / share.sum(axis=0)
    return H


@pytest.mark.parametrize("kind", ["smooth weights", "weak both", "strong weights"])
def test_prior_counts_leave_the_total_of_every_sample(kind, x0):
    """At the mode, Σ_j (W Hᵀ)_ij = c_i: the rate of the Gamma prior balances its counts."""
    x = solve(problem_with(kind), make_solver("auto"), x0, stop=Stop(1e-12, rounds=3000)).x
    np.testing.assert_allclose((x.W @ x.H.T).sum(axis=1), C, rtol=1e-5)


def test_strong_prior_counts_are_the_limit(x0):
    a = np.random.default_rng(6).uniform(0.5, 1, (M, RANK))
    terms = ModelTerms(prior=PriorCounts(columns=1e9 * a))
    x = solve(Factorization(V, RANK, terms), make_solver("auto"), x0, stop=Stop(1e-9)).x
    np.testing.assert_allclose(x.H, a / a.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exposure", ["weights", "batches", "both"])
def test_prior_counts_beside_weights_and_batch_effects(kind, exposure, x0, layout):
    problem, data, X = model(exposure, layout)
    terms = ModelTerms(problem.terms.exposure, prior=prior(kind))
    problem, values = Factorization(problem.V, RANK, terms), []
    penalty = posterior(x0, kind) - divergence(V, 1.0, x0)
    assert problem.value(x0) == pytest.approx(divergence(data, X, x0) + penalty, rel=1e-9)
    result = solve(
        problem,
        make_solver("auto"),
        x0,
        stop=Stop(1e-8, rounds=3000),
        on_state=lambda record, state: values.append(problem.value(state.x)),
    )
    assert result.status is Status.CONVERGED
    assert (np.diff(values) <= problem.rounding(values[0])).all()


def test_fixed_entries_keep_their_values_beside_prior_counts(x0):
    fixed = np.zeros((M, RANK), bool)
    fixed[:, 0], fixed[3:6, 1] = True, True
    values = np.where(np.arange(RANK) == 0, x0.H * 7, 0.0)
    b, a = counts("weak both")
    part = PriorCounts(b, b.sum(axis=1) / C, np.where(fixed, 0, a))
    problem = Factorization(V, RANK, ModelTerms(fixed=fixed, values=values, prior=part))
    result = solve(problem, make_solver("auto"), stop=Stop(1e-8, rounds=3000))
    assert result.status is Status.CONVERGED
    np.testing.assert_array_equal(result.x.H[:, 0], values[:, 0])
    assert (result.x.H[3:6, 1] == 0).all()
    np.testing.assert_allclose(result.x.H[:, 1:].sum(axis=0), 1, rtol=1e-12)


def test_penalties_that_depend_on_the_scale_are_refused():
    with pytest.raises(ValueError, match="`prior` excludes `l1` and `ridge`"):
        ModelTerms(prior=prior("weak both"), ridge=(0.1, 0.0))


# ---- multipliers -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_multipliers_leave_every_feature_a_bound(kind, x0):
    """d + μ ≥ (g + a/S)/2 at every point, also where g is infinite and H is zero.

    Components without prior counts are not constrained; their weights have rates.
    """
    b, a = counts(kind)
    prior = PriorCounts(b, b.sum(axis=1) / C, a if a.any() else None)
    H = np.array(x0.H)
    g, d = (V / (x0.W @ H.T)).T @ x0.W, x0.W.sum(axis=0)
    H[0, 0], g[0, 0] = 0, np.inf
    fixed = np.zeros(H.shape, bool)
    fixed[0, 0] = True
    rates = (b.sum(axis=1) / C) @ x0.W
    sums = RowSums(None, np.vstack([rates, b.sum(axis=0), np.zeros((2, RANK))]))
    has_counts = (a + b.mean(axis=0)).any(axis=0)
    for given in (None, fixed):
        mu = prior.multipliers(H, g, d, sums, given)
        assert np.isfinite(mu).all()
        assert (mu == rates)[~has_counts].all()
        free = np.isfinite(g) & has_counts
        least = (g + a / H.sum(axis=0)) / 2
        assert ((d + mu) * (1 + 1e-12) >= least)[free].all()


@pytest.mark.parametrize("solver", TAKES_PRIORS[:5])
def test_no_profile_with_prior_counts_loses_an_entry(solver):
    """Not even in float32, where a step down by many orders of magnitude hides its remainder."""
    huge = np.zeros((2, 8), np.float32)
    huge[0, 5:7], huge[1, 1:3] = (2.7667e9, 1.7884e12), (7.8759e8, 2.27885e6)
    for seed in range(20):
        fitted = KLNMF(
            3, solver=solver, init="random", random_state=seed, prior_H=1.0, dtype=np.float32,
            max_iter=2, tol=0, n_jobs=1,
        ).fit(huge)  # fmt: skip
        assert (fitted.components_ > 0).all()
        assert np.isfinite(fitted.kl_divergence_)
