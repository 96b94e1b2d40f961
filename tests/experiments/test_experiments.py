# SPDX-License-Identifier: BSD-3-Clause
"""The paper's experiments: runs can be repeated, sessions go on, the rest is made of the table."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sipower.experiments import Budget, Run, execute, page, read, reproduce, verdicts, write
from sipower.experiments.curves import best, relative_errors
from sipower.experiments.protocol import BUDGETS, plan, winner
from sipower.experiments.table import append, key_of

TINY = Budget(
    replicates=2,
    others=1,
    seconds=(0.1, 0.1),
    grid=((0.1,), (10,), (0.1, 1.0), 5),
    grid_seconds=0.1,
    pairs=((0.1, 10),),
    side_seconds=0.1,
    side_replicates=1,
    datasets=("pois1",),
)
EVERYTHING = ("table1", "nmf", "subproblem", "robustness", "sampling", "synthetic")


@pytest.fixture(scope="module")
def without_data():
    """The experiments of somebody who has none of the real sets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SIPOWER_DATA", raising=False)
        yield


@pytest.fixture(scope="module")
def session(without_data, tmp_path_factory):
    table = tmp_path_factory.mktemp("session") / "runs.jsonl"
    return table, reproduce(EVERYTHING, TINY, table, jobs=2)


@pytest.mark.slow
def test_a_session_runs_everything_and_draws_every_figure(session, tmp_path):
    table, rows = session
    assert {row["experiment"] for row in rows} == {
        "grid", "subproblem grid", "nmf", "subproblem", "robustness", "sampling", "synthetic"
    }  # fmt: skip
    assert {row["dataset"] for row in rows} == {"docstrings", "pois1"}
    written = write(rows, tmp_path)
    names = {file.name for file in written}
    kinds = ("nmf-mean", "nmf-median", "synthetic-median", "subproblem-mean", "robustness")
    for kind in (*kinds, "sampling"):
        assert {f"{kind}.png", f"{kind}.html"} <= names
        with Image.open(tmp_path / f"{kind}.png") as picture:
            assert len(picture.convert("L").getcolors()) > 20  # something is drawn
        assert "Plotly.newPlot" in (tmp_path / f"{kind}.html").read_text("utf-8")
    assert (tmp_path / "plotly.min.js").is_file()
    assert (tmp_path / "index.md").read_text("utf-8") == page(read(table))


@pytest.mark.slow
def test_a_finished_session_runs_nothing_again(session):
    table, rows = session
    before, seen = table.read_bytes(), []
    again = reproduce(EVERYTHING, TINY, table, jobs=2, on_row=lambda row, *_: seen.append(row))
    assert (again, seen, table.read_bytes()) == (rows, [], before)


def test_the_same_run_has_the_same_values_at_the_same_passes(without_data):
    params = {"batch": 0.1, "epoch": 10, "step": 0.5, "scheme": "elements", "shortest": 0}
    run = Run("nmf", "docstrings", "s-sci-pi", tuple(sorted(params.items())), 3, 0.2)
    first, second = execute(run), execute(run)
    common = min(len(first["passes"]), len(second["passes"])) - 1  # the last look is by the clock
    assert common >= 2
    for name in ("passes", "objective"):
        assert first[name][:common] == second[name][:common]


def test_an_interrupted_session_loses_no_run_and_does_none_twice(without_data, tmp_path):
    command = [sys.executable, "-m", "sipower", "reproduce", "subproblem", "--out", str(tmp_path)]
    environment = {k: v for k, v in os.environ.items() if k != "SIPOWER_DATA"}
    table = tmp_path / "runs.jsonl"
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not (table.is_file() and table.read_bytes().count(b"\n") >= 2):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 3
    assert b"Traceback" not in errors
    kept = table.read_text().splitlines()
    with table.open("a") as torn:
        torn.write(kept[0][:100])  # as a kill in the middle of a write leaves it
    rows = reproduce(["subproblem"], BUDGETS["quick"], table, jobs=2)
    lines = table.read_text().splitlines()
    assert lines[: len(kept)] == kept
    assert len({key_of(row) for row in rows}) == len(rows) == len(lines) - 1
    planned = {run.key for run in plan("subproblem", BUDGETS["quick"], rows)}
    assert {key_of(row) for row in rows} == planned


# ---- the table ----------------------------------------------------------------------------------


def row(method, values, *, experiment="nmf", dataset="wt", seed=0, seconds=None, **more):
    points = len(values)
    return {
        "experiment": experiment, "dataset": dataset, "method": method, "params": {}, "seed": seed,
        "seconds_allowed": 30.0, "seconds": seconds or np.linspace(0, 30, points).tolist(),
        "passes": np.linspace(0, 300, points).tolist(), "objective": values, "status": "stopped",
        "gap": 0.1, "threads": 1, "dtype": "float64", "rank": 20, "commit": "c", "cpu": "p",
        "versions": {"python": "3"},
    } | more  # fmt: skip


def test_a_row_comes_back_and_a_torn_line_is_passed_over(tmp_path):
    table = tmp_path / "runs.jsonl"
    append(table, row("mu", [2.0, 1.0]))
    with table.open("a") as file:
        file.write('{"experiment": "nmf", "data')
    append(table, row("ccd", [2.0, 0.5]))
    append(table, row("ccd", [2.0, 0.5]))  # the same run twice counts once
    assert [found["method"] for found in read(table)] == ["mu", "ccd"]
    assert read(tmp_path / "nothing.jsonl") == []


def test_the_lowest_value_and_the_papers_error():
    rows = [row("mu", [11.0, 6.0, 3.0]), row("auto", [11.0, 2.0, 1.0], dataset="unknown")]
    rows.append(row("ccd", [11.0, None, 2.0], dataset="unknown"))
    found = best(rows, "unknown")
    assert found.value == 1.0
    assert found.found_by.startswith("auto, seed 0, 300 passes")
    np.testing.assert_allclose(relative_errors(rows[2], 1.0), [1.0, np.inf, 0.1])


def test_the_winner_is_known_once_the_grid_is_in_the_table():
    runs = plan("synthetic", TINY, [])
    grid = [run for run in runs if run.experiment == "grid"]
    assert len(grid) == 2
    assert not [run for run in runs if run.method == "s-sci-pi" and run.experiment != "grid"]
    rows = [
        row("s-sci-pi", [9.0, 3.0 - run.params[-1][1]], experiment="grid", dataset="pois1")
        | {"params": dict(run.params)}
        for run in grid
    ]
    assert winner("grid", "pois1", TINY, rows[:1]) is None
    assert dict(winner("grid", "pois1", TINY, rows))["step"] == 1.0
    rows[1]["status"] = "not_finite"
    assert dict(winner("grid", "pois1", TINY, rows))["step"] == 0.1
    planned = plan("synthetic", TINY, rows)
    assert [run for run in planned if run.method == "s-sci-pi" and run.experiment == "synthetic"]


# ---- the verdicts -------------------------------------------------------------------------------


def word(rows, claim):
    (found,) = [v for v in verdicts(rows) if claim in v.claim]
    return found.verdict


@pytest.mark.parametrize(
    ("last", "expected"),
    [([1.0] * 5, "reproduced"), ([9.0] * 5, "not reproduced"), ([1, 1, 1, 9, 9], "depends")],
)
def test_a_duel_is_judged_seed_by_seed(last, expected):
    rows = [row("f-sci-pi", [99.0, 20.0, 5.0], seed=s, dataset="kos") for s in range(5)]
    rows += [row("mu", [99.0, 50.0, 30.0], seed=s, dataset="kos") for s in range(5)]
    rows += [row("s-sci-pi", [99.0, 15.0, last[s]], seed=s, dataset="kos") for s in range(5)]
    assert word(rows, "S-SCI-PI converges faster than F-SCI-PI on KOS") == expected
    assert word(rows, "much faster than MU/EM") == "reproduced"
    assert word(rows, "costs as much as one of MU") == "reproduced"


def test_a_diverged_run_has_lost():
    rows = [row("f-sci-pi", [99.0, 20.0, 5.0], dataset="kos")]
    rows.append(row("s-sci-pi", [99.0, 2.0, 1.0], dataset="kos", status="not_finite"))
    assert word(rows, "faster than F-SCI-PI on KOS") == "not reproduced"


# ---- the command --------------------------------------------------------------------------------


def test_the_command_lists_the_data_and_refuses_two_budgets():
    command = [sys.executable, "-m", "sipower"]
    listed = subprocess.run([*command, "datasets"], capture_output=True, text=True, check=True)
    assert "353,160" in listed.stdout
    assert "swapped" in listed.stdout
    wrong = subprocess.run(
        [*command, "reproduce", "--quick", "--full"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "choose one of" in wrong.stderr


def test_plans_of_all_budgets_are_finite_and_within_their_hours(monkeypatch):
    monkeypatch.setattr("sipower.experiments.protocol.is_present", lambda name: True)
    hours = {}
    for name, budget in BUDGETS.items():
        rows = []
        for kind in ("grid", "subproblem grid"):
            for dataset in budget.datasets:
                rows += [
                    json.loads(run.key) | {"objective": [1.0], "status": "stopped"}
                    for run in plan("nmf", budget, []) + plan("subproblem", budget, [])
                    + plan("synthetic", budget, [])
                    if (run.experiment, run.dataset) == (kind, dataset)
                ]  # fmt: skip
        runs = {run.key: run for e in EVERYTHING for run in plan(e, budget, rows)}
        hours[name] = sum(run.seconds for run in runs.values()) / 2 / 3600
    assert hours["quick"] < 8 / 60
    assert hours["standard"] < 2.2
    assert hours["full"] > 10


def test_files_of_the_package_are_there():
    assert Path(sys.modules["sipower.experiments"].__file__).with_name("best_known.json").is_file()
