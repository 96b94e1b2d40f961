# SPDX-License-Identifier: BSD-3-Clause
"""The mathematics of the KL block: identities that hold to rounding, and what convergence means."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import Guarded, SciPi, SSciPi, Stop, as_matrix, solve
from sipower.data.memory import SCHEMES
from sipower.kernels import Draw
from sipower.nmf import (
    MU,
    Alternating,
    Factorization,
    Factors,
    Half,
    OnBlock,
    SciPiRule,
    SSciPiRule,
)
from sipower.nmf.rule import Turn
from sipower.problems import KLBlock, Sampling
from sipower.solvers.state import PointState

TURN = Turn(step=1.0, seed=3, round=2, side=1)


def positive(n=9, m=14, rank=4, seed=0):
    """A block without empty items, its factor, and the same by the oracle's names."""
    rng = np.random.default_rng(seed)
    V = rng.poisson(3.0, (n, m)) + rng.integers(0, 2, (n, m)) * 1.0
    V[:, 0] += 1
    W, H = oracles.factors(n, m, rank, seed)
    return V, H, W


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
    found = MU().update(block, W, TURN)
    np.testing.assert_allclose(found, oracles.factor(V, H, X * oracles.multiplier(V, H, X)), 1e-12)
    np.testing.assert_allclose(found @ H.sum(axis=0), V.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("step", [1.0, 0.5, 0.1, 1.7])
def test_sci_pi_is_the_squared_multiplier_rescaled_to_the_mass(step, layout):
    V, H, W = positive()
    block = KLBlock(layout(V), H)
    fitted = block.scale_to_mass(W)
    expected = fitted * np.maximum(1 - step + step * block.multiplier(W), 0) ** 2
    expected *= (V.sum(axis=1) / (expected @ H.sum(axis=0)))[:, None]
    found = SciPiRule(step).update(block, W, TURN._replace(step=step))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("rule", [MU(), SciPiRule(), SciPiRule(0.5)])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_rules_by_sums_equal_rules_by_items(layout, rule):
    V = oracles.counts(23, 31)
    W, H = oracles.factors(23, 31, 5)
    rows_only = KLBlock(as_matrix(layout(V), transposable=False).columns, W)
    both = KLBlock(as_matrix(layout(V)).T, W)
    turn = TURN._replace(step=rule.step)
    np.testing.assert_allclose(
        rule.update(rows_only, H, turn), rule.update(both, H, turn), rtol=1e-10, atol=1e-13
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


# ---- S-SCI-PI ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_full_batch_is_the_full_method(step):
    """s = N: an epoch of m steps is m (damped) SCI-PI steps, for any anchor."""
    V, H, W = positive()
    block = KLBlock(V, H)
    state = PointState(block.to_sphere(W), step, seed=0)
    epoch = SSciPi(step, batch=1.0, epoch=6, threshold=0).advance(block, state)
    expected = state
    for _ in range(6):
        expected = SciPi(step).advance(block, expected)
    np.testing.assert_allclose(epoch.x, expected.x, rtol=1e-10)
    for layout, scheme in itertools.product((np.asarray, sp.csr_array), (None, "stratified")):
        rule = SSciPiRule(step, batch=1.0, epoch=6, threshold=0, shortest=0, scheme=scheme)
        fused = rule.update(KLBlock(layout(V), H), W, TURN._replace(step=step))
        np.testing.assert_allclose(fused, block.from_sphere(expected.x), rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_one_inner_step_does_not_depend_on_the_batch(seed):
    V, H, W = positive()
    block = KLBlock(V, H)
    x = block.to_sphere(W)
    full = SciPi(0.7).advance(block, PointState(x, 0.7, 0)).x
    one = SSciPi(0.7, batch=0.2, epoch=1).advance(block, PointState(x, 0.7, seed)).x
    np.testing.assert_allclose(one, full, rtol=1e-12)
    # Without the shortcut at t = 0: the two batch gradients at the anchor are one and the same.
    S = block.batch(Sampling(0.2), Draw(seed))
    np.testing.assert_array_equal(block.gradient(x, S), block.gradient(x.copy(), S))


def test_scaling_iterate_and_anchor_changes_no_direction():
    """Algorithm 1 with unnormalised x_t and x₀, written out, against the normalised form."""
    V, H, W = positive(n=1)
    block = KLBlock(V, H)
    y0 = block.to_sphere(W)
    rng = np.random.default_rng(1)
    y = block.normalise(y0 + 0.1 * rng.random(y0.shape))
    S = block.batch(Sampling(0.3), Draw(5))
    eta, p = 0.4, 0.0

    def step(x, anchor):
        alpha = abs((x * anchor).sum()) ** (p - 1) / np.linalg.norm(anchor) ** (2 * (p - 1))
        g = (
            alpha * block.gradient(anchor)
            + block.gradient(x, S)
            - alpha * block.gradient(anchor, S)
        )
        out = (1 - eta) * x + eta * g / np.linalg.norm(x) ** (p - 2)
        return out / np.linalg.norm(out)

    expected = step(y, y0)
    for a, b in ((2.5, 1.0), (1.0, 0.3), (1.7, 4.0)):
        np.testing.assert_allclose(step(a * y, b * y0), expected, rtol=1e-12)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("scheme", ["elements", "stratified", "weighted"])
@pytest.mark.parametrize("layout", [sp.csr_array, np.asarray])
def test_fused_sparse_epoch_is_algorithm_1(layout, scheme, replace):
    """The fused kernel draws the same batches as the readable solver and takes the same steps."""
    V = oracles.counts(30, 80, density=0.5)
    W, H = oracles.factors(30, 80, 5)
    rule = SSciPiRule(0.5, batch=0.3, epoch=5, scheme=scheme, replace=replace, shortest=0)
    compare_with_generic(layout(V), H, W, rule, 1e-10)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 19, 20, 63, 65, 200])
def test_fused_dense_epoch_is_algorithm_1(rank, replace):
    V = oracles.counts(30, 250, density=0.5)
    W, H = oracles.factors(30, 250, rank)
    rule = SSciPiRule(0.5, batch=0.5, epoch=4, replace=replace)
    compare_with_generic(V, H, W, rule, 1e-10)


@pytest.mark.parametrize("rank", [1, 2, 19, 20, 63, 65, 200])
def test_fused_sparse_epoch_over_ranks(rank):
    V = oracles.counts(30, 250, density=0.5)
    W, H = oracles.factors(30, 250, rank)
    rule = SSciPiRule(0.5, batch=0.5, epoch=4, shortest=0)
    compare_with_generic(sp.csr_array(V), H, W, rule, 1e-10)


@pytest.mark.parametrize("layout", [sp.csr_array, np.asarray])
def test_fused_epoch_in_float32(layout):
    V = oracles.counts(30, 250)
    W, H = oracles.factors(30, 250, 20)
    rule = SSciPiRule(0.5, batch=0.5, epoch=4, shortest=0)
    single = rule.update(
        KLBlock(as_matrix(layout(V), dtype=np.float32), H), W.astype(np.float32), TURN
    )
    double = rule.update(KLBlock(as_matrix(layout(V)), H), W, TURN)
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-4 * double.max())


def compare_with_generic(V, H, W, rule, rtol):
    block = KLBlock(V, H)
    turn = TURN._replace(step=rule.step)
    fused = rule.update(block, W, turn)
    plan = rule.plan(block.V, H.shape[1])
    generic = rule._generic(block, W, turn, plan)
    scale = block.c[:, None] / block.d
    np.testing.assert_allclose(
        fused / scale.clip(1e-300), generic / scale.clip(1e-300), rtol, 1e-13
    )


# ---- unbiased batches, by enumeration ----------------------------------------------------------


def subset_mean(block, y, scheme):
    """Mean of ∇f_S(y) over all batches of the scheme, each weighted by its probability."""
    V, B = block.V.array, block.B
    n = V.shape[1]
    total, weight = np.zeros_like(y), 0.0
    if scheme == "vectors":
        for pair in itertools.combinations(range(n), 2):
            part = KLBlock(
                np.ascontiguousarray(V[:, pair]) * n / 2, B[list(pair)], c=block.c, d=block.d
            )
            total += block.gradient(y, part)
            weight += 1
    else:
        positions = np.argwhere(V > 0)
        for pair in itertools.combinations(range(len(positions)), 2):
            part = np.zeros_like(V)
            for at in pair:
                part[tuple(positions[at])] = V[tuple(positions[at])] * len(positions) / 2
            total += block.gradient(y, KLBlock(part, B, c=block.c, d=block.d))
            weight += 1
    return total / weight


@pytest.mark.parametrize("scheme", ["vectors", "elements"])
def test_mean_over_all_batches_is_the_gradient(scheme):
    V, H, W = positive(n=3, m=7, rank=3)
    block = KLBlock(V, H)
    y = block.to_sphere(W)
    np.testing.assert_allclose(subset_mean(block, y, scheme), block.gradient(y), rtol=1e-12)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_sampled_matrix_is_unbiased(scheme, replace):
    """E[V_S] = V for every scheme, so every batch gradient is unbiased (it is linear in V_S)."""
    V = np.array([[1.0, 2, 3, 4, 5, 6, 9], [3, 0, 1, 0, 0, 2, 0]])
    matrix = as_matrix(sp.csr_array(V))
    draws = 30_000
    mean = np.zeros_like(V)
    for r in range(draws):
        part, others = matrix.sample(scheme, 2 / 7, Draw(4, round=r), replace=replace)
        dense = part.array.toarray()
        if others is None:
            mean += dense
        else:
            np.add.at(mean.T, others, dense.T)
    np.testing.assert_allclose(mean / draws, V, atol=0.05 * V.max() / np.sqrt(3))


def test_sums_only_sample_is_unbiased():
    """Where only rows are held, a batch of rows has the gradient of all rows as its mean."""
    V, _, W = positive(n=6, m=4, rank=3)
    H = oracles.factors(6, 4, 3)[1]
    block = KLBlock(as_matrix(V, transposable=False).columns, W)
    y = block.to_sphere(H)
    seen = {}
    for r in range(400):
        draw = Draw(2, round=r)
        seen.setdefault(
            tuple(sorted(draw.batch(6, 2))), block.gradient(y, block.batch(Sampling(1 / 3), draw))
        )
    assert len(seen) == 15
    np.testing.assert_allclose(np.mean(list(seen.values()), axis=0), block.gradient(y), rtol=1e-12)


# ---- convergence, bounds, certificates ---------------------------------------------------------


def test_disjoint_topics_cycle_and_damping_cures_it():
    """L = I, v = (.8, .2): SCI-PI has a 2-cycle, η = ½ converges, and so does the guarded one."""
    block = KLBlock(np.array([[0.8, 0.2]]), np.eye(2))
    y = np.sqrt(np.array([[0.5, 0.5]]))
    once = SciPi().advance(block, PointState(y, 1.0, 0)).x
    twice = SciPi().advance(block, PointState(once, 1.0, 0)).x
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
    found = solve(Half(block), OnBlock(SciPiRule()), W, stop=Stop(1e-11, rounds=100_000)).x
    for j in range(4):
        z = H @ found[j]
        best = oracles.best_item(V[j], H)[0]
        assert (z - V[j] * np.log(z)).sum() == pytest.approx(best, rel=1e-8)


def test_lemma_9_round_trip():
    V, H, W = positive()
    block = KLBlock(V, H)
    fitted = block.scale_to_mass(W)
    np.testing.assert_allclose(block.from_sphere(block.to_sphere(W)), fitted, rtol=1e-12)
    np.testing.assert_allclose((block.to_sphere(W) ** 2).sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(block.to_sphere(W) ** 2, oracles.simplex(V, H, W), rtol=1e-12)


def test_exact_alternation_solves_each_half():
    V = oracles.counts(25, 20)
    problem = Factorization(V, 3)
    exact = Alternating(SciPiRule(), tol=1e-7, most=5000)
    state = exact.advance(problem, exact.init(problem, None, 0))
    gap_w = problem.half(0, state.x).gaps(state.W).sum() / V.sum()
    assert gap_w <= 1e-7
    assert state.passes > 20
