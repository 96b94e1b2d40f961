# SPDX-License-Identifier: BSD-3-Clause
"""The local theory: Hessians and rates at the optimum, the spectrum of KL, the diagnosis."""

import itertools

import numpy as np
import pytest

import oracles
from identities.theory_examples import PROBLEMS
from sipower import SciPi, Stop, diagnose, solve
from sipower.kernels import Draw
from sipower.problems import (
    ICA,
    PCA,
    BurerMonteiro,
    KLBlock,
    LpKernelPCA,
    Problem,
    Sampling,
)
from sipower.theory.constants import local_spectrum
from sipower.theory.kl import kl_spectrum


@pytest.fixture(params=sorted(PROBLEMS))
def solve_exactly(request):
    problem = PROBLEMS[request.param]()
    result = solve(problem, SciPi(0.9), stop=Stop(1e-13, rounds=50_000), seed=1)
    return problem, result.x


# ---- the optimum -------------------------------------------------------------------------------


def test_the_solution_is_an_eigenvector_of_its_hessian(solve_exactly):
    """∇²f(x*) x* = (p − 1) λ* x*, and x·∇f(x) = λ*."""
    problem, x = solve_exactly
    at = local_spectrum(problem, x)
    one, y = problem.single_item(0), x[:1]
    np.testing.assert_allclose(
        one.hessian(y)[0] @ y[0] / at.multiplier, (problem.degree - 1) * y[0], atol=1e-6
    )
    assert at.radial == pytest.approx(problem.degree - 1, abs=1e-6)
    assert at.sigma >= at.bar


@pytest.mark.parametrize("name", ["pca", "mixture", "kl"])
def test_hessians_of_the_formula_sheets_are_those_of_the_gradient(name):
    """Also off the solution and on a batch; ∇²f(x)x = (p − 1)∇f(x) holds exactly there."""
    problem = PROBLEMS[name]()
    x = problem.start(3)
    S = problem.batch(Sampling(0.4), Draw(1))
    for batch in (None, S):
        H = problem.hessian(x, batch)
        np.testing.assert_allclose(H, Problem.hessian(problem, x, batch), atol=1e-7)
        np.testing.assert_allclose(
            np.einsum("jkl,jl->jk", H, x),
            (problem.degree - 1) * problem.gradient(x, batch),
            rtol=1e-12,
            atol=1e-13,
        )


def test_pca_constants_are_eigenvalues():
    A = np.random.default_rng(1).normal(size=(40, 4)) * [3, 2, 1, 1]
    values, vectors = np.linalg.eigh(A.T @ A / 40)
    at = local_spectrum(PCA(A), vectors[:, -1:].T)
    assert at.multiplier == pytest.approx(values[-1], rel=1e-12)
    np.testing.assert_allclose(at.tangent, values[:-1] / values[-1], rtol=1e-10)
    assert at.rate == pytest.approx((values[-2] / values[-1]) ** 2, rel=1e-10)


@pytest.mark.parametrize("step", [1.0, 0.6])
def test_measured_rates_are_the_predicted_ones(solve_exactly, step):
    """Started along the slowest eigenvector, 1 − (x·x*)² shrinks by the predicted factor."""
    problem, x = solve_exactly
    one, best = problem.single_item(0), x[:1]
    at = local_spectrum(one, best)
    basis = np.linalg.svd(best)[2][1:]
    H = basis @ one.hessian(best)[0] @ basis.T / at.multiplier
    values, vectors = np.linalg.eigh(H)
    slowest = vectors[:, np.argmax(np.abs(1 - step + step * values))] @ basis
    state = SciPi(step).init(one, best + 1e-4 * slowest, 0)
    off = [np.linalg.norm(basis @ state.x[0])]
    for _ in range(3):
        state = SciPi(step).advance(one, state)
        off.append(np.linalg.norm(basis @ state.x[0]))
    rates = [(b / a) ** 2 for a, b in itertools.pairwise(off)]
    predicted = at.rate if step == 1 else np.abs(1 - step + step * at.tangent).max() ** 2
    np.testing.assert_allclose(rates, predicted, rtol=0.01, atol=1e-6)


# ---- KL ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def interior():
    """v = Lx* has the interior solution x*."""
    rng = np.random.default_rng(6)
    L = rng.gamma(0.7, 1.0, (30, 4)) + 0.02
    x = np.array([0.4, 0.3, 0.2, 0.1])
    block = KLBlock((L / L.sum(axis=0) @ x)[None] * 50, L)
    return block, np.sqrt(x)[None]


def test_curvature_has_the_trivial_eigenvector(interior):
    block, y = interior
    B = block.item_curvature(y, 0)
    np.testing.assert_allclose(B @ y[0], y[0], rtol=1e-12)  # G = 1 at the solution
    assert np.linalg.eigvalsh(B)[0] >= -1e-14
    assert np.linalg.eigvalsh(B)[-1] == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 1.0001, 3.0])
def test_local_factors_of_powers_of_the_multiplier(interior, exponent):
    """1 − γb along each eigenvector: MU is γ = 1, SCI-PI γ = 2, η is γ = 2η."""
    block, y = interior
    B = block.item_curvature(y, 0)
    b, vectors = np.linalg.eigh(B)
    spectrum = kl_spectrum(block, y)
    assert spectrum.smallest[0] == pytest.approx(b[0], rel=1e-8)
    assert spectrum.largest[0] == pytest.approx(b[-2], rel=1e-8)
    for k in (0, 2):
        start = y[0] + 1e-5 * vectors[:, k]
        x = start**2 / (start**2).sum()
        h = block.from_sphere(np.sqrt(x)[None])
        x_new = x * block.multiplier(h)[0] ** exponent
        moved = np.sqrt(x_new / x_new.sum()) - y[0]
        assert moved @ vectors[:, k] / 1e-5 == pytest.approx(1 - exponent * b[k], abs=1e-3)
    best = spectrum.best_exponent[0]
    ends = np.array([spectrum.smallest[0], spectrum.largest[0]])
    factors = [np.abs(1 - best * change * ends).max() for change in (0.98, 1.0, 1.02)]
    assert factors[1] == min(factors)
    assert spectrum.stable_step[0] == pytest.approx(1 / b[-2], rel=1e-8)


def test_an_inactive_coordinate_shrinks_by_its_multiplier():
    """x_k → 0 where G_k < 1: by G_k a round of MU, by G_k² a round of SCI-PI."""
    L = np.array([[1.0, 0.2, 0.6], [0.2, 1.0, 0.55], [0.5, 0.5, 0.5]])
    block = KLBlock(np.array([[4.0, 5.0, 4.5]]), L / L.sum(axis=0))
    y = solve(block, SciPi(0.8), stop=Stop(1e-14, rounds=100_000)).x
    G = block.multiplier(block.from_sphere(y))[0]
    k = int(np.argmin(G))
    assert G[k] < 1 - 1e-3
    x = y[0] ** 2
    x[k] = 1e-9
    h = block.from_sphere(np.sqrt(x / x.sum())[None])
    for exponent in (1, 2):
        after = x * block.multiplier(h)[0] ** exponent
        ratio = (after / after.sum())[k] / (x / x.sum())[k]
        assert ratio == pytest.approx(G[k] ** exponent, abs=1e-4)


def test_diagnosis_of_kl_reports_the_spectrum():
    problem = PROBLEMS["kl"]()
    x = solve(problem, SciPi(0.9), stop=Stop(1e-12, rounds=50_000)).x
    text = str(diagnose(problem, x))
    for word in ("λ*", "λ̄", "ν₅", "b_min", "stable η", "best exponent", "estimated:"):
        assert word in text


def test_verdicts_say_why_there_is_no_theorem():
    problem = PROBLEMS["pca"]()
    x = solve(problem, SciPi(), stop=Stop(1e-12)).x
    tilted = problem.normalise(x + 0.5 * problem.start(3))
    assert "x has the residual" in diagnose(problem, tilted).verdict
    edgy = LpKernelPCA(np.random.default_rng(5).normal(size=(20, 3)), 1.0)
    point = solve(edgy, SciPi(), stop=Stop(1e-12)).x
    assert "does not have a Hessian" in diagnose(edgy, point).verdict


def test_the_spectrum_leaves_out_what_has_none():
    """Items without mass or with a single component; the length of y does not matter."""
    B = oracles.factors(3, 60, 4, seed=1)[1]
    V = np.vstack([np.zeros(60), np.random.default_rng(2).poisson(9.0, (3, 60)) + 1.0])
    block = KLBlock(V, B)
    y = solve(block, SciPi(0.9), stop=Stop(1e-12, rounds=50_000)).x
    spectrum, longer = kl_spectrum(block, y), kl_spectrum(block, 3 * y)
    np.testing.assert_array_equal(spectrum.items, [1, 2, 3])
    np.testing.assert_allclose(spectrum.largest, longer.largest, rtol=1e-12)
    assert np.median(spectrum.best_exponent) < 1e3


BAD = {
    "item": (
        lambda: diagnose(PROBLEMS["kl"](), np.ones((3, 4)), item=99),
        "`item` must be an integer from 0 to 2, got 99",
    ),
    "list": (lambda: diagnose(PROBLEMS["pca"](), [1.0, 2.0]), r"shape \(1, 4\)"),
    "shape": (lambda: diagnose(PROBLEMS["pca"](), np.ones((1, 3))), r"shape \(1, 4\)"),
    "NaN": (lambda: diagnose(PROBLEMS["pca"](), np.full((1, 4), np.nan)), "finite"),
    "sequential": (lambda: diagnose(BurerMonteiro(1 - np.eye(3)), np.ones((3, 4))), "interact"),
    "sign": (
        lambda: local_spectrum(
            ICA(np.random.default_rng(0).uniform(size=(99, 2))), np.ones((1, 2))
        ),
        "maximise −f",
    ),
    "delta": (
        lambda: diagnose(PROBLEMS["pca"](), np.ones((1, 4)), delta=-1.0),
        r"`delta` must be .* in \(0, 1\), got -1.0",
    ),
    "epoch": (
        lambda: diagnose(PROBLEMS["pca"](), np.ones((1, 4)), epoch=0),
        "`epoch` must be a positive integer, got 0",
    ),
    "batch": (
        lambda: diagnose(PROBLEMS["pca"](), np.ones((1, 4)), batch=0),
        r"`batch` must be a number in \(0, 1\], got 0",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_sentence(what):
    action, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        action()
