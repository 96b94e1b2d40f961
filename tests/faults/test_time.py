# SPDX-License-Identifier: BSD-3-Clause
"""No time at all, and clocks that cannot be trusted."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import KLNMF, GaussianEM, SciPi, SSciPi, Status, Stop, nmf, solve
from sipower.nmf import Factorization, make_solver
from sipower.nmf.init import initial_factors
from sipower.problems import PCA, GaussianMixture

V = np.random.default_rng(0).poisson(2.0, (50, 30)).astype(float)
A = np.random.default_rng(1).normal(size=(60, 4)) * [4, 3, 2, 1]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_without_time_a_fit_returns_its_start_and_says_so(solver, layout):
    model = KLNMF(3, solver=solver, random_state=0, max_time=0)
    W = model.fit_transform(layout(V))
    H = model.components_
    assert (model.status_, model.n_iter_) == ("max_seconds", 0)
    assert np.isfinite(W).all()
    assert np.isfinite(H).all()
    assert model.kl_divergence_ == pytest.approx(oracles.divergence(V, W, H.T), rel=1e-12)
    start = nmf.Factors(*initial_factors(model._matrix(layout(V), reset=False), 3, 0))
    assert model.kl_divergence_ <= oracles.divergence(V, *start) * (1 + 1e-12)
    assert model.transform(V).shape == (50, 3)


@pytest.mark.parametrize(
    ("problem", "solver"),
    [
        *((Factorization(V, 3), make_solver(name)) for name in nmf.SOLVERS),
        (PCA(A), SciPi()),
        (PCA(A), SSciPi()),
        (GaussianMixture(A, 2), GaussianEM()),
    ],
    ids=[*nmf.SOLVERS, "SCI-PI", "S-SCI-PI", "Gaussian EM"],
)
def test_without_time_solve_returns_its_start_and_says_so(problem, solver):
    result = solve(problem, solver, stop=Stop(0, seconds=0))
    assert result.status is Status.MAX_SECONDS
    assert (result.state.round, len(result.trace)) == (0, 1)
    assert np.isfinite(result.value)
    assert np.isfinite(result.residual)


CLOCKS = {
    "backwards": (1e6 - 7.0 * i for i in itertools.count()),
    "still": (0.0 for _ in itertools.count()),
    "forwards and back": (1e9 if i % 5 == 3 else 0.001 * i for i in itertools.count()),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("solver", ["auto", "mu", "rows"])
def test_a_clock_that_goes_wrong_makes_no_time_negative_and_no_fit_endless(
    set_clock, tmp_path, solver, clock
):
    settings = {"solver": solver, "random_state": 0, "tol": 0, "max_iter": 7}
    expected = KLNMF(3, **settings).fit(V)
    set_clock(lambda: next(CLOCKS[clock]))
    model = KLNMF(3, **settings, checkpoint=tmp_path / "run.npz", checkpoint_every=1).fit(V)
    assert (model.status_, model.n_iter_) == ("max_rounds", 7)
    seconds = [record.seconds for record in model.trace_]
    assert min(seconds) >= 0
    assert seconds == sorted(seconds)
    assert model.components_.tobytes() == expected.components_.tobytes()


def test_a_limit_of_seconds_on_a_clock_that_goes_back_leaves_the_limit_of_rounds(set_clock):
    set_clock(lambda: next(CLOCKS["backwards"]))
    model = KLNMF(3, random_state=0, tol=0, max_iter=7, max_time=1000).fit(V)
    assert (model.status_, model.n_iter_) == ("max_rounds", 7)


def test_a_clock_that_jumps_beyond_the_limit_ends_the_fit_with_the_present_round(set_clock):
    now = 0.0

    def jump(record):
        nonlocal now
        now += 3600.0 if record.round == 3 else 0.0

    set_clock(lambda: now)
    model = KLNMF(3, random_state=0, tol=0, max_iter=9, max_time=60, on_round=jump).fit(V)
    assert (model.status_, model.n_iter_) == ("max_seconds", 4)
