# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the experiments are reproducible and resumable, and each is a line of the table."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import oracles
from result_rows import row
from sipower._files import file_lock
from sipower.experiments import BUDGETS, EXPERIMENTS, Curves, page, read, reproduce, write
from sipower.experiments.budgets import HORIZONS, Budget
from sipower.experiments.figures import figures
from sipower.experiments.protocol import Protocol
from sipower.experiments.run import _half, _matrix, _start, execute
from sipower.experiments.table import PlannedRun, append, row_key
from sipower.kernels import Draw, batch_size

TINY = Budget(
    scale=0.16,
    replicates=2,
    other_replicates=1,
    finalists=2,
    starts=1,
    grid=((0.1,), (10,), (0.1, 0.5, 1.0)),
    pairs=((0.1, 10),),
    datasets=("pois1",),
)


@pytest.fixture(scope="module")
def without_data():
    """Hide the real data sets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SIPOWER_DATA", raising=False)
        yield


UNTIMED_HORIZONS = {name: replace(horizon, seconds=1e4) for name, horizon in HORIZONS.items()}


@pytest.fixture
def untimed(monkeypatch):
    """Let passes alone end the runs, so that the speed of the machine does not matter."""
    monkeypatch.setattr("sipower.experiments.protocol.HORIZONS", UNTIMED_HORIZONS)


@pytest.fixture(scope="module")
def session(without_data, tmp_path_factory):
    """Execute all runs of a tiny budget, limited by passes alone."""
    table = tmp_path_factory.mktemp("session") / "runs.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sipower.experiments.protocol.HORIZONS", UNTIMED_HORIZONS)
        rows = reproduce(EXPERIMENTS, TINY, table, jobs=2)
    return table, rows


@pytest.mark.slow
def test_a_session_runs_everything_and_draws_every_figure(session, untimed, tmp_path):
    table, rows = session
    assert {row["problem"] for row in rows} == {"nmf", "subproblem", "signs"}
    assert {row["dataset"] for row in rows} == {"docstrings", "pois1"}
    names = {file.name for file in write(rows, TINY, tmp_path)}
    kinds = "nmf", "algorithm-1", "synthetic", "subproblem", "robustness", "sampling", "beyond"
    for kind in kinds:
        assert {f"{kind}.png", f"{kind}.html"} <= names
        with Image.open(tmp_path / f"{kind}.png") as picture:
            assert len(picture.convert("L").getcolors()) > 20  # something is drawn
        assert "Plotly.newPlot" in (tmp_path / f"{kind}.html").read_text("utf-8")
    assert (tmp_path / "plotly.min.js").is_file()
    curves = Curves(read(table), TINY)
    assert (tmp_path / "index.md").read_text("utf-8") == page(curves, figures(curves))


@pytest.mark.slow
def test_a_finished_session_runs_nothing_again(session, untimed):
    table, rows = session
    before, sizes = table.read_bytes(), []
    again = reproduce(EXPERIMENTS, TINY, table, jobs=2, on_row=lambda row, *_: sizes.append(row))
    assert (again, sizes, table.read_bytes()) == (rows, [], before)


@pytest.mark.parametrize("problem", ["nmf", "subproblem", "signs"])
def test_the_same_run_has_the_same_values_at_the_same_passes(without_data, problem):
    params = {"batch": 0.1, "epoch": 10, "step": 0.5, "scheme": "elements", "shortest": 0}
    run = PlannedRun(
        problem, "docstrings", "s-sci-pi", tuple(sorted(params.items())), 3, 30.0, 60.0
    )
    first, second = execute(run), execute(run)
    assert len(first["passes"]) >= 4
    for name in ("passes", "objective", "status"):
        assert first[name] == second[name]
    shorter = execute(replace(run, passes=20.0))  # the same values as far as it goes
    common = len(shorter["passes"]) - 1  # the last evaluation is where the run ends
    assert shorter["objective"][:common] == first["objective"][:common]


@pytest.mark.parametrize("limit", [{"passes": 5.0}, {"seconds": 0.0}])
def test_a_run_ends_at_its_passes_or_at_its_seconds(without_data, limit):
    run = replace(PlannedRun("nmf", "docstrings", "mu", (), 0, 1e9, 1e9), **limit)
    result = execute(run)
    assert result["passes"][-1] == (6.0 if "passes" in limit else 2.0)  # rounds of two passes


@pytest.mark.parametrize(("batch", "epoch", "step"), [(1e-3, 30, 1.0), (0.1, 10, 0.1)])
def test_the_runs_of_s_sci_pi_are_algorithm_1(without_data, batch, epoch, step):
    """One epoch of a run on the subproblem of Pois1 against the transcription, item by item."""
    params = {"batch": batch, "epoch": epoch, "step": step, "scheme": "vectors", "shortest": 0}
    run = PlannedRun("subproblem", "pois1", "s-sci-pi", tuple(sorted(params.items())), 2, 1.0, 60.0)
    result = execute(run)
    side, block = _half(_matrix("pois1"), _start("pois1", 2))
    V, B = np.array([block.V.row(j) for j in range(block.shape[0])]), np.asarray(block.B)
    h, n = _start("pois1", 2)[side], V.shape[1]
    L = B / B.sum(axis=0)
    size = batch_size(batch, n)
    batches = [Draw(2, 0, 0, side, t).batch(n, size, replace=False) for t in range(epoch)]
    X = oracles.simplex(V, B, h)
    for j in range(len(V)):
        y, _ = oracles.algorithm_1(
            oracles.kl_terms(V[j], L), 0, np.sqrt(X[j]), step, batches, threshold=0.01
        )
        X[j] = y**2 / (y @ y)
    after = oracles.divergence(V, oracles.factor(V, B, X), B)
    assert result["objective"][-1] == pytest.approx(after, rel=1e-10)


@pytest.mark.stress
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
    before = table.read_text().splitlines()
    with table.open("a") as torn:
        torn.write(before[0][:100])  # as a process leaves it that is killed while it writes
    rows = reproduce(["subproblem"], BUDGETS["quick"], table, jobs=2)
    lines = table.read_text().splitlines()
    assert lines[: len(before)] == before
    assert len({row_key(row) for row in rows}) == len(rows) == len(lines) - 1
    planned = {run.key for run in Protocol(BUDGETS["quick"], rows).plan("subproblem")}
    assert {row_key(row) for row in rows} == planned


# ---- the table ----------------------------------------------------------------------------------


def test_a_row_comes_back_and_an_incomplete_line_is_skipped(tmp_path):
    table = tmp_path / "runs.jsonl"
    append(table, row("mu", [2.0, 1.0]))
    with table.open("a") as file:
        file.write('{"problem": "nmf", "data')
    append(table, row("pgd", [2.0, 0.5]))
    append(table, row("pgd", [2.0, 0.5]))  # the same run twice counts once
    assert [line["method"] for line in read(table)] == ["mu", "pgd"]
    assert read(tmp_path / "nothing.jsonl") == []


def test_a_line_that_is_no_row_is_skipped(tmp_path):
    table = tmp_path / "runs.jsonl"
    table.write_text(
        '3\n{}\n{"params": 3}\n' + "[" * 100_000 + "\n\udcff\n", errors="surrogateescape"
    )
    append(table, row("mu", [2.0, 1.0]))
    assert [line["method"] for line in read(table)] == ["mu"]


def test_a_packed_table_that_breaks_off_is_named(tmp_path):
    packed = gzip.compress(json.dumps(row("mu", [2.0, 1.0])).encode())
    for content in (packed[:-12], packed[:20] + b"\xff\xff" + packed[22:], b"no gzip"):
        (tmp_path / "runs.jsonl.gz").write_bytes(content)
        with pytest.raises(ValueError, match=r"runs\.jsonl\.gz cannot be read: .*\.$"):
            read(tmp_path / "runs.jsonl.gz")


def test_a_table_is_one_sessions_at_a_time(tmp_path):
    table = tmp_path / "runs.jsonl"
    with (
        file_lock(table),
        pytest.raises(ValueError, match="is in use by another process"),
        file_lock(table),
    ):
        pass
    with file_lock(table):
        pass


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
