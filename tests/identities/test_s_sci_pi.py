# SPDX-License-Identifier: BSD-3-Clause
"""One round of S-SCI-PI is its formula, written out in NumPy, with a given and a measured step."""

import math
from dataclasses import replace

import numpy as np
import pytest

from identities.solver_examples import CUBIC, A, kl
from sipower import SciPi, SSciPi
from sipower.kernels import Draw
from sipower.problems import PCA, Sampling


def epoch_of_the_paper(problem, state, solver, eta):
    """Algorithm 1: x ← retract((1 − η)x + η g_t/λ), g_t = α g̃ + ∇f_S(x) − α ∇f_S(x₀)."""
    x0, p = state.x, problem.degree
    g = problem.gradient(x0)
    lam = np.abs((x0 * g).sum(axis=1, keepdims=True))
    sampling = Sampling(solver.batch, solver.scheme, solver.replace)
    x = x0
    for t in range(solver.epoch):
        cosine = (x * x0).sum(axis=1, keepdims=True)
        alpha = np.sign(cosine) * abs(cosine) ** (p - 1)
        S = problem.batch(sampling, Draw(state.seed, 0, state.round, state.side, t))
        g_t = alpha * g + problem.gradient(x, S) - alpha * problem.gradient(x0, S)
        x = problem.retract((1 - eta) * x + eta * g_t / lam, x, solver.threshold)
    return x


@pytest.mark.parametrize("options", [{}, {"replace": True}, {"threshold": 0.9}])
@pytest.mark.parametrize("problem", [PCA(A), CUBIC, kl()], ids=["pca", "lp", "kl"])
def test_an_epoch_is_algorithm_1(problem, options):
    solver = SSciPi(0.4, batch=0.2, epoch=5, **options)
    state = replace(solver.init(problem, None, 6), round=7, side=1, passes=0.25)
    new = solver.advance(problem, state)
    expected = epoch_of_the_paper(problem, state, solver, 0.4)
    np.testing.assert_allclose(new.x, expected, rtol=1e-10)
    assert (new.round, new.step, new.seed, new.side) == (8, 0.4, 6, 1)
    assert new.passes == pytest.approx(0.25 + 1 + problem.batch_passes * 4 * 0.2, rel=1e-14)
    assert new.residual == math.inf  # nothing was measured


@pytest.mark.parametrize("scheme", ["elements", "stratified", "weighted"])
def test_an_epoch_draws_by_its_scheme(scheme):
    solver, problem = SSciPi(0.4, batch=0.2, epoch=4, scheme=scheme), kl()
    state = solver.init(problem, None, 6)
    expected = epoch_of_the_paper(problem, state, solver, 0.4)
    np.testing.assert_allclose(solver.advance(problem, state).x, expected, rtol=1e-10)


def test_a_point_that_turned_away_from_its_anchor_is_pulled_back():
    """A full step from nearly orthogonal to the first direction: the batches that follow count."""
    problem = PCA(np.diag([10.0, 1.0, 1.0]))
    state = SSciPi(1.0).init(problem, np.array([[0.1, 1.0, 0.0]]), 0)
    once = SciPi().advance(problem, state).x
    assert once[0] @ state.x[0] < 0.5
    solver = SSciPi(1.0, batch=0.4, epoch=9)
    far = solver.advance(problem, state)
    np.testing.assert_allclose(far.x, epoch_of_the_paper(problem, state, solver, 1.0), rtol=1e-10)
    assert not np.allclose(far.x, once)


# ---- the measured step ---------------------------------------------------------------------------


def measured_step(problem, state, solver, kappa):
    """η = κ/√(Km), at most κ/0.8, of every item: K from the batches of stream 2 at one step."""
    x0, p = state.x, problem.degree
    g = problem.gradient(x0)
    multiplier = (x0 * g).sum(axis=1, keepdims=True)
    lam = abs(multiplier)
    x = problem.retract(x0 + (g - multiplier * x0) / lam, x0, solver.threshold)
    cosine = (x * x0).sum(axis=1, keepdims=True)
    alpha = np.abs(cosine) ** (p - 1) * np.sign(cosine)
    batches = [
        problem.batch(Sampling(solver.batch), Draw(state.seed, 2, state.round, state.side, t))
        for t in range(8)
    ]
    added = np.array([problem.gradient(x, S) - alpha * problem.gradient(x0, S) for S in batches])
    off = added - added.mean(axis=0)
    away = ((x - cosine * x0) ** 2).sum(axis=1, keepdims=True)
    K = (off**2).sum(axis=(0, 2))[:, None] / 7 / lam**2 / away
    return np.minimum(kappa / np.sqrt(K * solver.epoch), kappa / 0.8)


@pytest.mark.parametrize("epoch", [1, 4])
@pytest.mark.parametrize("problem", [PCA(A), CUBIC, kl()], ids=["pca", "lp", "kl"])
def test_without_a_step_it_comes_from_the_measured_variance(problem, epoch):
    solver = SSciPi(batch=0.2, epoch=epoch)
    state = replace(solver.init(problem, None, 6), round=7, side=1, passes=0.25, step=0.1)
    assert solver.init(problem, None, 6).step == 0.8
    eta = measured_step(problem, state, solver, 0.1 * 1.1)
    assert (eta < 0.1 * 1.1 / 0.8).any()  # noise decides, not the bound alone
    new = solver.advance(problem, state)
    expected = epoch_of_the_paper(problem, state, solver, eta)
    np.testing.assert_allclose(new.x, expected, rtol=1e-9)
    # One full gradient, 8 probes and m − 1 batches, and the value where λ does not tell it.
    passes = 1.25 + problem.batch_passes * (epoch + 7) * 0.2
    passes += 0.0 if problem.degree else problem.value_passes
    assert new.passes == pytest.approx(passes, rel=1e-14)


@pytest.mark.parametrize("problem", [PCA(A), kl()], ids=["pca", "kl"])
def test_full_batches_have_no_variance_and_take_full_steps(problem):
    solver = SSciPi(batch=1.0, epoch=3, threshold=0.0)
    near = SciPi().advance(problem, SciPi().init(problem, None, 6)).x
    state = solver.init(problem, near, 6)
    expected = replace(state, step=1.0)
    for _ in range(3):
        expected = SciPi().advance(problem, expected)
    np.testing.assert_allclose(solver.advance(problem, state).x, expected.x, rtol=1e-9)


@pytest.mark.parametrize("problem", [PCA(A), kl()], ids=["pca", "kl"])
def test_noise_shrinks_only_where_the_residual_rose_and_the_value_did_not(problem):
    solver = SSciPi(batch=0.2, epoch=1)
    start = replace(solver.init(problem, None, 6), step=0.5)
    first = solver.advance(problem, start)
    g = problem.gradient(start.x)
    multiplier = (start.x * g).sum(axis=1, keepdims=True)
    residual = np.linalg.norm((g - multiplier * start.x) / multiplier)
    value = 2 * problem.value(start.x) if problem.degree else problem.value(start.x)
    assert first.step == pytest.approx(0.55)
    assert first.residual == pytest.approx(residual, rel=1e-12)
    assert first.anchor_value == pytest.approx(value, rel=1e-12)
    below, above = first.residual / 2, first.residual * 2
    lower, higher = first.anchor_value - 1, first.anchor_value + 1
    for residual, value, kappa in [
        (below, higher, 0.35),
        (below, first.anchor_value, 0.35),
        (below, lower, 0.55),
        (above, higher, 0.55),
        (first.residual, higher, 0.55),
    ]:
        state = replace(start, residual=residual, anchor_value=value)
        assert solver.advance(problem, state).step == pytest.approx(kappa)
    assert solver.advance(problem, replace(start, step=0.79)).step == 0.8


def test_at_a_solution_there_is_no_direction_and_no_step():
    problem = PCA(np.diag([3.0, 1.0]))
    state = SSciPi(batch=1.0).init(problem, np.eye(1, 2), 0)
    new = SSciPi(batch=1.0).advance(problem, state)
    np.testing.assert_array_equal(new.x, [[1, 0]])
