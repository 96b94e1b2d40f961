# SPDX-License-Identifier: BSD-3-Clause
"""The update rules on item problems with every combination of the terms that they take."""

import numpy as np
import pytest

from identities.item_examples import COMBINATIONS, LAYOUTS, Example, example
from identities.kl_examples import HALF_STEP
from sipower.nmf import (
    CCD,
    MU,
    PGD,
    RULES,
    SCD,
    Newton,
    PowerSearch,
    SciPiRule,
    SharedNewton,
    SSciPiRule,
)
from sipower.nmf.exposure import Exposure
from sipower.nmf.prior_counts import PriorCounts
from sipower.nmf.rule import check_terms
from sipower.nmf.terms import ModelTerms
from sipower.problems.item_problem import Terms

GENERAL = {
    "mu": MU(),
    "ccd": CCD(),
    "ccd active": CCD(2, "active"),
    "scd": SCD(),
    "newton": Newton(),
}
LINEAR = {
    "power-search": PowerSearch(),
    "shared-newton": SharedNewton(),
    "s-sci-pi": SSciPiRule(step=0.3, shortest=0, batch=0.3, epoch=4),
    "pgd": PGD(),
}
ROUNDS = {"mu": 6000, "pgd": 6000, "sci-pi": 6000, "s-sci-pi": 1500}
CASES = [(rule, names) for rule in GENERAL for names in COMBINATIONS]
CASES += [("sci-pi", names) for names in COMBINATIONS if not {"ridge", "fixed"} & set(names)]
CASES += [(rule, names) for rule in LINEAR for names in [(), ("d",)]]
DAMPED = SciPiRule(step=0.5)  # the step size at which SCI-PI descends: x∘(½ + ½G)²


def a_rule(name):
    return {**GENERAL, **LINEAR, "sci-pi": DAMPED}[name]


def run(problem, rule, layout, rounds, tol=1e-8):
    """Return the points of a run that ends when the certified gap is at most `tol`."""
    block, h, points = problem.block(layout), problem.h, [problem.h]
    for number in range(rounds):
        if number % 10 == 0 and block.gaps(h).max() <= tol:
            break
        h = rule.update(block, h, HALF_STEP._replace(step=rule.step, round=number))
        points.append(h)
    return points


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize(("name", "names"), CASES, ids=[f"{a}-{'+'.join(b)}" for a, b in CASES])
def test_the_rule_descends_to_the_certified_solution(name, names, layout):
    problem = example(names)
    # Small fixed components leave something to explain, so that the others are not all zero.
    problem = problem._replace(h=np.where(problem.free, problem.h, problem.h / 10))
    points = run(problem, a_rule(name), layout, ROUNDS.get(name, 400))
    values = np.array([problem.objectives(h) for h in points])
    if name != "s-sci-pi":  # its epochs need a guard
        assert (np.diff(values, axis=0) <= 1e-11 * np.abs(values[:-1]) + 1e-11).all()
    best = problem.objectives(problem.block(layout).solution(1e-13, 2000, start=problem.h).h)
    np.testing.assert_allclose(values[-1], best, rtol=1e-6, atol=1e-6)
    for h in points:
        np.testing.assert_array_equal(h[~problem.free], problem.h[~problem.free])


def test_free_components_stay_zero_where_fixed_ones_explain_everything():
    """The minimum is at zero, and a step from there must not raise the objective."""
    B = np.random.default_rng(0).gamma(1.0, 1.0, (12, 2))
    problem = Example(
        B[:, :1].T * 3, B, Terms(fixed=np.array([True, False])), np.array([[4.0, 0.0]])
    )
    block = problem.block()
    assert block.gaps(problem.h).max() <= 1e-9
    h = CCD().update(block, problem.h, HALF_STEP)
    assert problem.objectives(h) <= problem.objectives(problem.h) + 1e-12


# ---- refusals --------------------------------------------------------------------------------

FIXED = ModelTerms(fixed=np.eye(3, dtype=bool))
RIDGE = ModelTerms(ridge=(0.0, 1.0))
PRIOR = ModelTerms(prior=PriorCounts(columns=np.ones((3, 3))))


@pytest.mark.parametrize("terms", [FIXED, RIDGE, PRIOR], ids=["fixed", "ridge", "prior"])
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_takes_a_term_or_refuses_it_in_one_sentence(name, terms):
    rule = RULES[name]()
    taken = {"all": True, "prior": terms is PRIOR, "linear": False}[rule.terms]
    if taken:
        check_terms(rule, terms)
        return
    with pytest.raises(ValueError, match="does not take") as refusal:
        check_terms(rule, terms)
    message = str(refusal.value)
    assert message.startswith(type(rule).__name__)
    assert message.endswith("use solver='auto', 'ccd', 'scd', 'newton', 'mu' or 'rows'.")
    assert ("prior counts" in message) == (terms is PRIOR)


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_takes_a_linear_term(name):
    check_terms(RULES[name](), ModelTerms(Exposure()))


@pytest.mark.parametrize("names", [("ridge",), ("prior",), ("fixed",)], ids="+".join)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("name", sorted(LINEAR))
def test_the_kernels_refuse_what_the_rule_does_not_take(name, names, layout):
    problem = example(names)
    with pytest.raises(ValueError, match="this kernel takes"):
        a_rule(name).update(problem.block(layout), problem.h, HALF_STEP)
