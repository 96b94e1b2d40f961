# SPDX-License-Identifier: BSD-3-Clause
"""S-SCI-PI on any problem against a transcription of Algorithm 1 with the same batches.

One epoch from the solver's own anchor agrees to 1e-10, at quiet settings and at noisy ones, where
iterates leave their anchor and the factor α pulls them back. Iterates of the transcription are not
normalised, those of the library are: only directions are compared.
"""

import numpy as np
import pytest

import oracles
from oracles import direction
from sipower import SSciPi
from sipower.kernels import Draw, batch_size
from sipower.problems import ICA, PCA, LpKernelPCA
from sipower.problems.ica import whiten

RNG = np.random.default_rng(0)
A = RNG.normal(size=(40, 5)) * [3, 2, 1, 1, 1]
X = whiten(RNG.laplace(size=(60, 4)))[0]


SEED = 3


POINTS = {
    "pca": (PCA(A), oracles.pca_terms(A), 2),
    "l3-pca": (LpKernelPCA.from_features(A, 3.0), oracles.lp_pca_terms(A, 3), 3),
    "l1.5-pca": (LpKernelPCA.from_features(A, 1.5), oracles.lp_pca_terms(A, 1.5), 1.5),
    "ica": (ICA(X, whitened=True), oracles.ica_terms(X), 4),
}


def epoch_by_the_paper(terms, p, x0, solver, n, round_):
    """The epoch with f divided by λ = x₀·∇f(x₀), which makes η a true step at any scale of f."""
    scale = abs(direction(x0) @ terms(direction(x0)).mean(axis=0))
    size = batch_size(solver.batch, n)
    draws = (Draw(SEED, 0, round_, 0, t) for t in range(solver.epoch))
    batches = [draw.batch(n, size, replace=solver.replace) for draw in draws]
    return oracles.algorithm_1(lambda x: terms(x) / scale, p, x0, solver.step, batches)


@pytest.mark.parametrize(
    ("step", "batch", "epoch"), [(0.1, 0.5, 8), (0.5, 0.2, 20), (1.0, 0.025, 15), (1.0, 0.1, 40)]
)
@pytest.mark.parametrize("kind", POINTS)
def test_an_epoch_of_the_solver_is_algorithm_1(kind, step, batch, epoch):
    problem, terms, p = POINTS[kind]
    solver = SSciPi(step, batch, epoch)
    state = solver.init(problem, None, SEED)
    for round_ in range(3):  # each from the solver's own anchor
        x, cosines = epoch_by_the_paper(terms, p, state.x[0], solver, problem.terms or 60, round_)
        state = solver.advance(problem, state)
        if (cosines[1:] <= 0).any():
            continue  # excluded by the paper, whose factor has lost its sign there
        np.testing.assert_allclose(state.x[0], direction(x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", POINTS)
def test_epochs_in_a_row_are_algorithm_1_at_quiet_settings(kind):
    problem, terms, p = POINTS[kind]
    solver = SSciPi(0.1, batch=0.5, epoch=6)
    state = solver.init(problem, None, SEED)
    x = state.x[0]
    for round_ in range(6):
        x = epoch_by_the_paper(terms, p, x, solver, problem.terms or 60, round_)[0]
        state = solver.advance(problem, state)
    np.testing.assert_allclose(state.x[0], direction(x), rtol=0, atol=1e-10)


def test_a_negative_product_with_the_anchor_keeps_its_sign():
    """Excluded by the paper: ∇f at the projection of x_t on x₀ is −|x_t·x₀|^(p−1) ∇f(x₀)."""
    problem = LpKernelPCA.from_features(A, 3.0)
    x0, p = problem.start(1)[0], 3
    projection = -0.3 * x0
    expected = problem.gradient(projection[None])[0]
    printed = abs(projection @ x0) ** (p - 1) * problem.gradient(x0[None])[0]
    np.testing.assert_allclose(expected, -printed, rtol=1e-12)
