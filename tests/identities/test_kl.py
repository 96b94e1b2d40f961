# SPDX-License-Identifier: BSD-3-Clause
"""The mathematics of the KL block: identities that hold to rounding, bounds, certificates."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from identities.kl_examples import HALF_STEP, positive
from sipower import Guarded, SciPi, Stop, as_matrix, solve
from sipower.nmf import (
    MU,
    Alternating,
    Factorization,
    Factors,
    Half,
    OnBlock,
    SciPiRule,
)
from sipower.problems import KLBlock
from sipower.solvers.state import PointState

# ---- the multiplier and its invariant ----------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 7.3, 1e-4])
def test_weighted_multipliers_sum_to_one(scale):
    """Σ_k X_k G_k = 1 for any positive X, normalised or not."""
    V, H, W = positive()
    G = KLBlock(V, H).multiplier(W * scale)
    X = oracles.simplex(V, H, W)
    np.testing.assert_allclose((X * G).sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(G, oracles.multiplier(V, H, X), rtol=1e-12)


def test_multiplier_is_that_of_multiplicative_updates():
    """With fitted masses G = Wᵀ(V ⊘ WH) ⊘ colsum(W)."""
    V, H, W = positive()
    block = KLBlock(V, H)
    W = block.scale_to_mass(W)
    expected = (V / (W @ H.T)) @ H / H.sum(axis=0)
    np.testing.assert_allclose(block.multiplier(W), expected, rtol=1e-12)


# ---- rules in closed form ----------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_mu_is_em_and_keeps_the_mass(layout):
    V, H, W = positive()
    block = KLBlock(layout(V), H)
    X = oracles.simplex(V, H, W)
    result = MU().update(block, W, HALF_STEP)
    np.testing.assert_allclose(result, oracles.factor(V, H, X * oracles.multiplier(V, H, X)), 1e-12)
    np.testing.assert_allclose(result @ H.sum(axis=0), V.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("step", [1.0, 0.5, 0.1, 1.7])
def test_sci_pi_is_the_squared_multiplier_rescaled_to_the_mass(step, layout):
    V, H, W = positive()
    block = KLBlock(layout(V), H)
    scaled = block.scale_to_mass(W)
    expected = scaled * np.maximum(1 - step + step * block.multiplier(W), 0) ** 2
    expected *= (V.sum(axis=1) / (expected @ H.sum(axis=0)))[:, None]
    result = SciPiRule(step).update(block, W, HALF_STEP._replace(step=step))
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("rule", [MU(), SciPiRule(), SciPiRule(0.5)])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_rules_by_sums_equal_rules_by_items(layout, rule):
    V = oracles.counts(23, 31)
    W, H = oracles.factors(23, 31, 5)
    rows_only = KLBlock(as_matrix(layout(V), rows_only=True).columns, W)
    both = KLBlock(as_matrix(layout(V)).T, W)
    half_step = HALF_STEP._replace(step=rule.step)
    np.testing.assert_allclose(
        rule.update(rows_only, H, half_step),
        rule.update(both, H, half_step),
        rtol=1e-10,
        atol=1e-13,
    )


def test_mu_never_raises_the_divergence():
    V = oracles.counts(40, 30)
    result = solve(Factorization(V, 5), Alternating(MU()), stop=Stop(0, rounds=200), trace="every")
    values = np.array([record.objective for record in result.trace])
    assert (np.diff(values) <= 1e-12 * V.sum()).all()


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_quick_value_is_the_value_to_rounding(layout, scale):
    V = oracles.counts(300, 200) * scale
    x = Factors(*(f * np.sqrt(scale) for f in oracles.factors(300, 200, 9)))
    for dtype in (np.float64, np.float32):
        problem = Factorization(as_matrix(layout(V.astype(dtype))), 9)
        point = Factors(*(f.astype(dtype) for f in x))
        value = problem.value(point)
        assert abs(problem.quick_value(point) - value) <= problem.rounding(value) / 8


# ---- convergence, bounds, certificates ---------------------------------------------------------


def test_disjoint_topics_cycle_and_damping_cures_it():
    """L = I, v = (.8, .2): SCI-PI has a 2-cycle, η = ½ converges, and so does the guarded one."""
    block = KLBlock(np.array([[0.8, 0.2]]), np.eye(2))
    y = np.sqrt(np.array([[0.5, 0.5]]))
    once = SciPi().advance(block, PointState(y, step=1.0, seed=0)).x
    twice = SciPi().advance(block, PointState(once, step=1.0, seed=0)).x
    np.testing.assert_allclose(once**2, [[16 / 17, 1 / 17]], rtol=1e-12)
    np.testing.assert_allclose(twice**2, [[0.5, 0.5]], rtol=1e-12)
    damped = solve(block, SciPi(0.5), y, stop=Stop(0, rounds=5)).x
    np.testing.assert_allclose(damped**2, [[0.8, 0.2]], atol=1e-12)


def test_guarded_alternation_converges_where_the_plain_one_cycles():
    V = np.diag([8.0, 2.0, 5.0])
    x0 = (np.full((3, 3), 0.5) + np.eye(3) * 0.3, np.full((3, 3), 0.5) + np.eye(3)[::-1] * 0.2)
    result = solve(
        Factorization(V, 3), Guarded(Alternating(SciPiRule())), x0, stop=Stop(1e-9, rounds=3000)
    )
    assert result.residual <= 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_gain_is_bounded_below_by_jensen(seed):
    """gain ≥ Σv (Σ xG log w − log Σ xw) for every multiplier w, and 2D₁ ≥ D₂ ⇒ no decrease."""
    V, H, W = positive(seed=seed)
    X = oracles.simplex(V, H, W)
    G = KLBlock(V, H).multiplier(W)
    before, c = oracles.log_likelihood(V, H, X), V.sum(axis=1)
    for w in (G, G**2, ((1 + G) / 2) ** 2, G**3):
        new = X * w / (X * w).sum(axis=1, keepdims=True)
        gain = oracles.log_likelihood(V, H, new) - before
        bound = c * ((X * G * np.log(w)).sum(axis=1) - np.log((X * w).sum(axis=1)))
        assert (gain >= bound - 1e-10 * c).all()
    D1, D2 = (X * G * np.log(G)).sum(axis=1), np.log((X * G**2).sum(axis=1))
    squared = X * G**2 / (X * G**2).sum(axis=1, keepdims=True)
    gain = oracles.log_likelihood(V, H, squared) - before
    assert (gain[2 * D1 >= D2] >= -1e-10 * c[2 * D1 >= D2]).all()


def test_one_round_of_sci_pi_is_worth_two_of_mu():
    """On a slow problem |F(SCI-PI, T) − F(MU, 2T)| ≤ 10 % of F* − F(MU, 2T)."""
    rng = np.random.default_rng(3)
    B = rng.random((400, 8)) + 2.0  # nearly parallel columns: slow
    V = rng.poisson(5 * (rng.random((6, 8)) @ B.T)).astype(float)
    half, W = Half(KLBlock(V, B)), rng.random((6, 8)) + 0.1
    best = solve(half, OnBlock(SciPiRule()), W, stop=Stop(1e-12, rounds=200_000)).value
    for T in (10, 20, 40, 80):
        power = solve(half, OnBlock(SciPiRule()), W, stop=Stop(0, rounds=T)).value
        mu = solve(half, OnBlock(MU()), W, stop=Stop(0, rounds=2 * T)).value
        assert abs(power - mu) <= 0.1 * (mu - best)


@pytest.mark.parametrize("seed", range(10))
def test_certificate_bounds_the_true_gap(seed):
    """c_j (max_k G − 1) ≥ D_j − D_j* ≥ 0, with D* by L-BFGS-B on the original problem."""
    V, H, W = positive(n=3, seed=seed)
    block = KLBlock(V, H)
    for rounds in (0, 3, 30):
        h = solve(Half(block), OnBlock(MU()), W, stop=Stop(0, rounds=rounds)).x
        for scale in (1.0, 3.0, 0.01):  # the bound is for the point as it is, off its mass too
            for j in range(3):
                z = H @ h[j] * scale
                gap = (z - V[j] * np.log(z)).sum() - oracles.best_item(V[j], H)[0]
                assert -1e-9 * V[j].sum() <= gap
                assert gap <= block.gaps(h * scale)[j] + 1e-9 * V[j].sum()


def test_exact_halves_reach_the_optimum_of_the_original_problem():
    V, H, W = positive(n=4)
    block = KLBlock(V, H)
    result = solve(Half(block), OnBlock(SciPiRule()), W, stop=Stop(1e-11, rounds=100_000)).x
    for j in range(4):
        z = H @ result[j]
        best = oracles.best_item(V[j], H)[0]
        assert (z - V[j] * np.log(z)).sum() == pytest.approx(best, rel=1e-8)


def test_lemma_9_round_trip():
    V, H, W = positive()
    block = KLBlock(V, H)
    scaled = block.scale_to_mass(W)
    np.testing.assert_allclose(block.from_sphere(block.to_sphere(W)), scaled, rtol=1e-12)
    np.testing.assert_allclose((block.to_sphere(W) ** 2).sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(block.to_sphere(W) ** 2, oracles.simplex(V, H, W), rtol=1e-12)


def test_exact_alternation_solves_each_half():
    V = oracles.counts(25, 20)
    problem = Factorization(V, 3)
    exact = Alternating(SciPiRule(), tol=1e-7, max_updates=5000)
    state = exact.advance(problem, exact.init(problem, None, 0))
    gap_w = problem.half(0, state.x).gaps(state.W).sum() / V.sum()
    assert gap_w <= 1e-7
    assert state.passes > 20
