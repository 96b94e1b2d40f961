# SPDX-License-Identifier: BSD-3-Clause
"""Mixture proportions: optimality, scales, the exact routine, bad input."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sipower import SciPi, Stop, max_cut, solve
from sipower.problems import (
    ICA,
    BurerMonteiro,
    LpKernelPCA,
    MixtureProportions,
    mixture_proportions,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("weighted", [False, True])
def test_mixture_proportions_are_optimal(weighted):
    L = np.random.default_rng(4).gamma(0.5, 1.0, (300, 6)) + 1e-3
    v = np.random.default_rng(5).random(300) if weighted else None
    result = mixture_proportions(L, v)
    w = np.ones(300) if v is None else v

    def objective(z):
        x = np.exp(z - z.max())
        x /= x.sum()
        return -(w * np.log(L @ x)).sum()

    best = -minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).fun
    assert result.gap <= 1e-8
    assert result.proportions.sum() == pytest.approx(1, abs=1e-12)
    assert result.log_likelihood >= best - 1e-6
    G = L.T @ (w / (L @ result.proportions)) / w.sum()
    assert G.max() - 1 <= 2e-8


def test_log_likelihoods_do_not_underflow():
    logs = np.random.default_rng(6).normal(size=(100, 4)) * 3
    plain = mixture_proportions(np.exp(logs))
    shifted = mixture_proportions(logs - 5000.0, log=True)
    np.testing.assert_allclose(shifted.proportions, plain.proportions, atol=1e-6)
    assert shifted.log_likelihood == pytest.approx(plain.log_likelihood - 500_000, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-295, 1e-307, 1e300])
def test_the_scale_of_a_row_only_shifts_the_likelihood(scale):
    """Also where products of it would leave the range of floats; the certificate is no lie."""
    rng = np.random.default_rng(0)
    L = rng.gamma(1.0, 1.0, (300, 5))
    plain = mixture_proportions(L)
    scales = np.where(rng.random(300) < 0.5, scale, 1.0)
    result = mixture_proportions(L * scales[:, None])
    G = (L / (L @ result.proportions)[:, None]).mean(axis=0)
    assert G.max() - 1 <= result.gap + 1e-12
    np.testing.assert_allclose(result.proportions, plain.proportions, atol=1e-6)
    shifted = plain.log_likelihood + np.log(scales).sum()
    assert result.log_likelihood == pytest.approx(shifted, rel=1e-9)
    solved = solve(MixtureProportions(L * scale), SciPi(), stop=Stop(1e-8, rounds=5000))
    np.testing.assert_allclose(solved.x[0] ** 2, plain.proportions, atol=1e-4)


def test_solvers_and_the_exact_routine_agree():
    L = np.random.default_rng(7).gamma(1.0, 1.0, (200, 5))
    problem = MixtureProportions(L)
    result = solve(problem, SciPi(0.9), stop=Stop(1e-10, rounds=100_000))
    exact = mixture_proportions(L)
    np.testing.assert_allclose(problem.proportions(result.x), exact.proportions, atol=1e-5)
    assert 2 * problem.V.total * result.value == pytest.approx(exact.log_likelihood, rel=1e-9)


BAD_MIXTURES = {
    "zero row": (lambda: MixtureProportions([[1.0, 2], [0, 0]]), "Row 1 of `L` is zero"),
    "zero log row": (lambda: MixtureProportions([[-np.inf, -np.inf]], log=True), "Row 0"),
    "negative": (
        lambda: MixtureProportions([[1.0, -2]]),
        r"`L` must be non-negative, got -2.0 at \(0, 1\)",
    ),
    "NaN": (lambda: MixtureProportions([[1.0, np.nan]]), "NaN"),
    "NaN log": (lambda: MixtureProportions([[1.0, np.nan]], log=True), "NaN"),
    "weights": (lambda: MixtureProportions([[1.0, 2]], [-1.0]), "weights"),
    "zero weights": (
        lambda: MixtureProportions([[1.0, 2]], [0.0]),
        "`weights` must not be all zero",
    ),
    "p": (
        lambda: LpKernelPCA(np.ones((2, 2)), p=0.5),
        "`p` must be a finite number of at least 1, got 0.5",
    ),
    "infinite p": (
        lambda: LpKernelPCA(np.ones((2, 2)), p=np.inf),
        "`p` must be a finite number of at least 1, got inf",
    ),
    "kernel": (lambda: LpKernelPCA(np.ones((2, 3)), kernel="precomputed"), "must be square"),
    "indefinite": (
        lambda: LpKernelPCA([[1.0, 2], [2, 1]], kernel="precomputed"),
        "must be positive semi-definite",
    ),
    "found": (
        lambda: LpKernelPCA(np.eye(3), orthogonal_to=np.ones((1, 2))),
        "`orthogonal_to` must be finite",
    ),
    "sign": (lambda: ICA(RNG.normal(size=(9, 2)), sign=2), "`sign` must be 1 or -1, got 2"),
    "covariance": (lambda: ICA(np.ones((9, 2))), "singular covariance"),
    "costs": (lambda: BurerMonteiro(np.triu(np.ones((3, 3)))), "`C` must be a symmetric matrix"),
    "diagonal": (lambda: BurerMonteiro(np.eye(3)), "`C` must have a nonzero off its diagonal"),
    "graph": (lambda: max_cut(-np.ones((3, 3))), "weights of `graph` must be non-negative"),
}


@pytest.mark.parametrize("what", BAD_MIXTURES)
def test_bad_input_gets_one_sentence(what):
    action, message = BAD_MIXTURES[what]
    with pytest.raises(ValueError, match=message):
        action()
