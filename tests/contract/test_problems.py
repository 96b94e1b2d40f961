# SPDX-License-Identifier: BSD-3-Clause
"""What every registered problem promises: its gradient, its degree, unbiased batches."""

import numpy as np
import pytest

import oracles
from sipower import Guarded, SciPi, SSciPi, Status, Stop, check_problem, solve
from sipower.kernels import Draw
from sipower.problems import (
    ICA,
    PCA,
    REGISTRY,
    BurerMonteiro,
    GaussianMixture,
    KLBlock,
    LpKernelPCA,
    MixtureProportions,
    Problem,
)
from sipower.solvers import REGISTRY as SOLVERS
from sipower.solvers.s_sci_pi import anchor_factor

RNG = np.random.default_rng(0)


def symmetric(n):
    A = RNG.normal(size=(n, n))
    return A + A.T


EXAMPLES = {
    "burer-monteiro": lambda: BurerMonteiro(symmetric(14), rank=6),
    "mixture": lambda: MixtureProportions(
        RNG.gamma(1.0, 1.0, (60, 5)) + 0.01, RNG.random(60) + 0.1
    ),
    "ica": lambda: ICA(RNG.laplace(size=(400, 4)) @ RNG.normal(size=(4, 4))),
    "lp-kernel-pca": lambda: LpKernelPCA(RNG.normal(size=(40, 5)), p=3.0, kernel="rbf", gamma=0.1),
    "pca": lambda: PCA(RNG.normal(size=(30, 6)) * [3, 1, 1, 1, 1, 1]),
    "kl": lambda: KLBlock(RNG.poisson(4.0, (5, 40)) + 1.0, oracles.factors(5, 40, 6, seed=1)[1]),
}


@pytest.fixture(params=sorted(REGISTRY))
def problem(request):
    return EXAMPLES[request.param]()


def test_every_problem_keeps_its_promises(problem):
    """Gradient by Taylor slope, scale law, Hessian identity, unbiased and repeatable batches."""
    for seed in range(3):
        report = check_problem(problem, seed=seed)
        assert report.ok
        assert len(report.checks) == (3 if problem.sequential else 6)


WRONG = {
    "gradient": (lambda g, x: 1.01 * g, "Taylor"),
    "scale": (lambda g, x: g * np.linalg.norm(x), "c ∇f"),
    "sign": (lambda g, x: -g, "Taylor"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_gradient_is_told(what):
    change, name = WRONG[what]

    class Wrong(PCA):
        def gradient(self, x, S=None):
            return change(super().gradient(x, S), x)

    with pytest.raises(ValueError, match=f"FAILED  .*{name}"):
        check_problem(Wrong(EXAMPLES["pca"]().A))


def test_biased_batches_are_told():
    class Biased(PCA):
        def batch(self, sampling, draw):
            return super().batch(sampling, draw)[: max(1, len(self.A) // 8)] * 1.2

    with pytest.raises(ValueError, match="FAILED  bias"):
        check_problem(Biased(EXAMPLES["pca"]().A))


def test_gradient_euler_and_anchor_factor(problem):
    """Central differences (1e-6), x·∇f = p f or 1 (1e-10), ∇f(cx) = α∇f(x) (1e-12)."""
    x = problem.start(5)
    g = problem.gradient(x)
    if problem.degree > 0 and not problem.sequential:
        assert problem.inner(x, g)[0] == pytest.approx(problem.degree * problem.value(x), rel=1e-10)
    if problem.degree == 0:
        np.testing.assert_allclose(problem.inner(x, g), 1, rtol=1e-10)
    if problem.sequential:
        return  # its rows scale one by one, see check_problem
    weights, h = problem.item_weights, 1e-6
    for item, k in [(0, 0), (x.shape[0] - 1, x.shape[1] - 1)]:
        # Along the sphere: `value` of some problems is of the normalised point.
        v = np.zeros_like(x)
        v[item, k] = 1
        v -= problem.inner(v, x)[:, None] * x
        rise = problem.value(problem.normalise(x + h * v)) - problem.value(
            problem.normalise(x - h * v)
        )
        expected = weights[item] * (g[item] @ v[item])
        assert rise / (2 * h) == pytest.approx(expected, rel=1e-6, abs=1e-6 * abs(weights[item]))
    for c in (2.5, 0.3, -1.7):
        alpha = anchor_factor(np.array(c), problem.degree)
        np.testing.assert_allclose(problem.gradient(c * x), alpha * g, rtol=1e-11, atol=1e-13)


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


def test_normalise_and_start(problem):
    x = problem.start(7)
    np.testing.assert_allclose(problem.inner(x, x), 1, rtol=1e-12)
    np.testing.assert_allclose(problem.normalise(x), x, rtol=1e-14)
    np.testing.assert_array_equal(x, problem.start(7))
    assert np.abs(x - problem.start(8)).max() > 0.01


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
    found = np.zeros((0, 6))
    for k in range(4):
        x = solve(PCA(A, found=found), SSciPi(), stop=Stop(1e-9, rounds=5000), seed=k).x
        assert abs(x[0] @ exact[k]) > 1 - 1e-9
        found = np.vstack([found, x])
    np.testing.assert_allclose(found @ found.T, np.eye(4), atol=1e-9)
    zeros = solve(PCA(A, found=np.zeros((1, 6))), SciPi(), stop=Stop(1e-9)).x
    assert abs(zeros[0] @ exact[0]) > 1 - 1e-9  # nothing found: nothing taken away
    with pytest.raises(ValueError, match=r"found has shape \(1, 5\)"):
        PCA(A, found=np.ones(5))


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


@pytest.mark.parametrize("kind", ["ica", "lp-kernel-pca"])
def test_deflated_hessians_are_projected_on_both_sides(kind):
    problem = EXAMPLES[kind]()
    found = problem.start(4)
    deflated = (
        ICA(problem.X, found=found, whitened=True)
        if kind == "ica"
        else LpKernelPCA.of_features(problem.A, 3.0, found=found)
    )
    x = deflated.start(5)
    P = np.eye(x.shape[1]) - found.T @ found
    expected = P @ problem.hessian(x)[0] @ P
    np.testing.assert_allclose(deflated.hessian(x)[0], expected, atol=1e-12)
    np.testing.assert_allclose(Problem.hessian(deflated, x)[0], expected, atol=1e-7)


BAD = {
    "found everything": (lambda: PCA(np.ones((3, 2)), found=np.eye(2)), "nothing is left"),
    "other problem": (lambda: solve(GaussianMixture(RNG.random((9, 2)), 2), SciPi()), "own solver"),
    "text": (lambda: SSciPi("big"), "step is big"),
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rank", [1, 3])
def test_right_problems_pass_where_f_is_constant_or_of_float32(dtype, rank):
    rng = np.random.default_rng(0)
    V, B = rng.poisson(2.0, (6, 9)).astype(dtype), rng.random((9, rank)).astype(dtype)
    assert check_problem(KLBlock(V, B)).ok
    assert check_problem(PCA(np.eye(4, dtype=dtype))).ok
    with pytest.raises(ValueError, match="GaussianMixture is no problem on the sphere"):
        check_problem(GaussianMixture(rng.normal(size=(20, 2)), 2))


def test_a_wrong_degree_fails_in_float32_too():
    class Wrong(KLBlock):
        degree = 1.0

    rng = np.random.default_rng(0)
    V, B = rng.poisson(2.0, (6, 9)).astype("float32"), rng.random((9, 3)).astype("float32")
    with pytest.raises(ValueError, match="FAILED"):
        check_problem(Wrong(V, B))
