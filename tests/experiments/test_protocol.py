# SPDX-License-Identifier: BSD-3-Clause
"""The protocol: which runs are planned, and which parameters win the tuning."""

import json
import math
from dataclasses import replace

import pytest

from result_rows import BUDGET, finish, row
from sipower.experiments.budgets import BUDGETS, EXPERIMENTS, GRID, SCREENING
from sipower.experiments.protocol import Case, Protocol, objective_at, round_passes


@pytest.fixture(autouse=True)
def with_all_data(monkeypatch):
    """Make all data sets present, because plans depend on them."""
    monkeypatch.setattr("sipower.experiments.protocol.is_present", lambda name: True)


def step_decides(run):
    """Return an objective that is lowest at η = 0.1 for S-SCI-PI, and 5 for other methods."""
    return abs(math.log10(dict(run.params).get("step", 1e4)) + 1)


def is_s_sci_pi(run):
    return run.method == "s-sci-pi"


def test_every_point_of_the_grid_that_fits_is_screened_on_one_start():
    protocol = Protocol(BUDGETS["standard"], [])
    for dataset in ("wt", "kos"):
        runs = [r for r in protocol.plan("nmf") if r.dataset == dataset and is_s_sci_pi(r)]
        horizon = protocol._run("nmf", dataset, "mu", (), 0).passes
        assert {run.passes for run in runs} == {SCREENING * horizon}
        assert {run.seed for run in runs} == {0}
        points = {(p["batch"], p["epoch"], p["step"]) for p in (dict(r.params) for r in runs)}
        sides = dict(runs[0].params)["sides"]
        expected = {
            (batch, epoch, step)
            for batch in GRID[0]
            for epoch in GRID[1]
            for step in GRID[2]
            if round_passes("nmf", batch, epoch, sides) <= SCREENING * horizon
        }
        assert points == expected
        assert {(batch, epoch) for batch, epoch, _ in points} >= {(1e-4, 1000), (1e-3, 10)}


def test_the_best_run_to_the_horizon_and_the_winner_on_all_seeds():
    budget = replace(BUDGET, datasets=("kos",))
    rows = finish(budget, "nmf", step_decides)
    protocol = Protocol(budget, rows)
    best = protocol.winner(Case("nmf", "kos", "s-sci-pi"))
    assert dict(best)["step"] == 0.1
    runs = [run for run in protocol.plan("nmf") if is_s_sci_pi(run)]
    screened = [run for run in runs if run.passes < 600]
    to_horizon = {(run.params, run.seed) for run in runs if run.passes == 600}
    finalists = {params for params, _ in to_horizon}
    assert len(screened) == 36
    assert len(finalists) == budget.finalists
    assert {seed for params, seed in to_horizon if params == best} == set(range(5))
    for loser in finalists - {best}:
        assert {seed for params, seed in to_horizon if params == loser} == {0, 1}
    assert list(protocol.replicates(Case("nmf", "kos", "s-sci-pi"))) == list(range(5))


def test_tuning_is_judged_at_the_horizon_not_at_the_screening():
    budget = replace(BUDGET, datasets=("kos",))

    def fast_start(run):
        """η = 1 is best of all at first and worst at the horizon."""
        fast = dict(run.params).get("step") == 1.0
        return 1.0 + fast if run.passes >= 600 else 3.0 - 2 * fast

    protocol = Protocol(budget, finish(budget, "nmf", fast_start))
    finalists = {r.params for r in protocol.plan("nmf") if is_s_sci_pi(r) and r.passes == 600}
    assert {dict(params)["step"] for params in finalists} == {1.0}  # the screening chose them
    wide = replace(budget, finalists=20)
    protocol = Protocol(wide, finish(wide, "nmf", fast_start))
    assert dict(protocol.winner(Case("nmf", "kos", "s-sci-pi")))["step"] < 1.0


def test_there_is_no_winner_before_all_of_its_runs_are_there():
    budget = replace(BUDGET, datasets=("pois1",))
    rows = finish(budget, "synthetic", step_decides)
    tuning = Protocol(budget, rows).tuning_runs(Case("nmf", "pois1", "s-sci-pi"))
    keys = {run.key for run in tuning}
    assert len(keys) == 36 + budget.finalists * budget.starts
    for left_out in (tuning[0].key, tuning[-1].key):
        part = [r for r in rows if Protocol(budget, [r]).rows.keys() != {left_out}]
        assert len(part) == len(rows) - 1
        assert Protocol(budget, part).winner(Case("nmf", "pois1", "s-sci-pi")) is None
        assert Protocol(budget, part).replicates(Case("nmf", "pois1", "s-sci-pi")) == {}


def test_a_diverged_finalist_does_not_win():
    budget = replace(BUDGET, datasets=("pois1",))
    rows = finish(budget, "synthetic", step_decides)
    best = Protocol(budget, rows).winner(Case("nmf", "pois1", "s-sci-pi"))
    for one in rows:
        if tuple(sorted(one["params"].items())) == best and one["seed"] == 1:
            one["status"] = "not_finite"
    assert Protocol(budget, rows).winner(Case("nmf", "pois1", "s-sci-pi")) != best


def test_of_ccd_and_scd_one_form_runs_on_all_seeds():
    budget = replace(BUDGET, datasets=("kos",))
    rows = finish(budget, "nmf", lambda run: 1.0 + (dict(run.params).get("form") == "ccd"))
    protocol = Protocol(budget, rows)
    assert protocol.winner(Case("nmf", "kos", "ccd/scd")) == (("form", "scd"),)
    runs = [run for run in protocol.plan("nmf") if run.method == "ccd/scd"]
    seeds = {
        form: {r.seed for r in runs if r.params == (("form", form),)} for form in ("ccd", "scd")
    }
    assert seeds == {"ccd": {0, 1}, "scd": {0, 1, 2, 3, 4}}


def test_both_sides_of_dense_data_have_a_share_each():
    protocol = Protocol(BUDGETS["standard"], [])
    runs = [r for r in protocol.plan("sampling") if isinstance(dict(r.params)["batch"], tuple)]
    assert {run.dataset for run in runs} == {"wt", "mitf"}
    for run in runs:
        (_, short), (_, epoch) = dict(run.params)["batch"], dict(run.params)["epoch"]
        assert short * 287 > 14  # frames of WT
        assert epoch * short <= 1


def test_each_pair_of_the_boxplots_has_its_own_step():
    budget = replace(BUDGET, datasets=("nips",))

    def small_steps_for_small_batches(run):
        params = dict(run.params)
        expected = 0.01 if params.get("batch") == 1e-4 else 1.0
        return 1.0 + abs(math.log(params.get("step", 1.0) / expected))

    protocol = Protocol(budget, finish(budget, "robustness", small_steps_for_small_batches))
    pairs = protocol.pairs("nips")
    assert {(1e-4, 10), (1e-4, 100), (1e-4, 1000), (1e-3, 10)} <= set(pairs)
    for pair in pairs:
        best = dict(protocol.winner(Case("nmf", "nips", "s-sci-pi", pair=pair)))
        assert (best["batch"], best["epoch"]) == pair
        assert best["step"] == (0.01 if pair[0] == 1e-4 else 1.0)
        assert len(protocol.replicates(Case("nmf", "nips", "s-sci-pi", pair=pair))) == 5


def test_a_run_that_two_experiments_ask_for_is_one_run():
    budget = replace(BUDGET, datasets=("wt",))
    rows = finish(budget, "nmf", step_decides)
    protocol = Protocol(budget, rows)
    boxplots = {run.key for run in protocol.plan("robustness")}
    assert {r.key for r in protocol.plan("nmf") if r.method in ("f-sci-pi", "mu")} <= boxplots


def test_without_finalists_the_whole_grid_runs_to_the_horizon_on_all_starts():
    budget = replace(BUDGETS["full"], datasets=("kos",))
    runs = [run for run in Protocol(budget, []).plan("nmf") if is_s_sci_pi(run)]
    assert len({run.params for run in runs}) == 42  # longer horizons: more points fit
    assert len(runs) == 420
    assert {run.passes for run in runs} == {2400.0}


def test_plans_of_all_budgets_end_and_stay_within_their_time():
    """An upper bound of the time: every run takes as long as it may; most take half of that."""
    minutes = {}
    for name, budget in BUDGETS.items():
        rows = []
        for experiment in EXPERIMENTS:
            rows = finish(budget, experiment, step_decides, rows)
        minutes[name] = sum(r["max_seconds"] for r in rows if r["method"] != "exact") / 2 / 60
    assert minutes["quick"] < 20
    assert 60 < minutes["standard"] < 180
    assert minutes["full"] > 600


def test_between_two_evaluations_the_objective_is_a_line_and_after_the_last_it_stays():
    one = row("mu", [9.0, 5.0, 4.0]) | {"passes": [0.0, 10.0, 20.0]}
    assert [objective_at(one, at) for at in (5, 15, 99)] == [7.0, 4.5, 4.0]
    assert objective_at(one | {"status": "not_finite"}, 5) == math.inf
    assert objective_at(one | {"objective": [9.0, None, 4.0]}, 5) == math.inf


def test_the_key_of_a_run_survives_json():
    run = next(
        r
        for r in Protocol(BUDGET, []).plan("sampling")
        if isinstance(dict(r.params)["batch"], tuple)
    )
    one = json.loads(json.dumps(row("s-sci-pi", [1.0]) | {"params": dict(run.params)}))
    one |= {"dataset": run.dataset, "max_passes": run.passes, "max_seconds": run.seconds}
    assert set(Protocol(BUDGET, [one]).rows) == {run.key}
