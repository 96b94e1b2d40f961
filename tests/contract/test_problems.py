# SPDX-License-Identifier: BSD-3-Clause
"""What every registered problem promises: its gradient, its degree, its batches, its refusals."""

import numpy as np
import pytest

from contract.problem_examples import EXAMPLES, RNG
from sipower import SciPi, SSciPi, Stop, check_problem, solve
from sipower.problems import (
    ICA,
    PCA,
    GaussianMixture,
    KLBlock,
    LpKernelPCA,
    Problem,
)
from sipower.solvers.s_sci_pi import anchor_factor


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


@pytest.mark.parametrize("kind", ["ica", "lp-kernel-pca"])
def test_deflated_hessians_are_projected_on_both_sides(kind):
    problem = EXAMPLES[kind]()
    start = problem.start(4)
    deflated = (
        ICA(problem.A, orthogonal_to=start, whitened=True)
        if kind == "ica"
        else LpKernelPCA.from_features(problem.A, 3.0, orthogonal_to=start)
    )
    x = deflated.start(5)
    P = np.eye(x.shape[1]) - start.T @ start
    expected = P @ problem.hessian(x)[0] @ P
    np.testing.assert_allclose(deflated.hessian(x)[0], expected, atol=1e-12)
    np.testing.assert_allclose(Problem.hessian(deflated, x)[0], expected, atol=1e-7)


BAD = {
    "found everything": (
        lambda: PCA(np.ones((3, 2)), orthogonal_to=np.eye(2)),
        "`orthogonal_to` spans all 2 dimensions",
    ),
    "other problem": (
        lambda: solve(GaussianMixture(RNG.random((9, 2)), 2), SciPi()),
        "`degree`",
    ),
    "text": (lambda: SSciPi("big"), "`step` must be a positive number, got big"),
    "NaN": (lambda: PCA([[1.0, np.nan]]), "NaN"),
    "all zero": (lambda: PCA(np.zeros((3, 2))), "`A` must have a nonzero entry"),
    "scheme": (lambda: solve(EXAMPLES["pca"](), SSciPi(scheme="elements")), "whole samples"),
    "x0 of NaN": (lambda: solve(EXAMPLES["pca"](), SciPi(), np.full((1, 6), np.nan)), "finite"),
    "x0 of zeros": (
        lambda: solve(EXAMPLES["pca"](), SciPi(), np.zeros((1, 6))),
        "`x0` must be finite and not all zero",
    ),
    "huge": (lambda: PCA(np.ones((3, 2)) * 1e200), "must have its largest entry between"),
    "tiny": (lambda: PCA(np.ones((3, 2)) * 1e-200), "must have its largest entry between"),
    "tol": (lambda: Stop(tol=float("nan")), "`tol` must be a non-negative number, got nan"),
    "rounds": (lambda: Stop(rounds=-5), "`rounds` must be a non-negative number, got -5"),
    "trace": (
        lambda: solve(EXAMPLES["pca"](), SciPi(), trace="all"),
        "`trace` must be .*, got .all.",
    ),
    "threshold": (
        lambda: SSciPi(threshold=float("nan")),
        r"`threshold` must be a number in \[0, 1\), got nan",
    ),
    "part of a step": (
        lambda: SSciPi(epoch=2.5),
        "`epoch` must be a positive integer, got 2.5",
    ),
    "x0": (
        lambda: solve(EXAMPLES["pca"](), SciPi(), np.ones((1, 3))),
        r"`x0` must have shape \(1, 6\)",
    ),
    "basis": (lambda: KLBlock(np.ones((3, 4)), np.ones((3, 2))), r"must have shape \(4, rank\)"),
    "step": (lambda: SciPi(0.0), "`step` must be a positive number, got 0.0"),
    "step of s-sci-pi": (lambda: SSciPi(float("nan")), "`step` must be a positive number, got nan"),
    "batch": (
        lambda: SSciPi(batch=0.0),
        r"`batch` must be a number in \(0, 1\], got 0.0",
    ),
    "epoch": (lambda: SSciPi(epoch=0), "`epoch` must be a positive integer, got 0"),
    "unknown scheme": (lambda: SSciPi(scheme="rows"), "`scheme` must be one of .*, got 'rows'"),
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
    with pytest.raises(ValueError, match="`problem` must be a Problem, got a GaussianMixture"):
        check_problem(GaussianMixture(rng.normal(size=(20, 2)), 2))


def test_a_wrong_degree_fails_in_float32_too():
    class Wrong(KLBlock):
        degree = 1.0

    rng = np.random.default_rng(0)
    V, B = rng.poisson(2.0, (6, 9)).astype("float32"), rng.random((9, 3)).astype("float32")
    with pytest.raises(ValueError, match="FAILED"):
        check_problem(Wrong(V, B))
