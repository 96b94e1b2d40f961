# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian mixtures: the weight step, monotone runs, fixed points of scikit-learn's EM."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as SklearnMixture

from sipower import GaussianEM, Guarded, Status, Stop, load_state, save_state, solve
from sipower.problems import GaussianMixture, Gaussians, mixture_proportions
from sipower.solvers.gaussian_em import PlainEM

CENTRES = np.array([[0.0, 0.0], [3.0, 1.0], [0.0, 4.0]])
TRUE = np.repeat([0, 1, 2], [60, 120, 180])
X = CENTRES[TRUE] + np.random.default_rng(0).normal(size=(360, 2)) * [1.0, 0.7]
EXACT = Stop(1e-11, rounds=20_000)


def log_likelihood(problem, x):
    parts = [w * multivariate_normal(m, c).pdf(problem.X) for w, m, c in zip(*x, strict=True)]
    return np.log(np.sum(parts, axis=0)).mean()


def one_round_of_scikit_learns(x, data):
    model = SklearnMixture(
        len(x.weights),
        weights_init=x.weights,
        means_init=x.means,
        precisions_init=np.linalg.inv(x.covariances),
        reg_covar=0.0,
        max_iter=1,
        tol=0.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data)
    return Gaussians(model.weights_, model.means_, model.covariances_)


# ---- formulas ------------------------------------------------------------------------------------


def test_value_and_responsibilities_are_those_of_the_densities():
    problem = GaussianMixture(X, 3)
    x = problem.start(0)
    assert problem.value(x) == pytest.approx(log_likelihood(problem, x), rel=1e-12)
    N = np.column_stack([multivariate_normal(m, c).pdf(X) for m, c in zip(*x[1:], strict=True)])
    R = N * x.weights
    np.testing.assert_allclose(
        problem.responsibilities(x), R / R.sum(axis=1, keepdims=True), rtol=1e-11
    )


def test_weight_step_squares_a_half_plus_the_multiplier():
    """With η = 2/3, π ← π∘(½ + G)², normalised."""
    problem = GaussianMixture(X, 3)
    x = problem.start(1)._replace(weights=np.array([0.2, 0.5, 0.3]))
    G = problem.responsibilities(x).mean(axis=0) / x.weights
    expected = x.weights * (0.5 + G) ** 2
    solver = GaussianEM()
    weights = solver.advance(problem, solver.init(problem, x, 0)).weights
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-12)


def test_plain_em_is_scikit_learns():
    """From a point whose weights are at rest, where both orders of the update are the same."""
    problem = GaussianMixture(X, 3)
    x = problem.start(2)
    weights = mixture_proportions(problem.log_densities(x), tol=1e-13, log=True).proportions
    x = x._replace(weights=weights)
    ours = PlainEM().advance(problem, PlainEM().init(problem, x, 0)).x
    for mine, theirs in zip(ours, one_round_of_scikit_learns(x, X), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_one_component_is_the_sample_mean_and_covariance():
    result = solve(GaussianMixture(X, 1), GaussianEM(), stop=Stop(1e-12))
    np.testing.assert_allclose(result.x.weights, [1.0], rtol=1e-15)
    np.testing.assert_allclose(result.x.means[0], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.x.covariances[0], np.cov(X.T, bias=True), rtol=1e-11)
    assert result.residual <= 1e-12


# ---- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [2 / 3, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_guarded_run_never_lowers_the_likelihood(step, seed):
    problem, solver = GaussianMixture(X, 5), Guarded(GaussianEM(step))
    state = solver.init(problem, None, seed)
    for _ in range(80):
        new = solver.advance(problem, state)
        assert problem.value(new.x) >= problem.value(state.x) - problem.rounding(state.value)
        state = new


@pytest.mark.parametrize("seed", range(5))
def test_plain_em_is_monotone_with_and_without_lifted_covariances(seed):
    """Observations that repeat would shrink a covariance to nothing."""
    data = np.vstack([X[:40], np.repeat(X[:1], 20, axis=0)])
    problem, state = GaussianMixture(data, 4, regularise=1e-3), None
    state = PlainEM().init(problem, None, seed)
    for _ in range(60):
        new = PlainEM().advance(problem, state)
        assert problem.value(new.x) >= problem.value(state.x) - problem.rounding(1.0)
        state = new
    units = np.outer(problem.deviations, problem.deviations)
    smallest = min(np.linalg.eigvalsh(c / units)[0] for c in state.covariances)
    assert smallest >= 1e-3 * (1 - 1e-9)


@pytest.mark.parametrize("guarded", [False, True])
def test_limit_is_a_fixed_point_of_scikit_learns_em(guarded):
    problem = GaussianMixture(X, 3)
    solver = Guarded(GaussianEM()) if guarded else GaussianEM()
    result = solve(problem, solver, stop=Stop(1e-10, rounds=20_000))
    assert result.status is Status.CONVERGED
    for mine, theirs in zip(result.x, one_round_of_scikit_learns(result.x, X), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    model = SklearnMixture(3)
    model.weights_, model.means_, model.covariances_ = result.x
    inverse = np.linalg.inv(np.linalg.cholesky(result.x.covariances))
    model.precisions_cholesky_ = inverse.transpose(0, 2, 1)
    assert result.value == pytest.approx(model.score(X), abs=1e-10)


def test_residual_is_zero_only_at_a_stationary_point():
    """It bounds the slope of the likelihood along every direction of the means."""
    problem = GaussianMixture(X, 3)
    best = solve(problem, GaussianEM(), stop=EXACT).x
    assert problem.residual(best) <= 1e-11
    moved = {
        "weights": best._replace(weights=np.array([0.3, 0.3, 0.4])),
        "means": best._replace(means=best.means + 1e-3),
        "covariances": best._replace(covariances=best.covariances * 1.001),
    }
    for x in moved.values():
        assert problem.residual(x) > 1e-5
        assert problem.value(x) < problem.value(best)


def test_well_separated_clusters_are_recovered():
    centres = np.array([[0.0, 0], [20, 0], [0, 20], [20, 20]])
    labels = np.repeat(range(4), [40, 80, 120, 160])
    data = centres[labels] + np.random.default_rng(1).normal(size=(400, 2))
    problem = GaussianMixture(data * [1e6, 1e-6], 4)  # units do not matter
    result = solve(problem, Guarded(GaussianEM()), stop=Stop(1e-9), seed=3)
    assigned_labels = problem.responsibilities(result.x).argmax(axis=1)
    shares = np.array([(assigned_labels[labels == k][0], (labels == k).mean()) for k in range(4)])
    assert sorted(shares[:, 0]) == [0, 1, 2, 3]
    for k in range(4):
        assert len(set(assigned_labels[labels == k])) == 1
        mean = data[labels == k].mean(axis=0) * [1e6, 1e-6]
        np.testing.assert_allclose(result.x.means[assigned_labels[labels == k][0]], mean, rtol=1e-6)
    np.testing.assert_allclose(result.x.weights[shares[:, 0].astype(int)], shares[:, 1], rtol=1e-6)


def test_more_components_than_clusters_stay_finite():
    """Weights may vanish, Gaussians may shrink onto single observations: nothing breaks."""
    data = np.repeat(X[:6], 5, axis=0)
    result = solve(GaussianMixture(data, 12), GaussianEM(), stop=Stop(1e-8, rounds=500))
    assert np.isfinite(result.value)
    assert result.x.weights.sum() == pytest.approx(1, abs=1e-12)
    assert result.x.weights.min() > 0


def test_a_component_without_observations_does_not_move():
    problem = GaussianMixture(X, 2)
    far = np.array([X.mean(axis=0), [1e6, 1e6]])
    x0 = np.array([0.5, 0.5]), far, np.stack([np.eye(2)] * 2)
    state = GaussianEM().init(problem, x0, 0)
    new = GaussianEM().advance(problem, state)
    np.testing.assert_array_equal(new.means[1], far[1])
    assert new.weights[1] == pytest.approx(1 / (1 + 5**2), rel=1e-12)  # G = (2, 0)


def test_same_seed_same_bits_other_seed_other_start():
    problem = GaussianMixture(X, 4)
    runs = [solve(problem, GaussianEM(), stop=Stop(0, rounds=20), seed=s) for s in (7, 7, 8)]
    first, again, other = ([part.tobytes() for part in run.x] for run in runs)
    assert first == again
    assert first[1] != other[1]


@pytest.mark.parametrize("solver", [GaussianEM(), Guarded(GaussianEM(3.0))])
def test_checkpoint_round_trip_changes_no_bit(solver, tmp_path):
    problem = GaussianMixture(X, 4)
    straight = solver.init(problem, None, 1)
    stored = straight
    for _ in range(12):
        straight = solver.advance(problem, straight)
        save_state(tmp_path / "state.npz", solver.advance(problem, stored))
        stored = load_state(tmp_path / "state.npz", stored)
    assert [p.tobytes() for p in stored.x] == [p.tobytes() for p in straight.x]
    stop = Stop(0, rounds=30)
    short = solve(problem, solver, stop=Stop(0, rounds=9), checkpoint=tmp_path / "run.npz")
    assert short.state.round == 9
    resumed = solve(problem, solver, stop=stop, checkpoint=tmp_path / "run.npz")
    whole = solve(problem, solver, stop=stop)
    assert [p.tobytes() for p in resumed.x] == [p.tobytes() for p in whole.x]


def test_custom_start_is_where_the_run_begins_and_stays_untouched():
    problem = GaussianMixture(X, 3)
    x0 = tuple(problem.start(5))
    before = [part.copy() for part in x0]
    state = GaussianEM().init(problem, x0, 0)
    for part, mine in zip(before, state.x, strict=True):
        np.testing.assert_array_equal(part, mine)
    solve(problem, GaussianEM(), x0, stop=Stop(0, rounds=3))
    for part, after in zip(before, x0, strict=True):
        np.testing.assert_array_equal(part, after)


def custom_start(**parts):
    problem = GaussianMixture(X, 2)
    good = {
        "weights": np.array([0.5, 0.5]),
        "means": X[:2],
        "covariances": np.stack([np.eye(2)] * 2),
    }
    return lambda: GaussianEM().init(problem, tuple({**good, **parts}.values()), 0)


BAD = {
    "NaN": (lambda: GaussianMixture([[1.0, np.nan], [2, 3]], 1), "NaN"),
    "no component": (
        lambda: GaussianMixture(X, 0),
        "`components` must be an integer from 1 to the 360 observations, got 0",
    ),
    "half a component": (
        lambda: GaussianMixture(X, 1.5),
        "`components` must be an integer from 1 to the 360 observations, got 1.5",
    ),
    "many components": (lambda: GaussianMixture(X[:4], 5), "from 1 to the 4 observations"),
    "constant": (lambda: GaussianMixture(np.ones((9, 2)), 1), "Column 0 of `X` is constant"),
    "column": (lambda: GaussianMixture(np.c_[X, np.ones(360)], 2), "Column 2 of `X` is constant"),
    "large": (lambda: GaussianMixture(X * 1e200, 2), "variances in the range of float64"),
    "regularise": (
        lambda: GaussianMixture(X, 2, regularise=0),
        "`regularise` must be a number in .*, got 0",
    ),
    "step": (lambda: GaussianEM(0.0), "`step` must be a positive number, got 0"),
    "shape": (
        custom_start(means=X[:3]),
        r"must have shapes .*, got \(\(2,\), \(3, 2\), \(2, 2, 2\)\)",
    ),
    "infinite": (custom_start(means=np.full((2, 2), np.inf)), "must be finite"),
    "weights": (custom_start(weights=np.array([0.5, 0.6])), "positive and sum to 1"),
    "zero weight": (custom_start(weights=np.array([1.0, 0.0])), "positive and sum to 1"),
    "indefinite": (
        custom_start(covariances=np.stack([np.eye(2), -np.eye(2)])),
        "Covariance 1 of `x0`",
    ),
    "asymmetric": (
        custom_start(covariances=np.stack([np.triu(np.ones((2, 2)))] * 2)),
        "Covariance 0",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_sentence(what):
    action, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        action()
