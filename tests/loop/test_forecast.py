# SPDX-License-Identifier: BSD-3-Clause
"""Forecasts of the passes to a tolerance, from gaps whose law is known."""

import math

import pytest

from sipower import KLNMF, Record
from sipower.datasets import poisson
from sipower.loop.forecast import forecast_passes


def records(gap, passes):
    return [Record(i, p, p, 1.0, gap(p), 1.0) for i, p in enumerate(passes)]


@pytest.mark.parametrize("decay", [0.05, 0.2])
def test_linear_convergence_is_met_within_a_factor_of_two(decay):
    true = math.log(1e3) / decay
    made = records(lambda p: math.exp(-decay * p), [share * true for share in (0.2, 0.3, 0.4, 0.5)])
    assert 0.5 < forecast_passes(made, 1e-3) / true < 2


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_a_power_law_is_met_within_a_factor_of_two(power):
    true = (1e3) ** (1 / power)
    made = records(
        lambda p: p**-power, [p for p in (2, 4, 8, 16, 32, 64, 128, 256) if p < true / 2]
    )
    assert 0.5 < forecast_passes(made, 1e-3) / true < 2


def test_no_trend_is_no_forecast():
    flat = records(lambda p: 0.1, [1, 2, 3])
    assert forecast_passes(flat, 1e-3) is None
    assert forecast_passes([], 1e-3) is None
    assert forecast_passes(records(lambda p: 1 / p, [1, 2, 3]), 0.0) is None
    unknown = records(lambda p: math.nan, [1, 2, 3])
    assert forecast_passes(unknown, 1e-3) is None


def test_a_tolerance_that_is_reached_needs_no_more():
    made = records(lambda p: 1 / p, [10, 100, 2000])
    assert forecast_passes(made, 1e-3) == 2000
    assert forecast_passes([*made, made[-1]], 1e-3) == 2000


@pytest.mark.parametrize("solver", ["ccd", "newton"])
def test_half_way_through_a_fit_the_end_is_near_the_forecast(solver):
    V = poisson(200, 150, 0.3, seed=0)
    model = KLNMF(4, solver=solver, init="random", tol=1e-3, random_state=0, max_iter=5000).fit(V)
    assert model.status_ == "converged"
    total = model.trace_[-1].passes
    half = [record for record in model.trace_ if record.passes < total / 2]
    assert 0.5 < forecast_passes(half, 1e-3) / total < 2
