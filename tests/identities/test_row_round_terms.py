# SPDX-License-Identifier: BSD-3-Clause
"""The general model in rounds on rows alone: its sums, its certificate and where it ends."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from identities.model_examples import RANK, M, N, V, model
from identities.test_prior_counts import KINDS, best_profiles, counts, prior
from sipower import Stop, as_matrix, solve
from sipower.nmf import Factorization, Factors, RowRounds, make_solver
from sipower.nmf.rows import evaluate_rows, feature_gap
from sipower.nmf.terms import ModelTerms

rng = np.random.default_rng(0)
X0 = Factors(*oracles.factors(N, M, RANK))
FIXED = np.zeros((M, RANK), bool)
FIXED[:, 0], FIXED[3:6, 1] = True, True
KNOWN = {"fixed": FIXED, "values": np.where(np.arange(RANK) == 0, 7 * X0.H, 0.0)}
BY_ITEM = {
    "l1": (rng.uniform(0.1, 0.5, N), 0.1),
    "ridge": (0.1, rng.uniform(0.1, 0.5, M)),
}
TERMS = {
    "exposure": {"exposure": True},
    "fixed": KNOWN,
    "L1": {"l1": (0.5, 0.5)},
    "L2": {"ridge": (0.3, 0.2)},
    "L1 and L2 by item": BY_ITEM,
    "exposure, fixed and L1": {"exposure": True, "l1": (0.2, 0.2), **KNOWN},
    "exposure and weak both": {"exposure": True, "prior": prior("weak both")},
    **{kind: {"prior": prior(kind)} for kind in KINDS},
}


def problem_with(name, *, rows_only=True):
    terms = dict(TERMS[name])
    base, exposure = Factorization(sp.csr_array(V), RANK), None
    if terms.pop("exposure", False):
        base, _, _ = model("weights", sp.csr_array)
        exposure = base.terms.exposure
    data = as_matrix(base.V.array, rows_only=rows_only)
    return Factorization(data, RANK, ModelTerms(exposure, **terms))


def exact(problem, H):
    """H and the exact W for it."""
    x = Factors(np.zeros((N, RANK)), H)
    return x._replace(W=problem.half(0, x).solution(1e-6).h)


def evaluate(problem, x):
    return evaluate_rows(problem.V, x, problem.terms).add_feature_penalty(problem.terms, x.H)


def flatten(point):
    return [point.sums.g, *point.sums.rows, *point[1:]]


@pytest.mark.parametrize("name", TERMS)
def test_the_sums_are_those_of_the_factors(name):
    """Value, penalty, linear terms and gap agree with those of the whole W."""
    problem = problem_with(name, rows_only=False)
    x, terms = exact(problem, X0.H), problem.terms
    rows = evaluate(problem, x)
    assert rows.value == pytest.approx(problem.value(x), rel=1e-12)
    assert rows.value - rows.penalty == pytest.approx(
        problem.without_penalties(rows.value, x), rel=1e-9
    )
    own, expected = terms.feature_terms(X0.H, rows.sums.rows), terms.of_side(1, x)
    block = problem.half(1, x)
    np.testing.assert_allclose(own.d, block.d, rtol=1e-12)
    np.testing.assert_allclose(rows.sums.g, block.ratio_sums(X0.H), rtol=1e-10)
    if own.prior is not None:
        np.testing.assert_allclose(own.prior, expected.prior, rtol=1e-12)
    np.testing.assert_allclose(rows.sums.rows.penalties, terms.row_penalties(x.W), rtol=1e-12)
    gaps = problem._feature_gaps(x).sum()
    assert feature_gap(X0.H, rows.sums, problem.column_mass, terms) == pytest.approx(gaps, rel=1e-9)


@pytest.mark.parametrize("name", ["fixed", "L1", "L2", "smooth profiles", "guided profiles"])
def test_the_sums_of_groups_of_rows_add_up(name):
    """So a cluster can add them: value, gap and all sums are sums over rows."""
    problem = problem_with(name)
    x = exact(problem, X0.H)
    whole = evaluate_rows(problem.V, x, problem.terms)
    parts = []
    for rows in (slice(0, 7), slice(7, N)):
        part = as_matrix(sp.csr_array(V[rows]), rows_only=True)
        parts.append(evaluate_rows(part, Factors(x.W[rows], x.H), problem.terms))
    for total, *others in zip(flatten(whole), *map(flatten, parts), strict=True):
        np.testing.assert_allclose(sum(others), total, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in TERMS if name != "exposure and weak both"])
def test_the_gap_bounds_what_h_can_gain(name):
    problem = problem_with(name, rows_only=False)
    H = solve(problem, RowRounds(), X0, stop=Stop(0, rounds=3)).x.H
    x = exact(problem, H)
    rows = evaluate(problem, x)
    if problem.terms.prior is None:
        best = problem.half(1, x).solution(1e-13, 3000, start=H).h
    else:
        best = best_profiles(x, counts(name)[1])
    gain = rows.value - problem.value(Factors(x.W, best))
    assert 0 < gain <= feature_gap(H, rows.sums, problem.column_mass, problem.terms) * (1 + 1e-9)


@pytest.mark.parametrize("name", TERMS)
def test_rounds_never_raise_the_objective_and_end_certified(name):
    problem = problem_with(name)
    result = solve(problem, make_solver("auto"), X0, stop=Stop(2e-5, rounds=400), trace="every")
    assert str(result.status) == "converged"
    values = [record.objective for record in result.trace if record.round > 0]
    slack = problem.rounding(values[0])
    assert all(after <= before + slack for before, after in pairwise(values))
    assert problem.residual(result.x) <= 2e-5
    if problem.terms.fixed is not None:
        np.testing.assert_array_equal(result.x.H[:, 0], KNOWN["values"][:, 0])
        assert not result.x.H[3:6, 1].any()
    if problem.terms.prior is not None:
        np.testing.assert_allclose(result.x.H.sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("name", TERMS)
def test_the_end_is_that_of_auto_from_a_start_near_it(name):
    """The objective has several minima, so both must end in the same one."""
    best = solve(
        problem_with(name, rows_only=False), make_solver("auto"), X0, stop=Stop(1e-8, rounds=900)
    )
    noise = np.exp(0.1 * np.random.default_rng(4).normal(size=(M, RANK)))
    near = Factors(best.x.W, np.where(FIXED, best.x.H, best.x.H * noise))
    result = solve(problem_with(name), RowRounds(), near, stop=Stop(1e-5, rounds=400))
    assert result.value == pytest.approx(best.value, abs=2e-5 * V.sum())


def test_float32_and_a_random_start():
    both = prior("weak both")
    free = replace(both, columns=np.where(FIXED, 0, both.columns))  # log 0 has no finite value
    terms = ModelTerms(prior=free, **KNOWN)
    V32 = as_matrix(sp.csr_array(V), dtype=np.float32, rows_only=True)
    problem = Factorization(V32, RANK, terms)
    result = solve(problem, RowRounds(), stop=Stop(1e-3, rounds=200), trace="every")
    assert str(result.status) == "converged"
    assert result.x.H.dtype == np.float32
    np.testing.assert_array_equal(result.x.H[:, 0], KNOWN["values"][:, 0].astype(np.float32))
