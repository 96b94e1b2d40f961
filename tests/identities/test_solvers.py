# SPDX-License-Identifier: BSD-3-Clause
"""Starts, options and costs of the solvers; one round of SCI-PI and EM is its formula in NumPy."""

import math
from dataclasses import replace

import numpy as np
import pytest

from identities.solver_examples import A, kl
from sipower import GaussianEM, SciPi, SSciPi, solve
from sipower.data.sampling import SCHEMES
from sipower.kernels import FLOOR
from sipower.problems import PCA, BurerMonteiro, GaussianMixture
from sipower.solvers.gaussian_em import PlainEM

C = A.T @ A / 30


def unit(x):
    return x / np.linalg.norm(x)


# ---- starts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [SciPi(0.7), SSciPi(0.7)])
def test_a_run_begins_at_the_normalised_start(solver):
    state = solver.init(PCA(A), np.array([[3, 0, 0, 4, 0, 0]]), 9)
    np.testing.assert_allclose(state.x, [[0.6, 0, 0, 0.8, 0, 0]], rtol=1e-15)
    assert (state.step, state.seed, state.round, state.passes, state.side) == (0.7, 9, 0, 0.0, 0)
    assert math.isnan(state.value)
    np.testing.assert_array_equal(solver.init(PCA(A), None, 9).x, PCA(A).start(9))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_a_start_keeps_its_floating_point_type(dtype):
    x = SciPi().init(kl(), np.ones((4, 5), dtype), 0).x
    assert x.dtype == (np.float32 if dtype == np.float32 else np.float64)


def test_a_run_may_begin_in_a_few_coordinates_but_not_nowhere():
    assert SciPi().init(PCA(A), np.eye(1, 6), 0).x[0, 0] == 1
    for x0 in (np.full((1, 6), np.inf), np.eye(1, 6) * np.nan, np.zeros((1, 6))):
        with pytest.raises(ValueError, match=r"^`x0` must be finite and not all zero\.$"):
            SciPi().init(PCA(A), x0, 0)


def test_a_solver_of_another_kind_of_problem_names_it():
    with pytest.raises(ValueError, match=r"^SciPi needs a problem with `degree`, which Gauss"):
        solve(GaussianMixture(A, 2), SciPi())
    with pytest.raises(ValueError, match=r"^`problem` must be a GaussianMixture, got a PCA\.$"):
        GaussianEM().init(PCA(A), None, 0)
    with pytest.raises(
        ValueError, match=r"^`SSciPi` does not support BurerMonteiro, .*: use SciPi"
    ):
        SSciPi().init(BurerMonteiro(C), None, 0)


@pytest.mark.parametrize("step", [0.0, -1.0, math.inf, math.nan, "1", None, 1j])
def test_a_step_is_a_positive_number(step):
    for solver in (SciPi, SSciPi, GaussianEM):
        if step is None and solver is SSciPi:
            continue  # measured
        with pytest.raises(ValueError, match=f"^`step` must be a positive number, got .*{step}"):
            solver(step)
    assert SciPi(np.float32(0.5)).step == 0.5


@pytest.mark.parametrize(
    ("option", "good", "bad", "expected"),
    [
        ("threshold", [0, 0.5, np.float32(0.1)], [-0.1, 1, math.nan, "0"], r"a number in \[0, 1\)"),
        ("batch", [1, 1.0, 1e-9], [0, -1.0, 1.5, math.nan, "1"], r"a number in \(0, 1\]"),
        ("epoch", [1, 2, np.int32(3)], [0, -1, 1.0, "2"], "a positive integer"),
        ("scheme", SCHEMES, ["rows", None], "one of vectors, elements, stratified, weighted"),
    ],
)
def test_options_of_an_epoch_have_their_ranges(option, good, bad, expected):
    for value in good:
        assert getattr(SSciPi(**{option: value}), option) == value
    for value in bad:
        with pytest.raises(
            ValueError, match=rf"^`{option}` must be {expected}, got '?{value}'?\.$"
        ):
            SSciPi(**{option: value})


# ---- SCI-PI --------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [1.0, 0.4, 1.7])
def test_a_round_of_sci_pi_is_a_damped_power_step(eta):
    state = replace(SciPi().init(PCA(A), None, 1), step=eta, round=4, passes=2.5)
    x = state.x[0]
    g = C @ x
    new = SciPi().advance(PCA(A), state)
    np.testing.assert_allclose(new.x[0], unit((1 - eta) * x + eta * g / (x @ g)), rtol=1e-12)
    assert (new.round, new.passes, new.step, new.seed) == (5, 3.5, eta, 1)


@pytest.mark.parametrize("eta", [1.0, 0.4])
def test_rows_that_interact_are_swept_one_after_another(eta):
    """Each row sees the new ones before it; one without a gradient or at its end stays."""
    costs = np.zeros((5, 5))
    costs[:4, :4] = C[:4, :4]
    problem = BurerMonteiro(costs, rank=3)
    state = SciPi(eta).init(problem, None, 1)
    X = state.x.copy()
    for i in range(5):
        g = (costs[i] @ X) - costs[i, i] * X[i]
        step = (1 - eta) * X[i] + eta * g / (abs(X[i] @ g) or 1)
        X[i] = step / (np.linalg.norm(step) or 1)
    before = state.x.copy()
    result = SciPi(eta).advance(problem, state).x
    np.testing.assert_allclose(result, X, rtol=1e-12)
    np.testing.assert_array_equal(state.x, before)
    assert np.isfinite(result).all()
    # Where nothing pulls, the damped part alone is left: the row, or zero at η = 1.
    np.testing.assert_allclose(result[4], (eta < 1) * before[4], rtol=1e-12)


def test_what_a_guard_may_do_with_a_step():
    assert SciPi(0.3).largest_step(PCA(A)) == 0.3
    assert SciPi(0.3).safe() == SciPi(0.3)
    assert [SSciPi(s).largest_step(PCA(A)) for s in (None, 0.3, 1.7)] == [0.8, 1.0, 1.7]
    assert SSciPi(0.3).safe() == SciPi()
    assert GaussianEM(0.3).largest_step(GaussianMixture(A, 2)) == 0.3
    assert GaussianEM(0.3).safe() == PlainEM()


# ---- Gaussian mixtures ---------------------------------------------------------------------------


def test_a_round_of_em_is_counted_and_no_weight_dies():
    problem = GaussianMixture(A, 2)
    far = problem.start(0)._replace(means=np.array([A.mean(axis=0), np.full(6, 1e6)]))
    state = replace(GaussianEM(1.0).init(problem, far, 0), round=4, passes=2.5, value=1.0)
    new = GaussianEM(1.0).advance(problem, state)
    assert (new.round, new.passes, new.step, new.seed) == (5, 3.5, 1.0, 0)
    assert math.isnan(new.value)
    np.testing.assert_allclose(new.weights, [1, FLOOR], rtol=1e-9)  # G = (2, 0)
    assert abs(new.weights.sum() - 1) < FLOOR
    for part, expected in zip(GaussianEM().init(problem, None, 3).x, problem.start(3), strict=True):
        np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("eta", [0.3, 1.0])
def test_means_and_covariances_follow_the_new_weights(eta):
    problem = GaussianMixture(A, 2)
    x = problem.start(0)._replace(weights=np.array([0.3, 0.7]))
    state = replace(GaussianEM().init(problem, x, 0), step=eta)
    G = problem.responsibilities(x).mean(axis=0) / x.weights
    weights = x.weights * (1 - eta + eta * G) ** 2
    weights /= weights.sum()
    R = problem.responsibilities(x._replace(weights=weights))
    new = GaussianEM().advance(problem, state)
    np.testing.assert_allclose(new.weights, weights, rtol=1e-12)
    np.testing.assert_allclose(new.means, R.T @ A / R.sum(axis=0)[:, None], rtol=1e-10)
    plain = PlainEM().advance(problem, state)
    np.testing.assert_allclose(plain.weights, x.weights * G, rtol=1e-12)


@pytest.mark.parametrize("rows", [20, 250, 1000])
def test_an_epoch_costs_what_it_reads(rows):
    """s is a whole number: of 20 rows a hundredth is one."""
    read = []

    class CountingProblem(PCA):
        def gradient(self, x, S=None):
            read.append(rows if S is None else len(S))
            return super().gradient(x, S)

    problem, solver = (
        CountingProblem(np.random.default_rng(0).normal(size=(rows, 4))),
        SSciPi(step=0.3),
    )
    state = solver.advance(problem, solver.init(problem, None, 0))
    assert state.passes == pytest.approx(sum(read) / rows)


def test_where_the_number_of_terms_is_unknown_the_share_is_that_asked_for():
    class Unknown(PCA):
        terms = None

    problem, solver = Unknown(np.random.default_rng(0).normal(size=(20, 4))), SSciPi(step=0.3)
    state = solver.advance(problem, solver.init(problem, None, 0))
    assert state.passes == pytest.approx(1 + problem.batch_passes * 119 * 0.01)
