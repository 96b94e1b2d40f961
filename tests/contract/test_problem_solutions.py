# SPDX-License-Identifier: BSD-3-Clause
"""Solvers on the registered problems: what they reach, and at what rate."""

import numpy as np
import pytest

from contract.problem_examples import EXAMPLES
from sipower import Guarded, SciPi, SSciPi, Status, Stop, solve
from sipower.kernels import Draw
from sipower.problems import (
    PCA,
    KLBlock,
)
from sipower.solvers import REGISTRY as SOLVERS


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_solvers_reach_optimality(problem, name, guarded):
    solver = SOLVERS[name](0.7) if name == "sci-pi" else SSciPi(0.7, batch=0.1, epoch=10)
    solver = Guarded(solver) if guarded else solver
    if problem.sequential and name == "s-sci-pi":
        with pytest.raises(ValueError, match="interact"):
            solve(problem, solver)
        return
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


def test_further_components_by_deflation():
    A = np.random.default_rng(2).normal(size=(200, 6)) * [6, 5, 4, 3, 2, 1]
    exact = np.linalg.svd(A)[2]
    directions = np.zeros((0, 6))
    for k in range(4):
        x = solve(
            PCA(A, orthogonal_to=directions), SSciPi(), stop=Stop(1e-9, rounds=5000), seed=k
        ).x
        assert abs(x[0] @ exact[k]) > 1 - 1e-9
        directions = np.vstack([directions, x])
    np.testing.assert_allclose(directions @ directions.T, np.eye(4), atol=1e-9)
    zeros = solve(PCA(A, orthogonal_to=np.zeros((1, 6))), SciPi(), stop=Stop(1e-9)).x
    assert abs(zeros[0] @ exact[0]) > 1 - 1e-9  # nothing found: nothing taken away
    with pytest.raises(
        ValueError, match=r"`orthogonal_to` must be .* of shape \(r, 6\), got shape \(1, 5\)"
    ):
        PCA(A, orthogonal_to=np.ones(5))


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


@pytest.mark.parametrize("tail", ["flat", "decaying"])
def test_s_sci_pi_defaults_need_a_fraction_of_the_passes_of_power_iteration(tail):
    """Passes are counted: at most a quarter on 20,000 samples with eigengap 0.02."""
    rng, d, n = np.random.default_rng(0), 20, 20_000
    rest = np.ones(d - 1) if tail == "flat" else 1 / np.arange(1, d)
    values = np.concatenate([[1.0], 0.98 * rest])
    problem = PCA(np.linalg.qr(rng.normal(size=(n, d)))[0] * np.sqrt(n * values))
    needed = {}
    for name, solver in {"power": SciPi(), "s-sci-pi": SSciPi()}.items():
        state = solver.init(problem, problem.start(1), 0)
        while np.linalg.norm(state.x[0, 1:]) > 1e-5:
            state = solver.advance(problem, state)
        needed[name] = state.passes
    assert needed["s-sci-pi"] <= needed["power"] / 4


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


@pytest.mark.parametrize("seed", range(3))
def test_s_sci_pi_defaults_do_not_stall_on_kl(seed):
    """For p = 0 λ is constant: κ must not shrink because the residual rises for a while."""
    rng = np.random.default_rng(0)
    W = rng.dirichlet(np.full(300, 0.05), size=6).T
    H = rng.dirichlet(np.full(6, 0.1), size=30)
    problem = KLBlock(rng.poisson(300 * H @ W.T).astype(float), W + 1e-6)
    result = solve(problem, SSciPi(), stop=Stop(1e-5, rounds=400), seed=seed)
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("epoch", [3, 4])
def test_a_guard_breaks_the_cycle_of_full_batches(epoch):
    cycle = KLBlock([[0.8, 0.2]], np.eye(2))
    solver = Guarded(SSciPi(batch=1.0, epoch=epoch))
    result = solve(cycle, solver, np.sqrt([[0.5, 0.5]]), stop=Stop(1e-8, rounds=150))
    assert result.status is Status.CONVERGED
