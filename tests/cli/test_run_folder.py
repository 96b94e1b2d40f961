# SPDX-License-Identifier: BSD-3-Clause
"""Run folders: their names, what they do not lose, and that one process uses them at a time."""

import numpy as np
import pytest

from cli.calls import call
from sipower._files import file_lock
from sipower.cli.run_folder import default_folder
from sipower.results import load_run

FIT = ("fit", "counts.npz", "-k", 4, "-o", "run", "--no-report", "--tol", 1e-6)


@pytest.fixture(name="counts")
def _counts(sparse_counts):
    return sparse_counts


def test_damaged_pieces_of_a_consensus_are_made_again(counts):
    words = ("consensus", "counts.npz", "-k", 2, "-o", "run", "--replicates", 2)
    call(*words)
    before = load_run("run").H.tobytes()
    piece = counts / "run" / "fits" / "replicate-001.npz"
    with np.load(piece) as arrays:
        parts = dict(arrays)
    np.savez(piece, **(parts | {"H": parts["H"][:, :-1]}))
    call(*words)
    assert load_run("run").H.tobytes() == before


def test_a_consensus_replaces_no_fit(counts):
    words = ("consensus", "counts.npz", "-k", 2, "-o", "run", "--replicates", 2)
    call(*words)
    call(*words)  # goes on from its pieces
    call(*FIT, "--force")
    assert "run holds a run already" in call(*words, code=2).stderr
    assert load_run("run").H.shape[0] == 4


def test_a_consensus_is_no_fit_to_go_on_from(counts):
    call("consensus", "counts.npz", "-k", 2, "-o", "run", "--replicates", 2)
    refused = call("fit", "counts.npz", "-k", 2, "-o", "run", "--resume", code=2)
    assert "holds a run already, which differs in " in refused.stderr


@pytest.mark.parametrize("name", ["W.csv", "report.html", "factors.npz", "consensus.json"])
def test_files_that_are_not_of_a_run_are_not_lost(counts, name):
    mine = counts / "mine" / name
    mine.parent.mkdir()
    mine.write_text("mine")
    words = ("fit", "counts.npz", "-k", 2, "-o", "mine", "--no-report")
    for more in ((), ("--resume",)):
        assert f"mine holds {name}, which a run may replace" in call(*words, *more, code=2).stderr
    assert mine.read_text() == "mine"
    call(*words, "--force")
    assert name == "factors.npz" or mine.read_text() == "mine"


def test_a_demo_replaces_no_run(counts):
    call(*FIT)
    assert "run holds a run already" in call("demo", "-o", "run", "-k", 2, code=2).stderr


@pytest.mark.parametrize("command", ["fit", "consensus", "rank", "demo"])
def test_a_folder_belongs_to_one_session_at_a_time(counts, command):
    words = () if command == "demo" else ("counts.npz", "-k", 2)
    more = ("--force",) if command != "rank" else ()
    (counts / "run").mkdir()
    with file_lock(counts / "run" / "run"):
        message = call(command, *words, "-o", "run", *more, code=2).stderr
    assert "run is in use by another process" in message
    assert not list((counts / "run").iterdir())


def test_force_begins_a_consensus_anew(counts):
    words = ("consensus", "counts.npz", "-o", "c", "--replicates", 2, "--tol", 1e-2)
    call(*words, "-k", 3)
    assert "another task" in call(*words, "-k", 4, code=2).stderr
    (counts / "c" / "fits" / "mine.txt").write_text("kept")
    call(*words, "-k", 4, "--force")
    assert load_run("c").H.shape[0] == 4
    assert (counts / "c" / "fits" / "mine.txt").read_text() == "kept"


@pytest.mark.parametrize("command", ["fit", "consensus", "rank", "bench"])
def test_data_without_counts_are_refused_before_anything_is_made(counts, command):
    np.save("zeros.npy", np.zeros((6, 5)))
    out = () if command == "bench" else ("-o", "made")
    message = call(command, "zeros.npy", "-k", 2, *out, code=2).stderr
    assert "The data are all zero" in message
    assert not list(counts.glob("made/*"))


def test_names_of_folders_follow_the_file(counts):
    names = [
        default_folder(counts / name, "k2").name for name in ("docword.kos.txt", "a.csv.gz", ".x")
    ]
    assert names == ["docword.kos-k2", "a-k2", "x-k2"]
