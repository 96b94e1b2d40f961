# SPDX-License-Identifier: BSD-3-Clause
"""Contracts: what each solver needs of a problem is listed in full, and checked at the start."""

import numpy as np
import pytest

from sipower import GaussianEM, Guarded, SciPi, SSciPi, Stop, as_matrix, solve
from sipower.loop import protocols
from sipower.loop.protocols import Solvable, check_contract
from sipower.nmf import CCD, MU, Alternating, Auto, Extrapolated, Factorization, RowRounds
from sipower.problems import PCA, GaussianMixture

A = np.random.default_rng(0).normal(size=(40, 4))
V = np.random.default_rng(1).poisson(3.0, (30, 20))
PROBLEMS = {
    "pca": lambda: PCA(A),
    "nmf": lambda: Factorization(V, 3),
    "rows only": lambda: Factorization(as_matrix(V, rows_only=True), 3),
}
RUNS = [
    ("pca", SciPi()),
    ("pca", SSciPi(step=0.1, batch=0.2, epoch=3)),
    ("pca", Guarded(SciPi())),
    ("pca", Guarded(SSciPi(batch=0.5, epoch=3))),
    ("nmf", Alternating(MU())),
    ("nmf", Alternating(CCD(), tol=1e-3)),
    ("nmf", Guarded(Alternating(MU()))),
    ("nmf", Extrapolated(CCD())),
    ("nmf", Auto()),
    ("nmf", RowRounds()),
    ("rows only", Auto()),
]


class Narrow:
    """A problem that shows only what the contract of a solver lists."""

    def __init__(self, problem, names):
        self._problem, self._names = problem, names
        for name in names:  # as attributes of its own: some are computed when first used
            setattr(self, name, None)

    def __getattribute__(self, name):
        if name.startswith("_") or name not in self._names:
            return object.__getattribute__(self, name)
        return getattr(self._problem, name)


def members(solver):
    kinds = (Solvable, *getattr(solver, "needs", ()))
    return [name for kind in kinds for name in protocols._members(kind)]


@pytest.mark.parametrize(("name", "solver"), RUNS, ids=lambda value: repr(value)[:40])
def test_a_solver_uses_nothing_that_its_contract_does_not_list(name, solver):
    """Were a capability only in the code, the run on the narrow problem would fail."""
    whole = PROBLEMS[name]()
    stop = Stop(0, rounds=3)
    expected = solve(whole, solver, stop=stop, seed=2)
    result = solve(Narrow(PROBLEMS[name](), members(solver)), solver, stop=stop, seed=2)
    assert result.value == expected.value
    assert result.passes == expected.passes


@pytest.mark.parametrize(("name", "solver"), RUNS, ids=lambda value: repr(value)[:40])
def test_a_missing_capability_is_named_before_anything_runs(name, solver):
    problem = PROBLEMS[name]()
    names = members(solver)
    for missing in names:
        narrow = Narrow(problem, [other for other in names if other != missing])
        with pytest.raises(ValueError, match=rf"needs a problem with `{missing}`, which Narrow"):
            solve(narrow, solver)


def test_a_gaussian_mixture_can_be_guarded():
    check_contract(GaussianMixture(A, 2), Guarded(GaussianEM()))


def test_the_check_computes_nothing():
    class Lazy(PCA):
        @property
        def terms(self):
            raise AssertionError("evaluated")

    check_contract(Lazy(A), SciPi())


@pytest.mark.parametrize("rule", [CCD()])
def test_rules_that_need_single_columns_say_so_when_they_start(rule):
    rows_only = Factorization(as_matrix(V, rows_only=True), 3)
    for solver in (Alternating(rule), Extrapolated(rule)):
        with pytest.raises(ValueError, match=r"by row only, but CCD also needs their columns: use"):
            solver.init(rows_only, None, 0)
