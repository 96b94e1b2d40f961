# SPDX-License-Identifier: BSD-3-Clause
"""Commands that cannot write say so in one sentence and leave what was there."""

import re
import subprocess
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from typer.testing import CliRunner

import messages
from faults.full_disks import FAULTS, content
from sipower.cli import app
from sipower.results import load_run

V = np.random.default_rng(0).poisson(1.0, (90, 60))


@pytest.fixture
def folder():
    """A folder that others may read; those of pytest are for their owner alone."""
    with TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


def call(*words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(app, [str(word) for word in words])
    messages.add_output(result.stderr, words)
    return result


COMMANDS = {
    "fit": ("fit", "counts.npy", "-k", 2, "-o", "run", "--force"),
    "fit --also": ("fit", "counts.npy", "-k", 2, "-o", "run", "--force", "--no-report",
                   "--also", "csv"),
    "fit --json": ("fit", "counts.npy", "-k", 2, "-o", "run", "--force", "--json"),
    "transform": ("transform", "run", "counts.npy", "-o", "W.csv"),
    "report": ("report", "run"),
    "consensus": ("consensus", "counts.npy", "-k", 2, "-o", "consensus", "--replicates", 2),
    "rank": ("rank", "counts.npy", "-k", "1:2", "-o", "rank", "--replicates", 2),
    "convert": ("convert", "counts.npy", "-o", "counts.sipower"),
    "reproduce": ("reproduce", "table1", "--out", "paper"),
}  # fmt: skip


@pytest.fixture
def workplace(folder, monkeypatch):
    monkeypatch.chdir(folder)
    np.save("counts.npy", V)
    assert call("fit", "counts.npy", "-k", 2, "-o", "run", "--seed", 7).exit_code == 0
    assert call(*COMMANDS["reproduce"]).exit_code == 0
    return folder


@pytest.mark.parametrize("fault", ["full in the head of a file", "read-only"])
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_cannot_write_says_so_in_one_sentence(workplace, words, fault):
    before = content(workplace)
    with FAULTS[fault](workplace):
        result = call(*words)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("sipower: ")
    assert not [path for path in content(workplace) if path.name.startswith(".")]
    assert before.items() <= content(workplace).items()
    assert load_run("run").facts["parameters"]["random_state"] == 7


@pytest.mark.parametrize("fault", FAULTS)
def test_a_rank_that_cannot_be_written_leaves_all_of_the_older_one(workplace, fault):
    """Its fits are there, so that only the outcome is written again."""
    assert call(*COMMANDS["rank"]).exit_code == 0
    whole = content(workplace)
    older = {Path("rank", f"rank.{ending}"): b"older" for ending in ("csv", "png", "json")}
    for path, text in older.items():
        path.write_bytes(text)
    with FAULTS[fault](workplace):
        result = call(*COMMANDS["rank"])
    assert result.exit_code == 2, (result.output, result.exception)
    assert re.fullmatch(
        r"sipower: .*(denied.*rank|rank.*too large.*the same command continues).*\n", result.stderr
    )
    assert {path: path.read_bytes() for path in older} == older
    assert set(content(workplace)) == set(whole)
    assert call(*COMMANDS["rank"]).exit_code == 0
    assert content(workplace) == whole


def with_full_output(*words):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        return subprocess.run(
            [sys.executable, "-m", "sipower", *words],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["info"], ["datasets"]])
def test_a_full_disk_behind_the_output_is_one_sentence_too(words):
    result = with_full_output(*words)
    assert result.returncode == 2
    assert result.stderr.startswith("sipower: ")
    assert result.stderr.endswith("[Errno 28] No space left on device\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk_behind_the_output_does_not_cost_the_fit(workplace, options):
    result = with_full_output("fit", "counts.npy", "-k", "2", "-o", "new", *options)
    assert result.returncode == 2
    assert result.stderr.startswith(
        "sipower: the work is done, but its output could not be written"
    )
    assert load_run("new").facts["status"] == "converged"
