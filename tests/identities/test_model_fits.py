# SPDX-License-Identifier: BSD-3-Clause
"""Fits with missing values, weights, fixed entries and penalties that must agree with others."""

import numpy as np
import pytest

import oracles
from identities.item_examples import LAYOUTS
from identities.model_examples import RANK, M, N, V, divergence, weighted_model
from sipower import Status, Stop, as_matrix, solve
from sipower.nmf import Factorization, Factors, make_solver
from sipower.nmf.terms import ModelTerms

TAKES_ALL = ("auto", "ccd", "scd", "newton", "mu")


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request):
    return LAYOUTS[request.param]


@pytest.fixture
def x0():
    return Factors(*oracles.factors(N, M, RANK))


def fit(problem, name, x0, rounds=25):
    return solve(problem, make_solver(name), x0, stop=Stop(0, rounds=rounds))


# ---- missing values and weights --------------------------------------------------------------


@pytest.mark.parametrize("name", ["auto", "ccd"])
@pytest.mark.parametrize("side", ["rows", "columns", "both"])
def test_a_fit_with_missing_rows_or_columns_is_the_fit_without_them(name, side, x0, layout):
    weights = np.ones((N, M))
    rows, columns = np.ones(N, bool), np.ones(M, bool)
    if side != "columns":
        rows[[0, 4, N - 1]] = False
    if side != "rows":
        columns[[1, 2, 9]] = False
    weights[~rows] = 0
    weights[:, ~columns] = 0
    masked = fit(weighted_model(V, layout, weights), name, x0)
    part = Factorization(layout(V[rows][:, columns]), RANK)
    without = fit(part, name, Factors(x0.W[rows], x0.H[columns]))
    assert masked.value == pytest.approx(without.value, rel=1e-10)
    np.testing.assert_allclose(masked.x.W[rows], without.x.W, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(masked.x.H[columns], without.x.H, rtol=1e-6, atol=1e-9)
    assert (masked.x.W[~rows] == 0).all()
    assert (masked.x.H[~columns] == 0).all()


@pytest.mark.parametrize("name", ["auto", "ccd", "s-sci-pi"])
def test_values_of_missing_entries_do_not_matter(name, x0, layout):
    rng = np.random.default_rng(0)
    weights = np.where(rng.random((N, M)) < 0.3, 0.0, 1.0)
    other = np.where(weights == 0, rng.poisson(50.0, (N, M)), V)
    results = [fit(weighted_model(data, layout, weights), name, x0, 8) for data in (V, other)]
    for one, two in zip(*(result.x for result in results), strict=True):
        np.testing.assert_array_equal(one, two)
    assert results[0].value == results[1].value


def test_missing_entries_differ_from_zeros(x0, layout):
    """A fit that ignores the entries predicts them; a fit of zeros does not."""
    rng = np.random.default_rng(1)
    mean = 20 * rng.gamma(1.0, 1.0, (N, RANK)) @ rng.gamma(1.0, 1.0, (RANK, M))
    missing = rng.random((N, M)) < 0.3
    weights = np.where(missing, 0.0, 1.0)
    ignored = fit(weighted_model(mean, layout, weights), "auto", x0, 300).x
    zeros = fit(Factorization(layout(mean * weights), RANK), "auto", x0, 300).x
    errors = [
        np.abs(x.W @ x.H.T - mean)[missing].sum() / mean[missing].sum() for x in (ignored, zeros)
    ]
    assert errors[0] < 0.01
    assert errors[1] > 0.2


def test_a_weight_of_two_counts_a_row_twice(x0, layout):
    weights = np.ones((N, M))
    weights[5] = 2
    doubled = weighted_model(V, layout, weights)
    twice = Factorization(layout(np.vstack([V, V[5]])), RANK)
    x = Factors(np.vstack([x0.W, x0.W[5]]), x0.H)
    assert doubled.value(x0) == pytest.approx(twice.value(x), rel=1e-12)
    # One fit of both: the solutions of H given W, and of all rows given H, are the same.
    problems = (doubled, x0), (twice, x)
    H = [problem.half(1, point).solution(1e-13, 2000).h for problem, point in problems]
    W = [problem.half(0, point).solution(1e-13, 2000).h for problem, point in problems]
    np.testing.assert_allclose(H[0], H[1], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(W[0], W[1][:N], rtol=1e-6, atol=1e-8)


# ---- fixed entries ---------------------------------------------------------------------------


def random_fixed(seed=0):
    """Draw fixed entries: a whole component, single entries, and a feature with all of them."""
    fixed = np.random.default_rng(seed).random((M, RANK)) < 0.2
    fixed[:, 0], fixed[3] = True, True
    return fixed


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", TAKES_ALL)
def test_fixed_entries_keep_every_bit(name, dtype, x0, layout):
    fixed = random_fixed()
    x0.H[fixed & (np.random.default_rng(5).random((M, RANK)) < 0.3)] = 0
    problem = Factorization(as_matrix(layout(V.astype(dtype))), RANK, ModelTerms(fixed=fixed))
    H = fit(problem, name, x0).x.H
    np.testing.assert_array_equal(H[fixed], x0.H.astype(problem.dtype)[fixed])
    assert not np.array_equal(H[~fixed], x0.H.astype(problem.dtype)[~fixed])


def structural_zeros(x0):
    """Return entries of H that are fixed at zero, and a feature that is fixed as a whole."""
    fixed = np.random.default_rng(6).random((M, RANK)) < 0.2
    x0.H[fixed], fixed[3] = 0, True
    return fixed


def fit_with_values(problem, name, x0, stop):
    """Return the result of a fit and the objective after every round."""
    values = [problem.value(x0)]

    def add_value(record, state):
        values.append(problem.value(state.x))

    return solve(problem, make_solver(name), x0, stop=stop, on_state=add_value), values


@pytest.mark.parametrize("name", TAKES_ALL)
def test_fits_with_fixed_entries_descend_to_a_certified_point(name, x0, layout):
    terms = ModelTerms(fixed=structural_zeros(x0))
    problem = Factorization(layout(V), RANK, terms)
    result, values = fit_with_values(problem, name, x0, Stop(1e-4, rounds=2000))
    assert (np.diff(values) <= problem.rounding(values[0])).all()
    assert result.status is Status.CONVERGED
    np.testing.assert_array_equal(result.x.H[terms.fixed], x0.H[terms.fixed])


@pytest.mark.parametrize("name", ["ccd", "scd"])
def test_fits_with_positive_fixed_entries_descend(name, x0):
    problem = Factorization(V, RANK, ModelTerms(fixed=random_fixed()))
    _, values = fit_with_values(problem, name, x0, Stop(1e-5, rounds=100))
    assert (np.diff(values) <= problem.rounding(values[0])).all()


@pytest.mark.parametrize("name", TAKES_ALL)
def test_with_all_of_h_fixed_w_is_the_solution_of_its_rows(name, x0, layout):
    problem = Factorization(layout(V), RANK, ModelTerms(fixed=np.ones((M, RANK), bool)))
    result = fit(problem, name, x0, 600)
    best = problem.half(0, x0).solution(1e-13).h
    assert result.value == pytest.approx(problem.value(Factors(best, x0.H)), rel=1e-6)
    np.testing.assert_array_equal(result.x.H, x0.H)


# ---- penalties -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TAKES_ALL)
def test_penalties_are_part_of_the_objective_and_of_its_certificate(name, x0, layout):
    ridge, fixed = (0.3, 0.2), random_fixed()
    problem = Factorization(layout(V), RANK, ModelTerms(fixed=fixed, ridge=ridge))
    penalty_H = np.where(fixed, 0, ridge[1] / 2 * x0.H**2).sum()
    penalty_W = (ridge[0] / 2 * x0.W**2).sum()
    expected = divergence(V, 1.0, x0) + penalty_W + penalty_H
    assert problem.value(x0) == pytest.approx(expected, rel=1e-12)
    assert problem.without_penalties(problem.value(x0), x0) == pytest.approx(
        divergence(V, 1.0, x0), rel=1e-12
    )
    result, values = fit_with_values(problem, name, x0, Stop(1e-6, rounds=2000))
    assert result.status is Status.CONVERGED
    assert (np.diff(values) <= problem.rounding(values[0])).all()
    W, H = (
        problem.half(side, result.x).solution(1e-13, 2000, start=result.x[side]).h
        for side in (0, 1)
    )
    gain = (
        2 * result.value
        - problem.value(Factors(W, result.x.H))
        - problem.value(Factors(result.x.W, H))
    )
    assert -1e-7 <= gain <= 1e-6 * V.sum()


def test_only_the_listed_solvers_take_fixed_entries(x0):
    problem = Factorization(V, RANK, ModelTerms(fixed=random_fixed()))
    for name in ("sci-pi", "s-sci-pi", "power-search", "shared-newton", "pgd", "vanilla"):
        with pytest.raises(ValueError, match="does not take fixed components or penalties"):
            solve(problem, make_solver(name), x0)
