# SPDX-License-Identifier: BSD-3-Clause
"""Lp-norm and plain PCA: rates, closed forms, further directions, numbers of any size."""

import numpy as np
import pytest

from sipower import SciPi, Stop, solve
from sipower.problems import (
    PCA,
    LpKernelPCA,
)
from sipower.problems.lp_kernel_pca import pivoted_cholesky

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.0])
def test_sci_pi_never_lowers_a_convex_objective(p):
    problem = LpKernelPCA(np.random.default_rng(1).normal(size=(40, 6)), p)
    state = SciPi().init(problem, None, 0)
    before = problem.value(state.x)
    for _ in range(60):
        state = SciPi().advance(problem, state)
        after = problem.value(state.x)
        assert after >= before * (1 - 1e-12)
        before = after


@pytest.mark.parametrize("seed", range(10))
def test_l1_stops_after_finitely_many_steps(seed):
    problem = LpKernelPCA(np.random.default_rng(seed).normal(size=(40, 6)), 1.0)
    result = solve(problem, SciPi(), stop=Stop(1e-14, rounds=100), seed=seed)
    assert result.residual <= 1e-14


def test_kernel_matrix_and_features_give_the_same_answer():
    X = np.random.default_rng(2).normal(size=(30, 4))
    direct = solve(LpKernelPCA(X, 3.0), SciPi(), stop=Stop(1e-10), seed=0).value
    by_kernel = solve(LpKernelPCA(X @ X.T, 3.0, "precomputed"), SciPi(), stop=Stop(1e-10)).value
    assert by_kernel == pytest.approx(direct, rel=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_p_2_is_kernel_pca(kernel):
    from sklearn.metrics.pairwise import pairwise_kernels  # noqa: PLC0415

    X = np.random.default_rng(3).normal(size=(25, 3))
    top = np.linalg.eigvalsh(pairwise_kernels(X, metric=kernel))[-1]
    result = solve(LpKernelPCA(X, 2.0, kernel), SciPi(), stop=Stop(1e-9, rounds=50_000))
    assert result.value == pytest.approx(top / (2 * 25), rel=1e-9)


def test_pivoted_cholesky():
    F = RNG.normal(size=(20, 5))
    A, pivots = pivoted_cholesky(F @ F.T)
    assert A.shape == (20, 5)
    np.testing.assert_allclose(A @ A.T, F @ F.T, atol=1e-10)
    np.testing.assert_array_equal(A[pivots], np.tril(A[pivots]))


def test_features_of_new_points_reproduce_the_kernel():
    """a(z)·a(x_i) = k(z, x_i) for z in the span of the samples."""
    F, Z = RNG.normal(size=(20, 5)), RNG.normal(size=(7, 5))
    cholesky = pivoted_cholesky(F @ F.T)
    features = cholesky.features(Z @ F[cholesky.pivots].T)
    np.testing.assert_allclose(features @ cholesky.A.T, Z @ F.T, atol=1e-10)
    np.testing.assert_allclose(features @ features.T, Z @ Z.T, atol=1e-10)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_further_lp_directions_are_orthogonal_to_those_found(p):
    X = np.random.default_rng(8).normal(size=(60, 4)) * [4, 3, 2, 1]
    directions = np.zeros((0, 4))
    for seed in range(4):
        problem = LpKernelPCA(X, p, orthogonal_to=directions)
        x = solve(problem, SciPi(), stop=Stop(1e-9, rounds=5000), seed=seed).x
        assert problem.residual(x) <= 1e-9
        directions = np.vstack([directions, x])
    np.testing.assert_allclose(directions @ directions.T, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("data", ["one sample", "rank one"])
def test_directions_beyond_the_rank_are_orthogonal_to_those_found(data):
    A = np.ones((1, 5))
    if data == "rank one":
        A = np.outer(np.random.default_rng(0).normal(size=50), np.ones(5))
    residuals = []
    for _ in range(5):
        problem = PCA(A, orthogonal_to=residuals or None)
        x = solve(problem, SciPi(), stop=Stop(1e-6, rounds=100)).x[0]
        assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)
        assert all(abs(x @ other) <= 1e-12 for other in residuals)
        residuals.append(x)


@pytest.mark.parametrize(("p", "c"), [(2.0, 1e-76), (4.0, 1e-37), (20.0, 1e-7), (20.0, 1e7)])
def test_a_small_gradient_is_no_small_residual(p, c):
    """The residual is that of the same data at scale 1, though squares of ∇f are zero."""
    A = np.random.default_rng(3).normal(size=(50, 3))
    x = LpKernelPCA.from_features(A, p).start(0)
    truth = LpKernelPCA.from_features(A, p).residual(x)
    assert truth > 0.1
    assert LpKernelPCA.from_features(c * A, p).residual(x) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("c", [1e-120, 1e120])
def test_powers_that_leave_the_range_are_refused(c):
    A = np.random.default_rng(3).normal(size=(50, 3))
    with pytest.raises(ValueError, match=r"powers with p=4\.0 are outside the range"):
        LpKernelPCA.from_features(c * A, 4.0)
    with pytest.raises(ValueError, match="too small: rescale"):
        LpKernelPCA(1e-160 * A, 1.0)
