# SPDX-License-Identifier: BSD-3-Clause
"""The paper's experiments: runs can be repeated, sessions go on, the rest is made of the table."""

import gzip
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sipower.experiments import Budget, Run, execute, page, read, reproduce, verdicts, write
from sipower.experiments.curves import Curves
from sipower.experiments.figures import figures
from sipower.experiments.protocol import BUDGETS, PENDING, Grid, plan
from sipower.experiments.run import OVERHEAD
from sipower.experiments.table import append, key_of
from sipower.files import locked

TINY = Budget(
    replicates=2,
    others=1,
    seconds=(0.1, 0.1),
    box_seconds=0.1,
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
        "grid", "subproblem grid", "nmf", "subproblem", "robustness", "sampling", "synthetic",
        "gradients",
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
    made = read(table)
    assert (tmp_path / "index.md").read_text("utf-8") == page(made, figures(made))


@pytest.mark.slow
def test_a_finished_session_runs_nothing_again(session):
    table, rows = session
    before, seen = table.read_bytes(), []
    again = reproduce(EVERYTHING, TINY, table, jobs=2, on_row=lambda row, *_: seen.append(row))
    assert (again, seen, table.read_bytes()) == (rows, [], before)


def test_the_same_run_has_the_same_values_at_the_same_passes(without_data):
    params = {"batch": 0.1, "epoch": 10, "step": 0.5, "scheme": "elements", "shortest": 0}
    run = Run("nmf", "docstrings", "s-sci-pi", tuple(sorted(params.items())), 3, 1.0)
    first, second = execute(run), execute(run)
    common = min(len(first["passes"]), len(second["passes"])) - 1  # the last look is by the clock
    assert common >= 2
    for name in ("passes", "objective"):
        assert first[name][:common] == second[name][:common]


def test_an_interrupted_session_loses_no_run_and_does_none_twice(without_data, tmp_path):
    command = [sys.executable, "-m", "sipower", "reproduce", "subproblem", "--out", str(tmp_path)]
    environment = {k: v for k, v in os.environ.items() if k != "SIPOWER_DATA"}
    table = tmp_path / "quick" / "runs.jsonl"
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while not (table.is_file() and table.read_bytes().count(b"\n") >= 2):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
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


def test_a_line_that_is_no_row_is_passed_over(tmp_path):
    table = tmp_path / "runs.jsonl"
    table.write_text(
        '3\n{}\n{"params": 3}\n' + "[" * 100_000 + "\n\udcff\n", errors="surrogateescape"
    )
    append(table, row("mu", [2.0, 1.0]))
    assert [found["method"] for found in read(table)] == ["mu"]


def test_a_packed_table_that_breaks_off_is_named(tmp_path):
    packed = gzip.compress(json.dumps(row("mu", [2.0, 1.0])).encode())
    for content in (packed[:-12], packed[:20] + b"\xff\xff" + packed[22:], b"no gzip"):
        (tmp_path / "runs.jsonl.gz").write_bytes(content)
        with pytest.raises(ValueError, match=r"runs\.jsonl\.gz cannot be read: .*\.$"):
            read(tmp_path / "runs.jsonl.gz")


def test_the_lowest_value_and_the_papers_error():
    rows = [row("mu", [11.0, 6.0, 3.0]), row("auto", [11.0, 2.0, 1.0], dataset="unknown")]
    rows.append(row("ccd", [11.0, None, 2.0], dataset="unknown"))
    curves = Curves(rows)
    found = curves.best["unknown"]
    assert found.value == 1.0
    assert found.found_by.startswith("auto, seed 0, 300 passes")
    np.testing.assert_allclose(curves.errors(rows[2]), [1.0, np.inf, 0.1])
    np.testing.assert_allclose(curves.errors(rows[1]), [1.0, 0.1, 1e-15])


def test_between_two_looks_the_logarithm_of_the_error_is_a_line():
    lowest = row("auto", [101.0, 1.0], dataset="unknown")
    one = row("mu", [101.0, 11.0, 2.0], dataset="unknown")  # errors 1, 0.1, 0.01 at 0, 15, 30 s
    curves = Curves([lowest, one])
    assert curves.error_at(one, 22.5) == pytest.approx(10**-1.5)
    assert curves.time_to(one, 10**-1.5) == pytest.approx(22.5)
    assert curves.time_to(one, 1e-3) == np.inf
    assert curves.error_at(one | {"status": "not_finite"}, 10.0) == np.inf


def test_the_winner_is_known_once_the_grid_is_in_the_table():
    runs = plan("synthetic", TINY, [])
    grid = [run for run in runs if run.experiment == "grid"]
    assert len(grid) == 2
    (waiting,) = [r for r in runs if r.method == "s-sci-pi" and r.experiment != "grid"]
    assert waiting.params == PENDING
    rows = [
        row("s-sci-pi", [9.0, 3.0 - run.params[-1][1]], experiment="grid", dataset="pois1")
        | {"params": dict(run.params), "seconds_allowed": run.seconds}
        for run in grid
    ]
    assert Grid(TINY, rows[:1]).winner("grid", "pois1") == PENDING
    other_budget = [one | {"seconds_allowed": 77.0, "objective": [9.0, -5.0]} for one in rows[:1]]
    assert dict(Grid(TINY, other_budget + rows).winner("grid", "pois1"))["step"] == 1.0
    assert dict(Grid(TINY, rows).winner("grid", "pois1"))["step"] == 1.0
    rows[1]["status"] = "not_finite"
    assert dict(Grid(TINY, rows).winner("grid", "pois1"))["step"] == 0.1
    planned = plan("synthetic", TINY, rows)
    (tuned,) = [r for r in planned if r.method == "s-sci-pi" and r.experiment == "synthetic"]
    assert dict(tuned.params)["step"] == 0.1


def test_a_table_is_one_sessions_at_a_time(tmp_path):
    table = tmp_path / "runs.jsonl"
    with (
        locked(table),
        pytest.raises(ValueError, match="Another session is at work"),
        locked(table),
    ):
        pass
    with locked(table):
        pass


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
    rows[1]["status"], rows[0]["status"] = "stopped", "not_finite"
    assert word(rows, "faster than F-SCI-PI on KOS") == "reproduced"


def test_sooner_is_symmetric_and_at_the_same_time():
    slow = [10.0 * 0.9**t for t in range(31)]
    fast = [10.0 * 0.9 ** (2 * t) for t in range(31)]
    late = row("f-sci-pi", [*slow, 0.0], dataset="kos", seconds=[*range(31), 99.0])
    rows = [row("s-sci-pi", fast, dataset="kos"), late, row("auto", [10.0, 0.0], dataset="kos")]
    (found,) = [v for v in verdicts(rows) if "faster than F-SCI-PI on KOS" in v.claim]
    assert "2x as soon" in found.numbers  # not the value long after the time that was allowed
    swapped = [
        one | {"method": other}
        for one, other in zip(rows, ("f-sci-pi", "s-sci-pi", "auto"), strict=True)
    ]
    (found,) = [v for v in verdicts(swapped) if "faster than F-SCI-PI on KOS" in v.claim]
    assert "0.5x as soon" in found.numbers


def test_a_run_that_rises_again_is_timed_all_the_same():
    """It counted as one that never came to the error that it has at the end of its time."""
    seconds = [*range(0, 31, 10), 31.0]
    falls = row("f-sci-pi", [10.0, 6.0, 4.0, 2.0, 1.9], dataset="kos", seconds=seconds)
    rises = row("s-sci-pi", [10.0, 2.0, 3.0, 4.0, 4.1], dataset="kos", seconds=seconds)
    rows = [falls, rises, row("auto", [10.0, 0.0], dataset="kos")]
    (found,) = [v for v in verdicts(rows) if "faster than F-SCI-PI on KOS" in v.claim]
    assert found.verdict == "not reproduced"
    assert "0.67x as soon" in found.numbers  # at 4 from 20 s on, against 30 s


def test_sublinear_convergence_is_not_called_linear():
    t = np.linspace(0, 300, 40)
    exact = row("exact", [0.0], experiment="subproblem", dataset="kos")
    for errors, expected in ((np.exp(-t / 25), "reproduced"), ((1 + t) ** -2.0, "not reproduced")):
        one = row("s-sci-pi", errors.tolist(), experiment="subproblem", dataset="kos")
        assert word([exact, one], "converges linearly") == expected


def test_pages_of_every_part_of_a_table_can_be_made():
    rng = np.random.default_rng(0)
    rows = [
        row(method, [9.0, 5.0, 1.0 + seed], dataset=dataset, seed=seed, experiment=experiment)
        | {
            "params": {
                "batch": 0.1,
                "epoch": 10,
                "step": 1.0,
                "scheme": "elements",
                "sides": "both",
            }
        }
        | {"status": "not_finite" if rng.random() < 0.3 else "stopped"}
        for experiment in ("nmf", "subproblem", "robustness", "sampling", "grid", "gradients")
        for dataset in ("kos", "wt")
        for method in ("s-sci-pi", "f-sci-pi", "mu", "ccd", "auto", "exact")
        for seed in range(2)
    ]
    for _ in range(60):
        part = [rows[i] for i in rng.permutation(len(rows))[: rng.integers(0, len(rows))]]
        assert page(part, figures(part)).startswith("# The paper's experiments")


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
                    json.loads(run.key)
                    | {"objective": [1.0], "seconds": [1.0], "status": "stopped"}
                    | {"seconds_allowed": run.seconds}
                    for run in plan("nmf", budget, []) + plan("subproblem", budget, [])
                    + plan("synthetic", budget, [])
                    if (run.experiment, run.dataset) == (kind, dataset)
                ]  # fmt: skip
        runs = {run.key: run for e in EVERYTHING for run in plan(e, budget, rows)}
        assert not any(PENDING[0] in run.params for run in runs.values())
        hours[name] = OVERHEAD * sum(run.seconds for run in runs.values()) / 2 / 3600
    assert hours["quick"] < 10 / 60
    assert hours["standard"] < 2.5
    assert hours["full"] > 10


def test_files_of_the_package_are_there():
    assert Path(sys.modules["sipower.experiments"].__file__).with_name("best_known.json").is_file()


# ---- what is published --------------------------------------------------------------------------


def test_the_published_page_is_made_of_the_published_table():
    place = Path(__file__).parents[2] / "docs" / "reproduction"
    rows = read(place / "runs.jsonl.gz")
    why = json.loads((place / "why.json").read_text(encoding="utf-8"))
    drawn, made = figures(rows), runpy.run_path(str(place / "make.py"))["text"]()
    assert (place / "index.md").read_text(encoding="utf-8") == made
    assert made.endswith(page(rows, drawn, why).split("\n", maxsplit=1)[1])
    assert {f"{figure.name}.png" for figure in drawn} == {p.name for p in place.glob("*.png")}
    assert set(why) == {verdict.claim for verdict in verdicts(rows)}  # each has its reason


def test_best_known_values_are_no_worse_than_the_published_ones():
    place = Path(__file__).parents[2] / "docs" / "reproduction"
    known = json.loads((files("sipower.experiments") / "best_known.json").read_text("utf-8"))
    for row in read(place / "runs.jsonl.gz"):
        if row["experiment"] in ("nmf", "synthetic", "grid") and row["objective"][-1] is not None:
            assert known[row["dataset"]]["value"] <= min(filter(None, row["objective"]))
