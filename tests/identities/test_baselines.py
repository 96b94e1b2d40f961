# SPDX-License-Identifier: BSD-3-Clause
"""Coordinate descent, projected gradient and exact items against their formulas."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import Stop, as_matrix, solve
from sipower.nmf import (
    CCD,
    MU,
    PGD,
    RULES,
    SCD,
    Alternating,
    Extrapolated,
    Factorization,
    Half,
    Newton,
    OnBlock,
)
from sipower.nmf.pgd import projected_step
from sipower.nmf.rule import HalfStep
from sipower.problems import KLBlock

HALF_STEP = HalfStep(step=1.0, seed=3, round=2, side=1)
LAYOUTS = [np.asarray, sp.csr_array]


def example(n=7, m=150, rank=5, seed=0):
    V = oracles.counts(n, m, seed=seed)
    W, H = oracles.factors(n, m, rank, seed)
    keep = V.sum(1) > 0
    return V[keep], H, W[keep]


def coordinate_by_formula(block, h, k):
    """CCD's coordinate as a projected gradient step with α_k = t/Σ v b²/z², h given per item."""
    V, B = block.V.array if block.V.dense else block.V.array.toarray(), block.B
    z = h @ B.T
    ratio = np.where(V > 0, B[:, k] / z, 0)
    curvature = (V * ratio**2).sum(1)
    newton = (B[:, k].sum() - (V * ratio).sum(1)) / curvature
    damping = np.where(newton > 0, 1 / (1 + ratio.max(1) * newton), 1)
    alpha = np.zeros_like(h)
    alpha[:, k] = damping / curvature
    return projected_step(block, h, alpha)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ccd_is_a_sequence_of_projected_gradient_steps(layout):
    V, H, W = example()
    block = KLBlock(layout(V), H)
    expected = block.scale_to_mass(W)
    for k in range(5):
        expected = coordinate_by_formula(block, expected, k)
    np.testing.assert_allclose(CCD().update(block, W, HALF_STEP), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_active_sweeps_leave_out_the_zeros_that_stay(layout):
    V, H, W = example()
    block = KLBlock(layout(V), H)
    W[:, 1:3] = 0
    scaled = block.scale_to_mass(W)
    active = (scaled > 0) | (block.ratio_sums(scaled) > block.d)
    expected = scaled
    for k in [*range(5)] * 2:
        stepped = coordinate_by_formula(block, expected, k)
        expected = np.where(active[:, [k]], stepped, expected)
    assert not active.all()
    result = CCD(2, "active").update(block, W, HALF_STEP)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mu_is_a_projected_gradient_step(layout):
    V, H, W = example()
    block = KLBlock(layout(V), H)
    scaled = block.scale_to_mass(W)
    step = projected_step(block, scaled, scaled / block.d)
    np.testing.assert_allclose(MU().update(block, W, HALF_STEP), step, rtol=1e-12)


@pytest.mark.parametrize("rule", [CCD(), SCD(), PGD(), CCD(sweeps=3), CCD(2, "active")])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_step_descends(rule, layout, dtype):
    V, H, _ = example()
    block = KLBlock(as_matrix(layout(V), dtype=dtype), H)
    h = np.full((len(V), 5), 1e-3, dtype)
    h[:, 0] = 5  # far from the optimum: undamped Newton steps would leave the domain
    before = block.divergence(block.scale_to_mass(h))
    for t in range(12):
        h = rule.update(block, h, HALF_STEP._replace(round=t))
        after = block.divergence(h)
        assert after <= before + 8 * np.finfo(dtype).eps * (V.sum() + before)
        before = after


@pytest.mark.parametrize("rule", [CCD(), SCD(), PGD(), CCD(2, "active")])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_optimum_of_the_original_problem_is_reached(rule, layout):
    V, H, W = example(n=4)
    block = KLBlock(layout(V), H)
    result = solve(Half(block), OnBlock(rule), W, stop=Stop(1e-9, rounds=20_000))
    assert result.residual <= 1e-9
    for j in range(len(V)):
        z = H @ result.x[j]
        best = oracles.best_item(V[j], H)[0]
        assert (z - V[j] * np.log(z)).sum() == pytest.approx(best, rel=1e-8, abs=1e-8 * V.sum())


def test_cancelling_terms_never_reach_zero():
    """A term met by one component only: an undamped step down would make its z negative."""
    V = np.array([[1.0, 100.0]])
    B = np.array([[1e-4, 0.0], [1.0, 1.0]])
    block = KLBlock(V, B)
    h = np.array([[90.0, 90.0]])
    for rule in (CCD(), SCD(), PGD()):
        x = h
        for t in range(200):
            x = rule.update(block, x, HALF_STEP._replace(round=t))
            assert np.isfinite(block.divergence(x))
        assert block.gaps(x).sum() < 1e-6 * V.sum() or isinstance(rule, PGD)


def test_random_order_is_drawn_from_the_key():
    V, H, W = example()
    block = KLBlock(V, H)
    a, b, c = (SCD().update(block, W, HALF_STEP._replace(seed=s)) for s in (1, 1, 2))
    assert a.tobytes() == b.tobytes()
    assert a.tobytes() != c.tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rank", [1, 2, 19, 20, 63, 65, 200])
def test_exact_items_are_certified(layout, rank):
    V = oracles.counts(25, 90, rank=6)
    H = oracles.factors(25, 90, rank)[1]
    block = KLBlock(layout(V), H)
    h, reached, _ = block.solution(1e-9)
    assert reached.max() <= 1e-9
    assert block.gaps(h).sum() <= 2e-9 * V.sum()
    assert (h[V.sum(1) == 0] == 0).all()


def test_exact_items_of_hard_bases():
    """Equal columns, zero columns, disjoint supports, tiny and huge scales."""
    V = oracles.counts(20, 30) + 1
    base = oracles.factors(20, 30, 4)[1]
    bases = {
        "equal columns": base[:, [0, 0, 1, 1, 2]],
        "zero column": np.column_stack([base, np.zeros(30)]),
        "disjoint": np.repeat(np.eye(3), 10, axis=0) + 1e-300,
        "tiny": base * 1e-150,
        "huge": base * 1e150,
        "sparse": np.where(base > 0.6, base, 1e-9),
    }
    for name, H in bases.items():
        h, reached, _ = KLBlock(V, H).solution(1e-7)
        assert np.isfinite(h).all(), name
        assert reached.max() <= 1e-7, name


@pytest.mark.parametrize("name", ["ccd", "scd"])
def test_coordinate_descent_needs_far_fewer_passes_than_mu(name):
    V = oracles.counts(80, 60, rank=5)
    problem = Factorization(V, 5)
    start = solve(problem, Alternating(MU()), stop=Stop(0, rounds=5)).x
    mu = solve(problem, Alternating(MU()), start, stop=Stop(1e-3, rounds=20_000))
    cd = solve(problem, Alternating(RULES[name]()), start, stop=Stop(1e-3, rounds=20_000))
    assert cd.residual <= 1e-3
    assert cd.passes <= mu.passes / 4


# ---- Newton, extrapolation ---------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_newton_descends_to_the_solution_of_every_item(layout):
    V, B = oracles.counts(40, 70, density=0.5), oracles.factors(40, 70, 6)[1]
    block = KLBlock(layout(V), B)
    h, before = np.ones((40, 6)), None
    for _ in range(25):
        h = Newton().update(block, h, HalfStep(1.0, 0, 0, 0))
        after = oracles.divergence(V, h, B)
        assert before is None or after <= before * (1 + 1e-12)
        before = after
    exact = block.solution(1e-12).h
    assert after == pytest.approx(oracles.divergence(V, exact, B), rel=1e-8)
    assert block.gaps(h).sum() <= 1e-5 * V.sum()


def test_a_newton_step_is_that_of_its_formula():
    """One item, interior: h + t p with p = −H⁻¹r and t ≤ 1 at which D no longer falls along p."""
    rng = np.random.default_rng(3)
    B, v = np.tile(np.eye(3), (3, 1)) + 0.1 * rng.random((9, 3)), rng.poisson(30, 9) + 5.0
    block = KLBlock(v[None], B)
    h = block.scale_to_mass(rng.random((1, 3)) + 1)[0]
    z, d = B @ h, B.sum(axis=0)
    r, H = d - B.T @ (v / z), (B.T * (v / z**2)) @ B
    p = -np.linalg.solve(H, r)
    assert (h + p > 0).all()  # the model's minimum is interior
    new = Newton().update(block, h[None], HalfStep(1.0, 0, 0, 0))[0]
    t = (new - h) @ p / (p @ p)
    assert np.linalg.norm(new - h - t * p) <= 0.02 * np.linalg.norm(new - h)  # rough model

    def slope(length):
        return -(d - B.T @ (v / (B @ (h + length * p)))) @ p

    assert 0 < t <= 1 + 1e-12
    assert 0 <= slope(t) <= 0.12 * slope(0) or (t > 0.99 and slope(1.0) >= 0)


def test_extrapolation_helps_and_never_raises_the_divergence():
    V = oracles.counts(150, 120, rank=6, density=0.5)
    problem = Factorization(V, 6)
    start = solve(problem, Alternating(MU()), stop=Stop(0, rounds=20)).x
    plain = solve(problem, Alternating(CCD()), start, stop=Stop(0, rounds=60))
    ahead = solve(problem, Extrapolated(CCD()), start, stop=Stop(0, rounds=60), trace="every")
    values = np.array([record.objective for record in ahead.trace])
    assert (np.diff(values) <= problem.rounding(values[0])).all()
    assert ahead.residual < plain.residual / 2
    with pytest.raises(TypeError, match="monotone"):
        Extrapolated(RULES["s-sci-pi"]())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_newton_on_long_items_descends_fast_though_its_hessian_is_sampled(layout, dtype):
    """Terms far beyond what the Hessian looks at, and a component that its sample never meets."""
    rng = np.random.default_rng(0)
    H = rng.dirichlet(np.full(900, 0.3), 3).T + 1e-4
    H[:, 2] = 0
    H[[17, 401, 402], 2] = 1.0  # with 900 terms every sixth vector is looked at
    W = rng.gamma(1.0, 500.0, (4, 3))
    V = rng.poisson(W @ H.T) + 1.0
    block = KLBlock(as_matrix(layout(V), dtype=dtype), H)
    h, values = np.ones((4, 3), dtype), []
    for t in range(25):
        h = Newton().update(block, h, HALF_STEP._replace(round=t))
        values.append(block.divergence(h))
    assert (np.diff(values) <= 8 * np.finfo(dtype).eps * (V.sum() + values[0])).all()
    assert block.gaps(h).sum() <= (1e-9 if dtype == np.float64 else 1e-5) * V.sum()


def test_arguments():
    with pytest.raises(ValueError, match="`steps` must be a positive integer, got 0"):
        Newton(steps=0)
    with pytest.raises(ValueError, match="use solver='ccd'"):
        Newton().update(KLBlock(np.ones((1, 2)), np.ones((2, 3000))), np.ones((1, 3000)), HALF_STEP)
    with pytest.raises(ValueError, match="`sweeps` must be a positive integer, got 0"):
        CCD(sweeps=0)
    with pytest.raises(ValueError, match=r"`order` must be one of .*, got 'rising'"):
        CCD(order="rising")
