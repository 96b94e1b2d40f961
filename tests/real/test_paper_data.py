# SPDX-License-Identifier: BSD-3-Clause
"""Every method keeps its promises on the paper's four data sets, raw, with K = 20."""

import os

import numpy as np
import pytest

from sipower import Guarded, Status, Stop, as_matrix, datasets, solve
from sipower.nmf import MU, RULES, Alternating, Auto, Factorization, SciPiRule, SSciPiRule

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("SIPOWER_DATA" not in os.environ, reason="SIPOWER_DATA is not set"),
]
NAMES = ["kos", "nips", "mitf", "wt"]
START = {"kos": 1_428_041.9, "nips": 4_170_811.1, "mitf": 5_059_413.7, "wt": 17_057_461}


@pytest.fixture(scope="module", params=NAMES)
def case(request):
    """Problem and common start: Uniform(0, 1), then 5 rounds of MU in float64."""
    V = datasets.load(request.param)
    V = V[V.sum(axis=1) > 0][:, V.sum(axis=0) > 0]
    rng = np.random.default_rng(0)
    x0 = rng.random((V.shape[0], 20)), rng.random((20, V.shape[1])).T
    problem = Factorization(V, 20)
    start = solve(problem, Alternating(MU()), x0, stop=Stop(0, rounds=5))
    assert start.value == pytest.approx(START[request.param], rel=1e-7)
    return request.param, Factorization(as_matrix(V, dtype=np.float32), 20), start.x


def run(case, solver, rounds, **options):
    _, problem, x0 = case
    return solve(problem, solver, x0, stop=Stop(0, rounds=rounds), **options)


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_method_runs_and_guarded_ones_descend(case, name):
    plain = run(case, Alternating(RULES[name]()), 10)
    assert plain.status is Status.MAX_ROUNDS
    assert np.isfinite(plain.value)
    guarded = run(case, Guarded(Alternating(RULES[name]())), 10)
    assert guarded.value < guarded.trace[0].objective


def test_auto_is_far_below_mu_for_the_same_passes(case):
    """D of 150 passes of auto is under that of 400 passes of multiplicative updates."""
    _, problem, x0 = case
    auto = solve(problem, Auto(), x0, stop=Stop(0, passes=150))
    mu = solve(problem, Alternating(MU()), x0, stop=Stop(0, passes=400))
    assert auto.state.phase == "second order"
    assert auto.value < mu.value


@pytest.mark.parametrize("rounds", [10, 20, 40])
def test_sci_pi_at_t_reaches_what_mu_reaches_at_2t(case, rounds):
    """Within 2 % of the drop."""
    power = run(case, Alternating(SciPiRule()), rounds)
    mu = run(case, Alternating(MU()), 2 * rounds)
    drop = mu.trace[0].objective - mu.value
    assert power.value <= mu.value + 0.02 * drop


def test_s_sci_pi_on_waving_trees_needs_a_fifth_of_the_passes_of_mu(case):
    name, _, _ = case
    if name not in ("wt", "mitf"):
        pytest.skip("the bar is for dense data")
    mu = run(case, Alternating(MU()), 100)
    _, problem, x0 = case
    result = solve(
        problem, Alternating(SSciPiRule()), x0, stop=Stop(0, passes=mu.passes / 5), trace="every"
    )
    assert result.trace[-2].objective <= mu.value
