# SPDX-License-Identifier: BSD-3-Clause
"""What every registered problem promises: its gradient, its degree, unbiased batches."""

import numpy as np
import pytest

import oracles
from sipower import Guarded, SciPi, SSciPi, Status, Stop, solve
from sipower.kernels import Draw
from sipower.problems import PCA, REGISTRY, KLBlock, Sampling
from sipower.solvers import REGISTRY as SOLVERS
from sipower.solvers.s_sci_pi import anchor_factor

RNG = np.random.default_rng(0)
EXAMPLES = {
    "pca": lambda: PCA(RNG.normal(size=(30, 6)) * [3, 1, 1, 1, 1, 1]),
    "kl": lambda: KLBlock(RNG.poisson(4.0, (5, 40)) + 1.0, oracles.factors(5, 40, 6, seed=1)[1]),
}


@pytest.fixture(params=sorted(REGISTRY))
def problem(request):
    return EXAMPLES[request.param]()


def value_of(problem, x):
    """F(x) without normalisation, integrated from the gradient's own scaling: f at any point."""
    if isinstance(problem, KLBlock):
        z = (x**2 / problem.d) @ problem.B.T
        per_item = (problem.V.array * np.log(z)).sum(axis=1) / (2 * problem.c)
        return per_item.sum()
    return problem.value(x)


def test_gradient_by_taylor_slope(problem):
    """|f(x + tv) − f(x) − t ∇f·v| falls as t²."""
    x = problem.start(0)
    v = np.random.default_rng(1).normal(size=x.shape)
    v /= np.linalg.norm(v)
    slope = (problem.gradient(x) * v).sum()
    steps = np.array([1e-2, 1e-3, 1e-4])
    errors = [abs(value_of(problem, x + t * v) - value_of(problem, x) - t * slope) for t in steps]
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert 1.9 <= order <= 2.1


@pytest.mark.parametrize("c", [2.5, 0.3, -1.7])
def test_scale_law(problem, c):
    """c ∇f(cx) = |c|^p ∇f(x)."""
    x = problem.start(3)
    expected = abs(c) ** problem.degree * problem.gradient(x)
    np.testing.assert_allclose(c * problem.gradient(c * x), expected, rtol=1e-11)


@pytest.mark.parametrize("p", [0.0, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("cosine", [0.8, -0.8])
def test_anchor_factor_has_the_sign_of_the_cosine(p, cosine):
    """∇f(c x₀) = sign(c)|c|^(p−1) ∇f(x₀) with f(x) = Σ|x_k|^p/p, or Σ log|x_k| for p = 0."""
    x0 = np.array([0.6, 0.64, 0.48])

    def gradient(x):
        return np.sign(x) * np.abs(x) ** (p - 1)

    np.testing.assert_allclose(
        gradient(cosine * x0), anchor_factor(np.array(cosine), p) * gradient(x0), rtol=1e-12
    )


def test_batches_are_unbiased_and_repeatable(problem):
    x = problem.start(5)
    sampling = Sampling(0.2, replace=False)
    draws = 4000
    mean = np.zeros_like(x)
    for r in range(draws):
        mean += problem.gradient(x, problem.batch(sampling, Draw(1, round=r))) / draws
    full = problem.gradient(x)
    assert np.abs(mean - full).max() < 0.05 * np.abs(full).max()
    a, b = (problem.gradient(x, problem.batch(sampling, Draw(1, round=9))) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    whole = problem.gradient(x, problem.batch(Sampling(1.0), Draw(2)))
    np.testing.assert_allclose(whole, full, rtol=1e-12)


def test_normalise_and_start(problem):
    x = problem.start(7)
    np.testing.assert_allclose(problem.inner(x, x), 1, rtol=1e-12)
    np.testing.assert_allclose(problem.normalise(x), x, rtol=1e-14)
    np.testing.assert_array_equal(x, problem.start(7))
    assert np.abs(x - problem.start(8)).max() > 0.01


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_solvers_reach_optimality(problem, name, guarded):
    solver = SOLVERS[name](0.7)
    solver = Guarded(solver) if guarded else solver
    x0 = problem.start(11)
    before = x0.copy()
    result = solve(problem, solver, x0, stop=Stop(1e-8, rounds=20_000), seed=1)
    assert result.status is Status.CONVERGED
    assert problem.residual(result.x) <= 1e-8
    np.testing.assert_array_equal(x0, before)
    again = solve(problem, solver, x0, stop=Stop(1e-8, rounds=20_000), seed=1)
    assert again.x.tobytes() == result.x.tobytes()


def test_pca_finds_the_first_direction_of_sparse_data_too():
    import scipy.sparse as sp  # noqa: PLC0415 - only this test needs it

    A = sp.random_array((300, 12), density=0.2, random_state=1, format="csr")
    exact = np.linalg.svd(A.toarray())[2][0]
    for solver in (SciPi(), SSciPi()):
        x = solve(PCA(A), solver, stop=Stop(1e-9, rounds=5000)).x[0]
        assert abs(x @ exact) > 1 - 1e-12


def test_vr_power_is_s_sci_pi_on_pca():
    """One inner step: C_S x + β (C x₀ − C_S x₀), β = x·x₀."""
    problem = EXAMPLES["pca"]()
    n, d = problem.A.shape
    C = problem.A.T @ problem.A / n
    x0, eta = problem.start(1), 0.4
    lam = float(x0[0] @ C @ x0[0])
    x = x0[0]
    x = (1 - eta) * x + eta * C @ x / lam
    x /= np.linalg.norm(x)
    rows = Draw(6, 0, 4, 0, 1).batch(n, 9)
    CS = problem.A[rows].T @ problem.A[rows] / 9
    beta = x @ x0[0]
    x = (1 - eta) * x + eta * (CS @ x + beta * (C @ x0[0] - CS @ x0[0])) / lam
    x /= np.linalg.norm(x)
    solver = SSciPi(eta, batch=0.3, epoch=2)
    state = solver.init(problem, x0, 6)
    state = type(state)(**{**state.__dict__, "round": 4})
    np.testing.assert_allclose(solver.advance(problem, state).x[0], x, rtol=1e-12)
    assert d == 6


def test_pca_rate_is_the_squared_eigenvalue_ratio():
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 3)))[0]
    A = Q * np.sqrt(50 * np.array([1.0, 0.8, 0.5]))
    problem, state = PCA(A), None
    off = []
    state = SciPi().init(problem, np.ones((1, 3)), 0)
    for _ in range(30):
        state = SciPi().advance(problem, state)
        off.append(1 - state.x[0, 0] ** 2)
    assert off[-1] / off[-2] == pytest.approx(0.64, abs=0.005)


BAD = {
    "NaN": (lambda: PCA([[1.0, np.nan]]), "NaN"),
    "all zero": (lambda: PCA(np.zeros((3, 2))), "All entries of A are zero"),
    "scheme": (lambda: solve(EXAMPLES["pca"](), SSciPi(scheme="elements")), "whole samples"),
    "x0 of NaN": (lambda: solve(EXAMPLES["pca"](), SciPi(), np.full((1, 6), np.nan)), "finite"),
    "x0 of zeros": (lambda: solve(EXAMPLES["pca"](), SciPi(), np.zeros((1, 6))), "not zero"),
    "huge": (lambda: PCA(np.ones((3, 2)) * 1e200), "rescale A"),
    "tiny": (lambda: PCA(np.ones((3, 2)) * 1e-200), "rescale A"),
    "tol": (lambda: Stop(tol=float("nan")), "tol is nan"),
    "rounds": (lambda: Stop(rounds=-5), "rounds is -5"),
    "trace": (lambda: solve(EXAMPLES["pca"](), SciPi(), trace="all"), "trace is .all."),
    "threshold": (lambda: SSciPi(threshold=float("nan")), "threshold is nan"),
    "part of a step": (lambda: SSciPi(epoch=2.5), "epoch is 2.5"),
    "x0": (lambda: solve(EXAMPLES["pca"](), SciPi(), np.ones((1, 3))), r"expected \(1, 6\)"),
    "basis": (lambda: KLBlock(np.ones((3, 4)), np.ones((3, 2))), r"expected \(4, rank\)"),
    "step": (lambda: SciPi(0.0), "step is 0.0"),
    "step of s-sci-pi": (lambda: SSciPi(float("nan")), "step is nan"),
    "batch": (lambda: SSciPi(batch=0.0), "batch is 0.0"),
    "epoch": (lambda: SSciPi(epoch=0), "epoch is 0"),
    "unknown scheme": (lambda: SSciPi(scheme="rows"), "scheme is 'rows'"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_sentence(what):
    action, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        action()
