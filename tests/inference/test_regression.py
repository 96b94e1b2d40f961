# SPDX-License-Identifier: BSD-3-Clause
"""Poisson regressions of features on weights: optimum, information and its limits."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from sipower import as_matrix
from sipower.inference.regression import information, regress

RNG = np.random.default_rng(0)
N, M, RANK, PRIOR = 60, 12, 3, 0.1
W = RNG.gamma(0.7, 3.0, (N, RANK))
H = RNG.gamma(0.5, 1.0, (M, RANK))
V = RNG.poisson(W @ H.T).astype(float)
LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}


def objective(t, v, W=W, prior=PRIOR):
    z = W @ np.exp(t)
    return z.sum() - v @ np.log(z) - prior * t.sum()


def slope(t, v):
    h = np.exp(t)
    return h * (W.sum(axis=0) - W.T @ (v / (W @ h))) - PRIOR


def numerical_hessian(v, t, step=1e-3):
    """Return the Hessian by differences of fourth order of the gradient."""
    weights = ((-2, 1), (-1, -8), (1, 8), (2, -1))
    rows = [
        sum(w * slope(t + s * step * e, v) for s, w in weights) / (12 * step)
        for e in np.eye(len(t))
    ]
    return np.array(rows)


@pytest.fixture(params=sorted(LAYOUTS))
def matrix(request):
    return as_matrix(LAYOUTS[request.param](V))


def test_coefficients_minimise_the_objective(matrix):
    result = regress(matrix, W, PRIOR)
    assert result.gap <= 1e-9
    for j in range(M):
        t = np.log(result.h[j])
        direct = minimize(objective, t, args=(V[:, j],), method="BFGS", options={"gtol": 1e-10})
        assert objective(t, V[:, j]) == pytest.approx(direct.fun, rel=1e-9)


def test_the_covariance_is_the_inverse_of_the_numerical_hessian(matrix):
    result = regress(matrix, W, PRIOR)
    for j in range(M):
        J = numerical_hessian(V[:, j], np.log(result.h[j]))
        expected = np.linalg.inv(J)
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        np.testing.assert_allclose(result.covariance[j] / scale, expected / scale, atol=1e-6)


def test_the_information_is_a_sum_over_nonzeros(matrix):
    h = RNG.gamma(1.0, 1.0, (M, RANK))
    Z = W @ h.T
    expected = np.einsum("ij,ia,ib->jab", V / Z**2, W, W)
    np.testing.assert_allclose(information(matrix, W, h), expected, rtol=1e-12)


def test_the_scale_of_the_weights_does_not_change_the_covariance(matrix):
    scale = np.array([0.01, 1.0, 300.0])
    one, other = regress(matrix, W, PRIOR), regress(matrix, W * scale, PRIOR)
    np.testing.assert_allclose(other.h * scale, one.h, rtol=1e-5)
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-5, atol=1e-8)


def test_collinear_and_empty_components_have_wide_intervals():
    doubled = np.column_stack([W, W[:, 0], np.zeros(N)])
    result = regress(as_matrix(V), doubled, PRIOR)
    assert np.isfinite(result.covariance).all()
    variance = np.einsum("jkk->jk", result.covariance)
    assert (variance <= 1 / PRIOR * (1 + 1e-9)).all()
    np.testing.assert_allclose(variance[:, 4], 1 / PRIOR)
    single = np.einsum("jkk->jk", regress(as_matrix(V), W, PRIOR).covariance)
    assert (variance[:, 0] > 2 * single[:, 0]).mean() > 0.8


def test_features_without_counts_have_the_prior_alone():
    data = V.copy()
    data[:, 5] = 0
    result = regress(as_matrix(data), W, PRIOR)
    np.testing.assert_allclose(result.covariance[5], np.eye(RANK) / PRIOR, rtol=1e-9)
    np.testing.assert_allclose(result.h[5] * W.sum(axis=0), PRIOR, rtol=1e-6)


def test_standard_errors_are_those_of_repeated_data():
    """A parametric bootstrap of one regression with many counts: 10 % of the error."""
    rng, h = np.random.default_rng(1), np.array([[2.0, 0.7, 1.3]])
    draws = rng.poisson(np.repeat(W @ h.T, 1500, axis=1)).astype(float)
    result = regress(as_matrix(draws), W, 1e-3)
    spread = np.log(result.h).std(axis=0)
    errors = np.sqrt(np.einsum("jkk->jk", result.covariance)).mean(axis=0)
    np.testing.assert_allclose(errors, spread, rtol=0.1)
