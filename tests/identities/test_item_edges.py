# SPDX-License-Identifier: BSD-3-Clause
"""Item problems at the edges: no data, nothing to choose, no linear term, extreme sizes."""

import numpy as np
import pytest
import scipy.sparse as sp

from identities.item_examples import COMBINATIONS, LAYOUTS, Example, example
from identities.kl_examples import HALF_STEP
from sipower import as_matrix
from sipower.nmf import CCD, MU, SCD, Newton, SciPiRule
from sipower.problems.item_problem import ItemProblem, Terms
from sipower.problems.kl import KLBlock

RULES = {"mu": MU(), "ccd": CCD(), "scd": SCD(), "newton": Newton()}
UNBOUNDED = "no lower bound"


@pytest.fixture(params=COMBINATIONS, ids=lambda names: "+".join(names) or "plain")
def names(request):
    return request.param


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request):
    return request.param


def assert_solved(problem, layout, items=slice(None)):
    """Assert that the solution has the smallest objective and a certificate that says so."""
    block = problem.block(layout)
    solution = block.solution(1e-12, 2000, start=problem.h)
    reached, best = problem.objectives(solution.h), problem.minima()
    np.testing.assert_allclose(reached[items], best[items], rtol=1e-8, atol=1e-8)
    mass = np.maximum(block.mass, 1)
    assert (block.gaps(solution.h)[items] <= 1e-9 * mass[items]).all()
    np.testing.assert_array_equal(solution.h[~problem.free], problem.h[~problem.free])


def apply_rule(rule, problem, layout, rounds):
    block, h = problem.block(layout), problem.h
    for number in range(rounds):
        h = rule.update(block, h, HALF_STEP._replace(round=number))
    return h


# ---- items without data ----------------------------------------------------------------------


def without_data(names):
    problem = example(names)
    problem.V[1] = 0
    return problem


def test_an_item_without_data_does_not_disturb_the_others(names, layout):
    problem = without_data(names)
    assert_solved(problem, layout, [0, 2, 3])


@pytest.mark.parametrize("names", [n for n in COMBINATIONS if "prior" not in n])
def test_an_item_without_data_and_prior_counts_is_zero(names, layout):
    problem = without_data(names)
    assert_solved(problem, layout)
    free = problem.item(1).free
    for rule in RULES.values():
        h = rule.update(problem.block(layout), problem.h, HALF_STEP)
        np.testing.assert_array_equal(h[1], np.where(free, 0, problem.h[1]))
    gap = problem.block(layout).gaps(problem.h)[1]
    assert gap == pytest.approx(
        problem.item(1).objective(problem.h[1])
        - problem.item(1).objective(np.where(free, 0, problem.h[1]))
    )


@pytest.mark.parametrize("names", [n for n in COMBINATIONS if "prior" in n and "ridge" not in n])
@pytest.mark.parametrize("rule", sorted(RULES))
def test_prior_counts_without_data_give_their_mean(names, rule, layout):
    """The minimum of d h − a log h is at a/d."""
    problem = without_data(names)
    problem.terms.prior[1] = [0.5, 1.5, 0.2, 3.0]
    item = problem.item(1)
    h = apply_rule(RULES[rule], problem, layout, 400)[1]
    np.testing.assert_allclose(h[item.free], (item.a / item.d)[item.free], rtol=1e-6)


def test_the_solution_of_prior_counts_without_data_is_their_mean():
    problem = Example(
        np.zeros((1, 3)), np.eye(3, 2) + 0.3, Terms(prior=np.array([1.3, 0.7])), np.ones((1, 2))
    )
    item = problem.item(0)
    h = problem.block().solution(1e-12).h[0]
    np.testing.assert_allclose(h, item.a / item.d, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_component_with_few_prior_counts_stays_positive(dtype):
    """The logarithm of zero would make the objective infinite."""
    B = np.random.default_rng(0).gamma(1.0, 1.0, (12, 3))
    terms = Terms(prior=np.array([1e-15, 1.0, 1.0]))
    problem = Example(10 * B[:, 1:2].T, B, terms, np.ones((1, 3)))
    block, h = problem.block("dense", dtype), problem.h.astype(dtype)
    for _ in range(300):
        h = Newton().update(block, h, HALF_STEP)
    assert h[0, 0] > 0


# ---- nothing to choose -----------------------------------------------------------------------


@pytest.mark.parametrize("names", [n for n in COMBINATIONS if "fixed" in n], ids="+".join)
def test_an_item_whose_components_are_all_fixed_is_solved(names, layout):
    problem = example(names)
    problem.terms.fixed[:] = True
    block = problem.block(layout)
    solution = block.solution(1e-12, start=problem.h)
    np.testing.assert_array_equal(solution.h, problem.h)
    assert solution.passes.max() <= 1
    assert block.gaps(problem.h).max() <= 1e-10
    for rule in RULES.values():
        np.testing.assert_array_equal(rule.update(block, problem.h, HALF_STEP), problem.h)


@pytest.mark.parametrize("names", COMBINATIONS[::3])  # scipy is slow with 40 components
@pytest.mark.parametrize("rank", [1, 40])
def test_any_number_of_components(names, rank, layout):
    assert_solved(example(names, items=2, n=60 if rank > 1 else 12, rank=rank), layout)


# ---- components without a linear term --------------------------------------------------------


def without_linear_term(names):
    """An example whose second component has a basis column of zeros."""
    problem = example(names)
    problem.B[:, 1] = 0
    if problem.terms.d is not None:
        problem.terms.d[:, 1] = 0
    return problem


def is_bounded(names):
    return "prior" not in names or "ridge" in names


@pytest.mark.parametrize("names", [n for n in COMBINATIONS if is_bounded(n)])
def test_a_component_without_a_basis_column(names, layout):
    problem = without_linear_term(names)
    assert_solved(problem, layout)
    for rule in RULES.values():
        h = apply_rule(rule, problem, layout, 3)
        assert np.isfinite(h).all()
        if "ridge" not in names:  # nothing depends on the component, so it keeps its value
            np.testing.assert_array_equal(h[:, 1], problem.h[:, 1])


@pytest.mark.parametrize("rule", ["ccd", "scd"])
def test_a_ridge_removes_a_component_without_a_basis_column(rule, layout):
    problem = without_linear_term(("ridge",))
    assert (apply_rule(RULES[rule], problem, layout, 20)[:, 1] == 0).all()


@pytest.mark.parametrize("rule", ["mu", "newton"])
def test_other_rules_also_remove_a_component_without_a_basis_column(rule):
    problem = without_linear_term(("ridge",))
    assert (apply_rule(RULES[rule], problem, "dense", 20)[:, 1] < 1e-6).all()


@pytest.mark.parametrize("names", [("d", "ridge"), ("d", "prior", "ridge")], ids="+".join)
def test_a_ridge_bounds_a_component_with_data_but_no_linear_term(names, layout):
    problem = example(names)
    problem.terms.d[:, 1] = 0
    assert_solved(problem, layout)


def test_a_ridge_replaces_the_linear_term_of_all_components(layout):
    """The minimum of ½r h² − v log h is at √(v/r)."""
    problem = Example(
        np.ones((1, 1)), np.ones((1, 1)), Terms(np.zeros(1), ridge=4.0), np.ones((1, 1))
    )
    h = problem.block(layout).solution(1e-12, start=problem.h).h
    np.testing.assert_allclose(h, 0.5)


# ---- unbounded problems ----------------------------------------------------------------------


@pytest.mark.parametrize("d", [np.array([1.0, 0.0]), np.array([[1.0, 1.0], [1.0, 0.0]])])
def test_prior_counts_need_a_linear_term_or_a_ridge(d):
    V, B, prior = np.ones((2, 3)), np.ones((3, 2)), np.array([1.0, 2.0])
    with pytest.raises(ValueError, match=UNBOUNDED):
        ItemProblem(V, B, terms=Terms(d, prior))
    ItemProblem(V, B, terms=Terms(d, prior, ridge=0.1))
    ItemProblem(V, B, terms=Terms(d, np.array([1.0, 0.0])))
    ItemProblem(V, B, terms=Terms(d, prior, np.array([False, True])))


def test_prior_counts_need_a_basis_column():
    with pytest.raises(ValueError, match=UNBOUNDED):
        ItemProblem(np.ones((2, 3)), np.ones((3, 2)) * [1, 0], terms=Terms(prior=np.ones(2)))


# ---- scales ----------------------------------------------------------------------------------


def rescale(problem, data, basis):
    """Return the same problem with data and basis in other units: h and the objective scale too."""
    d, prior, fixed, ridge = problem.terms
    terms = Terms(
        None if d is None else d * basis,
        None if prior is None else prior * data,
        fixed,
        ridge * basis**2 / data,
    )
    return Example(problem.V * data, problem.B * basis, terms, problem.h * data / basis)


@pytest.mark.parametrize(("data", "basis"), [(1e-12, 1e12), (1e12, 1e12), (1e12, 1e-12)])
def test_units_do_not_matter(names, layout, data, basis):
    problem = example(names)
    scaled = rescale(problem, data, basis)
    block, mass = scaled.block(layout), problem.V.sum(axis=1)
    solution = block.solution(1e-12, 2000, start=scaled.h)
    reached = problem.objectives(solution.h * basis / data)
    best = problem.objectives(problem.block(layout).solution(1e-12, 2000, start=problem.h).h)
    np.testing.assert_allclose(reached / mass, best / mass, atol=1e-10)
    assert (block.gaps(solution.h) <= 1e-10 * data * mass).all()
    gaps = problem.block(layout).gaps(problem.h)
    np.testing.assert_allclose(block.gaps(scaled.h) / data, gaps, rtol=1e-6)
    for rule in RULES.values():
        here, there = (rule.update(p.block(layout), p.h, HALF_STEP) for p in (problem, scaled))
        np.testing.assert_allclose(there * basis / data, here, rtol=1e-5, atol=1e-9)


# ---- data available by row only --------------------------------------------------------------


def test_items_that_are_columns_of_rows_have_the_same_certificate_and_updates(names):
    """If the data are available by row only, items of the other side are known by sums alone."""
    problem = example(names)
    problem.V[1] = 0
    columns = as_matrix(sp.csr_array(problem.V.T), rows_only=True).columns
    block, other = problem.block("csr"), KLBlock(columns, problem.B, terms=problem.terms)
    assert not other.V.has_items
    np.testing.assert_allclose(other.gaps(problem.h), block.gaps(problem.h), rtol=1e-10)
    assert other.divergence(problem.h) == pytest.approx(block.divergence(problem.h), rel=1e-12)
    rules = [MU()] if {"ridge", "fixed"} & set(names) else [MU(), SciPiRule(0.7)]
    for rule in rules:
        half_step = HALF_STEP._replace(step=rule.step)
        expected, new = (rule.update(b, problem.h, half_step) for b in (block, other))
        np.testing.assert_allclose(new, expected, rtol=1e-10, atol=1e-13)
        np.testing.assert_array_equal(new[~problem.free], problem.h[~problem.free])
