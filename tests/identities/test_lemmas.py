# SPDX-License-Identifier: BSD-3-Clause
"""The convergence theorem: lemmas by enumeration of all batches, variance, conditions."""

import itertools
import math

import numpy as np
import pytest

from identities.theory_examples import PROBLEMS
from sipower import SciPi, SSciPi, Stop, diagnose, solve
from sipower.kernels import Draw
from sipower.problems import (
    ICA,
    PCA,
    LpKernelPCA,
    MixtureProportions,
    Sampling,
)
from sipower.theory.constants import LocalSpectrum, Variance, _FixedBatch, local_spectrum, variance
from sipower.theory.theorem import conditions, largest_delta

RNG = np.random.default_rng(0)


# ---- batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pca", "l3-pca", "mixture", "ica"])
@pytest.mark.parametrize("s", [1, 2, 5, 7])
def test_frobenius_variance_of_batches_has_its_closed_form(name, s):
    """E‖G_S‖²_F = (n − s)/(s(n − 1)) E‖G_1‖²_F without replacement; zero at s = n."""
    problem = {
        "pca": lambda: PCA(RNG.normal(size=(7, 3))),
        "l3-pca": lambda: LpKernelPCA(np.random.default_rng(1).normal(size=(7, 3)), 3),
        "mixture": lambda: MixtureProportions(RNG.gamma(1.0, 1.0, (7, 3)) + 0.1),
        "ica": lambda: ICA(np.random.default_rng(1).normal(size=(7, 3))),
    }[name]()
    x, n = problem.start(1), 7
    H = problem.hessian(x)[0]

    def mean_square(s):
        squares = []
        for chosen in itertools.combinations(range(n), s):
            S = problem.batch(Sampling(s / n), _FixedBatch(chosen))
            squares.append(np.linalg.norm(problem.hessian(x, S)[0] - H) ** 2)
        return np.mean(squares)

    expected = (n - s) / (s * (n - 1)) * mean_square(1)
    assert mean_square(s) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_variance_is_exact_by_enumeration_on_pca():
    A = np.random.default_rng(8).normal(size=(9, 3))
    C = A.T @ A / 9
    x = np.linalg.eigh(C)[1][:, -1:].T
    lam = float(x[0] @ C @ x[0])
    actual = variance(PCA(A), x, 4 / 9)
    norms = [
        np.linalg.norm(A[list(S)].T @ A[list(S)] / 4 - C, 2) ** 2
        for S in itertools.combinations(range(9), 4)
    ]
    assert actual.method.startswith("exact")
    assert pytest.approx(np.mean(norms) / lam**2, rel=1e-10) == actual.K
    assert pytest.approx(np.max(norms) / lam**2, rel=1e-10) == actual.L
    singles = [np.linalg.norm(np.outer(a, a) - C, 2) ** 2 for a in A]
    assert pytest.approx(np.max(singles) / lam**2, rel=1e-10) == actual.L0
    assert pytest.approx(0, abs=1e-20) == variance(PCA(A), x, 1.0).K


# ---- the lemmas and the theorem, on an instance that meets the conditions ----------------------

SIGNS = np.array([1, -1, 1, -1, 1, -1])
EPSILON, LENGTH = 0.35, 4


class Tiny:
    """PCA of a_i = (1, ±ε): λ* = 1, λ̄ = ε², batches of 5 of 6, all of them enumerable."""

    def __init__(self):
        A = np.column_stack([np.ones(6), EPSILON * SIGNS])
        parts = [A[list(S)] for S in itertools.combinations(range(6), 5)]
        self.C, self.batches = A.T @ A / 6, np.array([part.T @ part / 5 for part in parts])
        self.problem, self.best = PCA(A), np.array([[1.0, 0.0]])
        self.at = local_spectrum(self.problem, self.best)
        self.noise = variance(self.problem, self.best, 5 / 6)
        self.delta = largest_delta(self.at, self.noise, 0.0)
        self.theorem = conditions(self.at, self.noise, 0.0, self.delta, LENGTH)
        cosine = 1 - self.delta
        self.x0 = np.array([cosine, math.sqrt(1 - cosine**2)])

    def steps(self, x, x0, eta):
        """Algorithm 1 as printed, for every batch: (…, batches, 2)."""
        y0 = x0 / np.linalg.norm(x0, axis=-1, keepdims=True)
        along = (x * y0).sum(axis=-1, keepdims=True)  # x·y₀: α times ‖x₀‖
        rest = np.einsum("bij,...j->...bi", self.batches - self.C, x - along * y0)
        return ((1 - eta) * x + eta * x @ self.C)[..., None, :] + eta * rest


@pytest.fixture(scope="module")
def tiny():
    return Tiny()


def test_the_instance_meets_every_condition(tiny):
    th = tiny.theorem
    assert th.near.holds
    assert th.small_batches.holds
    assert 0 < th.step <= 1 / max(1, th.nu["ν₄"], th.nu["ν₅"])
    assert 0 < th.rho <= 0.25 + 1e-12
    assert "L-branch" in str(diagnose(tiny.problem, tiny.best, batch=5 / 6, epoch=LENGTH))


def test_lemma_1_splits_a_step_exactly_on_pca(tiny):
    """x⁺·v_k = (1 − η + ηλ_k) x·v_k + η (G_S (x − (x·y₀)y₀))·v_k: no third derivatives."""
    problem, eta = PROBLEMS["pca"](), 0.3
    A, lam = problem.A, 1.0
    C = A.T @ A / len(A)
    values, vectors = np.linalg.eigh(C)
    x0, x = problem.start(1), problem.normalise(problem.start(1) + 0.2 * problem.start(2))
    S = problem.batch(Sampling(0.2), Draw(5))
    alpha = problem.inner(x, x0)[:, None]
    g = alpha * problem.gradient(x0) + problem.anchored_difference(x, x0, alpha, S)
    step = ((1 - eta) * x + eta * g / lam)[0]
    G = S.T @ S / len(S) - C
    rest = x[0] - (x[0] @ x0[0]) * x0[0]
    expected = (1 - eta + eta * values) * (x[0] @ vectors) + eta * (G @ rest) @ vectors
    np.testing.assert_allclose(step @ vectors, expected, rtol=1e-12, atol=1e-13)


def test_lemma_2_no_batch_leads_away(tiny):
    """Δ_t ≤ Δ₀ for every sequence of batches."""
    x = tiny.x0[None]
    for _ in range(LENGTH):
        x = tiny.steps(x, tiny.x0, tiny.theorem.step).reshape(-1, 2)
        assert (x @ tiny.x0 >= 0).all()
        cosines = x[:, 0] / np.linalg.norm(x, axis=1)
        assert (1 - cosines <= tiny.delta + 1e-12).all()


def test_lemma_3_one_step_over_all_batches(tiny):
    """The three bounds on E‖x⁺‖², E Σ(x⁺·v_k)² and E(x⁺·v₁)², M = 0."""
    eta, K = tiny.theorem.step, tiny.noise.K
    alpha, beta = 1.0, 1 - eta + eta * tiny.at.bar
    off0 = tiny.x0[1] ** 2
    for angle in np.linspace(-1, 1, 41) * math.acos(1 - tiny.delta):
        x = np.array([math.cos(angle), math.sin(angle)])
        after = tiny.steps(x, tiny.x0, eta)
        assert (after**2).sum(axis=1).mean() <= alpha**2 + eta**2 * K + 1e-12
        assert (after[:, 1] ** 2).mean() <= beta**2 * x[1] ** 2 + 8 * eta**2 * K * off0 + 1e-12
        assert (after[:, 0] ** 2).mean() >= alpha**2 * x[0] ** 2 - 1e-12


def test_lemmas_4_and_5_an_epoch_over_all_sequences(tiny):
    """The recursion over t steps, and δ_m ≤ (1 − ρ) δ₀, in exact expectation."""
    eta, K = tiny.theorem.step, tiny.noise.K
    beta, x = 1 - eta + eta * tiny.at.bar, tiny.x0[None]
    for t in range(1, LENGTH + 1):
        x = tiny.steps(x, tiny.x0, eta).reshape(-1, 2)
        off, along = (x**2).mean(axis=0)[[1, 0]]
        assert off <= tiny.x0[1] ** 2 * (beta ** (2 * t) + 16 * eta**2 * K * t) + 1e-12
        assert along >= tiny.x0[0] ** 2 - 1e-12
    assert off / along <= (1 - tiny.theorem.rho) * tiny.x0[1] ** 2 / tiny.x0[0] ** 2


def test_theorem_over_epochs(tiny):
    """δ_T ≤ (1 − ρ)^T δ₀ over 4,000 random runs of Algorithm 1, and for the solver itself."""
    rng = np.random.default_rng(0)
    eta, rho, delta0 = tiny.theorem.step, tiny.theorem.rho, tiny.x0[1] ** 2 / tiny.x0[0] ** 2
    x = np.tile(tiny.x0, (4000, 1))
    for T in range(1, 9):
        anchor = x
        for _ in range(LENGTH):
            every = tiny.steps(x, anchor, eta)
            x = every[np.arange(len(x)), rng.integers(6, size=len(x))]
        off, along = (x**2).mean(axis=0)[[1, 0]]
        assert off / along <= (1 - rho) ** T * delta0
    solver = SSciPi(eta, batch=5 / 6, epoch=LENGTH)
    errors = []
    for seed in range(20):
        state = solver.init(tiny.problem, tiny.x0[None], seed)
        for _ in range(8):
            state = solver.advance(tiny.problem, state)
        errors.append(state.x[0, 1] ** 2 / state.x[0, 0] ** 2)
    assert np.mean(errors) <= (1 - rho) ** 8 * delta0
    assert tiny.theorem.epochs(1e-10) == math.ceil(math.log(1e10) / rho)


def test_no_epoch_length_promises_more_than_a_quarter():
    rng = np.random.default_rng(1)
    for _ in range(500):
        at = LocalSpectrum(1.0, 0.0, 1.0, np.array([rng.random()]))
        K = 10.0 ** rng.uniform(-9, 0)
        noise = Variance(K, K * rng.uniform(1, 9), 10 * K, "made up")
        delta = largest_delta(at, noise, 0.0) * rng.random()
        th = conditions(at, noise, 0.0, delta, int(rng.integers(1, 1000)))
        assert 0 <= th.rho <= 0.25 + 1e-12


def test_the_eta_branch_gets_harder_as_the_start_improves():
    """ν₃ grows as Δ₀^(−3/2), so one η cannot serve all epochs; the diagnosis calls it vacuous."""
    at = LocalSpectrum(1.0, 0.0, 1.0, np.array([0.284]))
    noise = Variance(0.2, 0.5, 3.0, "made up")
    steps = [conditions(at, noise, 0.0, delta, 10).step for delta in (1e-5, 1e-7, 1e-11)]
    assert steps[0] / steps[1] == pytest.approx(1e3, rel=0.05)
    assert steps[1] / steps[2] == pytest.approx(1e6, rel=0.05)
    problem = PROBLEMS["pca"]()
    x = solve(problem, SciPi(), stop=Stop(1e-12)).x
    report = diagnose(problem, x)
    assert report.verdict.startswith("Vacuous (η-branch)")
    assert report.theorem.rho < 1e-5
