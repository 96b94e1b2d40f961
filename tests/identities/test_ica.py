# SPDX-License-Identifier: BSD-3-Clause
"""ICA: SCI-PI is FastICA, and the sources are those of scikit-learn."""

import numpy as np
import pytest
from sklearn.decomposition import FastICA

from sipower import SciPi, Stop, solve
from sipower.problems import (
    ICA,
)
from sipower.problems.ica import whiten

RNG = np.random.default_rng(0)


def test_sci_pi_step_is_the_fastica_step():
    problem = ICA(RNG.laplace(size=(500, 4)) @ RNG.normal(size=(4, 4)))
    w = problem.start(1)
    u = problem.A @ w[0]
    step = (problem.A * (u**3)[:, None]).mean(axis=0) - 3 * w[0]
    step /= np.linalg.norm(step)
    w_next = SciPi().advance(problem, SciPi().init(problem, w, 0)).x[0]
    np.testing.assert_allclose(w_next, step * np.sign(step @ w_next), rtol=1e-12)
    np.testing.assert_allclose(problem.gradient(w)[0], step * np.linalg.norm(problem.gradient(w)))


def test_sub_gaussian_sources_have_kurtosis_minus_1_2():
    S = np.random.default_rng(3).uniform(-1, 1, (400_000, 2))
    problem = ICA(S, sign=-1)
    w = solve(problem, SciPi(), stop=Stop(1e-8)).x
    lam = float(problem.inner(w, problem.gradient(w))[0])
    assert lam == pytest.approx(1.2, abs=0.02)


def test_sources_match_scikit_learns_fastica():
    """Its example: a sine, a square wave and a saw tooth, mixed; kurtosis of all is negative."""
    time = np.linspace(0, 8, 2000)
    S = np.c_[np.sin(2 * time), np.sign(np.sin(3 * time)), 2 * (time * 1.1 % 1) - 1]
    S += 0.1 * np.random.default_rng(0).normal(size=S.shape)
    X = S @ np.array([[1, 1, 1], [0.5, 2, 1.0], [1.5, 1.0, 2.0]]).T
    Z, _ = whiten(X)
    rows = []
    for _ in range(3):
        problem = ICA(Z, sign=-1, orthogonal_to=np.array(rows) if rows else None, whitened=True)
        rows.append(solve(problem, SciPi(), stop=Stop(1e-10), seed=len(rows)).x[0])
    ours = Z @ np.array(rows).T
    theirs = FastICA(3, fun="cube", whiten="unit-variance", random_state=0).fit_transform(X)
    match = np.abs(np.corrcoef(ours.T, theirs.T)[:3, 3:])
    assert (match.max(axis=1) > 0.999).all()
    assert sorted(match.argmax(axis=1)) == [0, 1, 2]


@pytest.mark.parametrize("c", [1e-200, 1e160, 1e300])
def test_whitening_forgets_the_scale(c):
    X = np.random.default_rng(4).laplace(size=(80, 3))
    Z, M = whiten(c * X)
    np.testing.assert_allclose(Z, whiten(X)[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((c * X - (c * X).mean(axis=0)) @ M, Z, rtol=1e-9, atol=1e-9)
