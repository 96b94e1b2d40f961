# SPDX-License-Identifier: BSD-3-Clause
"""The item problem with every combination of its terms: solution, certificate and gradient."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from identities.item_examples import COMBINATIONS, LAYOUTS, Example, example
from sipower.nmf.rule import Half
from sipower.problems.item_problem import Terms

SEEDS = range(3)


@pytest.fixture(params=COMBINATIONS, ids=lambda names: "+".join(names) or "plain")
def names(request):
    return request.param


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request):
    return request.param


def solve_exactly(problem, layout="dense"):
    """Return the certified solution with the fixed components of `problem.h`."""
    return problem.block(layout).solution(1e-13, 2000, start=problem.h)


# ---- the solution ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solution_has_the_smallest_objective(names, layout, seed):
    problem = example(names, seed=seed)
    h, gaps, _ = solve_exactly(problem, layout)
    reached, best = problem.objectives(h), problem.minima()
    np.testing.assert_allclose(reached, best, rtol=1e-8, atol=1e-8)
    assert (reached <= best + 1e-9).all()
    assert (gaps <= 1e-12).all()
    np.testing.assert_array_equal(h[~problem.free], problem.h[~problem.free])


def test_without_a_start_fixed_components_are_zero(names, layout):
    problem = example(names)
    problem = problem._replace(h=np.where(problem.free, problem.h, 0))
    h = problem.block(layout).solution(1e-13, 2000).h
    np.testing.assert_allclose(problem.objectives(h), problem.minima(), rtol=1e-8, atol=1e-8)
    assert (h[~problem.free] == 0).all()


def test_the_solution_does_not_depend_on_the_start(names):
    problem = example(names)
    other = problem._replace(h=np.where(problem.free, problem.h[::-1] * 7, problem.h))
    first, second = (problem.objectives(solve_exactly(p).h) for p in (problem, other))
    np.testing.assert_allclose(first, second, rtol=1e-12, atol=1e-10)


def test_dense_and_sparse_data_have_the_same_solution(names):
    problem = example(names)
    dense, sparse = (solve_exactly(problem, layout).h for layout in sorted(LAYOUTS))
    np.testing.assert_allclose(dense, sparse, rtol=1e-5, atol=1e-7)


def test_in_float32_the_objective_is_as_small_as_rounding_allows(names, layout):
    problem = example(names)
    block = problem.block(layout, np.float32)
    h = block.solution(1e-6, 200, exact=False, start=problem.h).h
    assert h.dtype == np.float32
    reached, best = problem.objectives(h.astype(float)), problem.minima()
    np.testing.assert_allclose(reached, best, rtol=1e-5, atol=2e-5)
    np.testing.assert_array_equal(h[~problem.free], problem.h.astype(np.float32)[~problem.free])


# ---- the certificate -------------------------------------------------------------------------


def random_points(problem, seed, count=5):
    """Draw points around the solution and far from it, with the fixed components of the example."""
    rng, best = np.random.default_rng(seed), solve_exactly(problem).h
    for scale in np.geomspace(1e-6, 3, count):
        near = best * np.exp(scale * rng.normal(size=best.shape)) + 1e-3 * scale
        yield np.where(problem.free, near, problem.h)
    yield np.where(problem.free, rng.gamma(0.5, 1.0, best.shape) + 1e-9, problem.h)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_certificate_bounds_the_gap(names, layout, seed):
    problem = example(names, seed=seed)
    best = problem.objectives(solve_exactly(problem).h)
    for h in random_points(problem, seed):
        gaps = problem.block(layout).gaps(h)
        assert (gaps >= problem.objectives(h) - best - 1e-9).all()


def test_the_certificate_vanishes_at_the_solution(names, layout):
    problem = example(names)
    h = solve_exactly(problem, layout).h
    assert (problem.block(layout).gaps(h) <= 1e-9).all()
    assert Half(problem.block(layout)).residual(h) <= 1e-10


@pytest.mark.parametrize("names", [n for n in COMBINATIONS if set(n) - {"d"}], ids="+".join)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_certificate_is_the_largest_value_of_the_dual(names, layout, seed):
    problem = example(names, seed=seed)
    for h in random_points(problem, seed):
        dual = [item.dual(row) for item, row in zip(problem.items, h, strict=True)]
        gaps = problem.objectives(h) - dual
        np.testing.assert_allclose(problem.block(layout).gaps(h), gaps, rtol=1e-8, atol=1e-8)


def test_the_plain_certificate_is_a_weaker_bound_than_the_dual(layout):
    """The two agree at a solution and differ elsewhere, so the plain case keeps its own formula."""
    problem = example(("d",))
    for h in random_points(problem, 0):
        dual = [item.dual(row) for item, row in zip(problem.items, h, strict=True)]
        assert (problem.block(layout).gaps(h) >= problem.objectives(h) - dual - 1e-9).all()


def test_no_other_dual_point_of_the_ray_is_better(names):
    """Values of the dual on a grid of t never exceed the objective at the solution."""
    problem = example(names)
    best = problem.objectives(solve_exactly(problem).h)
    for h in random_points(problem, 1):
        dual = [item.dual(row) for item, row in zip(problem.items, h, strict=True)]
        assert (np.array(dual) <= best + 1e-9).all()


# ---- the objective and its gradient ----------------------------------------------------------


def test_the_gradient_has_a_term_of_every_part(names, layout):
    """d + r h − g − a ⊘ h, with g from the kernel, against finite differences."""
    problem = example(names)
    block = problem.block(layout)
    g = block.ratio_sums(problem.h)
    for j, (item, h) in enumerate(zip(problem.items, problem.h, strict=True)):
        gradient = item.d + item.r * h - g[j] - item.a / h
        slopes = approx_fprime(h, item.objective, 1e-7)
        np.testing.assert_allclose(gradient[item.free], slopes[item.free], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(gradient[item.free], item.gradient(h)[item.free], rtol=1e-9)


def test_divergence_and_penalty_are_the_objective(names, layout):
    """They differ by Σ v log v − v, whatever h."""
    problem = example(names)
    half = Half(problem.block(layout))
    constant = np.sum(np.where(problem.V > 0, problem.V * np.log(np.maximum(problem.V, 1)), 0))
    constant -= problem.V.sum()
    for h in random_points(problem, 2, count=2):
        expected = problem.objectives(h).sum() + constant
        assert half.value(h) == pytest.approx(expected, rel=1e-10, abs=1e-9)


def test_terms_of_all_items_may_be_one_row(names, layout):
    problem = example(names)
    first = {name: getattr(problem.terms, name) for name in ("d", "prior", "fixed")}
    rows = {name: None if term is None else term[0] for name, term in first.items()}
    repeated = {
        name: None if row is None else np.tile(row, (len(problem.V), 1))
        for name, row in rows.items()
    }
    shared, own = (
        Example(problem.V, problem.B, Terms(**terms, ridge=problem.terms.ridge), problem.h)
        for terms in (rows, repeated)
    )
    for one, other in zip(solve_exactly(shared, layout), solve_exactly(own, layout), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        shared.block(layout).gaps(problem.h), own.block(layout).gaps(problem.h)
    )
