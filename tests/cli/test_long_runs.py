# SPDX-License-Identifier: BSD-3-Clause
"""Commands on data that stay on disk, and runs that are stopped and go on."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import oracles
from sipower import KLNMF
from sipower._files import file_lock
from sipower.cli import app
from sipower.results import load_run

V = sp.csr_array(oracles.counts(300, 200, density=0.5))


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A folder to work in, with counts.npz in it."""
    monkeypatch.chdir(tmp_path)
    sp.save_npz("counts.npz", sp.csr_matrix(V))
    return tmp_path


def call(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.stderr, done.exception)
    return done


FIT = ("fit", "counts.npz", "-k", 4, "-o", "run", "--no-report", "--tol", 1e-6)


def test_a_store_is_fitted_as_the_file_is(counts):
    call("convert", "counts.npz", "-o", "counts.sipower")
    done = call("fit", "counts.sipower", "-k", 4, "-o", "stored", "--memory-limit", "400kB")
    assert "300 samples x 200 features" in done.stdout
    call("fit", "counts.npz", "-k", 4, "-o", "whole")
    stored, whole = load_run("stored"), load_run("whole")
    assert stored.H.tobytes() == whole.H.tobytes()
    assert stored.W.tobytes() == whole.W.tobytes()
    assert stored.facts["input"]["sha256"] == whole.facts["input"]["sha256"]
    assert (counts / "stored" / "report.html").exists()
    call("transform", "whole", "counts.sipower", "-o", "W.npz")
    with np.load("W.npz") as found:
        np.testing.assert_allclose(found["W"], whole.W, rtol=1e-4, atol=1e-8)


def test_rows_of_an_h5ad_file_stay_on_disk(counts):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(sp.csr_matrix(V.astype(np.float32))).write_h5ad("cells.h5ad")
    call("fit", "cells.h5ad", "-k", 3, "-o", "run", "--memory-limit", "1MB", "--no-report",
         "--dtype", "float64")  # fmt: skip
    run = load_run("run")
    assert run.facts["status"] == "converged"
    assert run.samples[:2] == ("0", "1")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("counts.npz", "--memory-limit", "1MB"), "make a store of counts.npz first"),
        (("store", "--transpose"), "give --transpose to sipower convert"),
        (("store", "--layer", "x"), "has no layers"),
        (("store", "--memory-limit", "much"), "The size 'much' is unknown"),
        (("store", "--memory-limit", "1kB"), "needs at least"),
        (("store", "--init", "nndsvd"), "lie on disk"),
        (("counts.npz", "--checkpoint", "there.npz"), "go on from it with --resume"),
        (("counts.npz", "--checkpoint", "there.npz", "--resume"), "is damaged"),
    ],
)
def test_what_cannot_be_done_on_disk_is_one_sentence(counts, words, sentence):
    call("convert", "counts.npz", "-o", "store")
    (counts / "there.npz").write_bytes(b"no checkpoint")
    assert sentence in call("fit", *words, "-k", 2, code=2).stderr


def test_a_run_goes_on_with_a_larger_limit_and_then_forgets_its_checkpoint(counts):
    call(*FIT, "--resume", "--max-iter", 3)
    assert (counts / "run" / "checkpoint.npz").exists()
    assert load_run("run").facts["rounds"] == 3
    call(*FIT, "--resume")
    assert not (counts / "run" / "checkpoint.npz").exists()
    whole = KLNMF(4, tol=1e-6, random_state=0).fit(V)
    run = load_run("run")
    assert run.H.tobytes() == whole.components_.tobytes()
    assert run.facts["rounds"] == whole.n_iter_
    before = (counts / "run" / "factors.npz").stat().st_mtime_ns
    assert "converged after" in call(*FIT, "--resume").stdout  # nothing is left to do
    assert (counts / "run" / "factors.npz").stat().st_mtime_ns == before
    assert "holds a run already" in call(*FIT, "--resume", "--seed", 9, code=2).stderr


def test_a_checkpoint_of_other_parameters_is_refused(counts):
    call(*FIT, "--resume", "--max-iter", 3)
    refused = call(*FIT, "--resume", "--seed", 8, code=2)
    assert "holds a run already, of another random_state" in refused.stderr
    assert load_run("run").facts["rounds"] == 3


@pytest.mark.parametrize(
    ("change", "other"),
    [
        (lambda: ("--transpose",), "data"),
        (lambda: sp.save_npz("counts.npz", sp.csr_array(V[::-1])) or (), "data"),
        (lambda: ("--solver", "mu"), "solver"),
        (lambda: ("--checkpoint", "new.npz", "--seed", 2), "random_state"),
    ],
)
def test_a_run_of_something_else_is_not_the_answer(counts, change, other):
    call(*FIT, "--resume")
    before = load_run("run").H.tobytes()
    words = change()
    refused = call(*FIT, "--resume", *words, code=2)
    assert f"holds a run already, of another {other}: " in refused.stderr
    assert load_run("run").H.tobytes() == before


def test_a_run_at_its_limit_is_left_as_it_is(counts):
    words = (*FIT, "--resume", "--max-iter", 3)
    call(*words, "--also", "csv")
    before = {file.name: file.stat().st_mtime_ns for file in (counts / "run").iterdir()}
    assert {"checkpoint.npz", "W.csv"} <= set(before)
    call(*words)
    assert {file.name: file.stat().st_mtime_ns for file in (counts / "run").iterdir()} == before


def test_a_checkpoint_that_is_asked_for_is_kept(counts):
    call(*FIT)
    call(*FIT, "--force", "--checkpoint", "run/checkpoint.npz", "--max-iter", 2)
    assert (counts / "run" / "checkpoint.npz").exists()
    call(*FIT, "--checkpoint", "run/checkpoint.npz", "--resume")
    assert load_run("run").facts["status"] == "converged"


def test_a_run_that_is_half_written_goes_on(counts):
    call(*FIT, "--max-iter", 2, "--checkpoint", "apart.npz")
    (counts / "run" / "run.json").unlink()
    call(*FIT, "--checkpoint", "apart.npz", "--resume")
    assert load_run("run").facts["status"] == "converged"
    assert not (counts / "apart.npz").exists()


def test_samples_that_were_fitted_get_their_weights_again(counts):
    call(*FIT, "--tol", 1e-8)
    call("transform", "run", "counts.npz", "-o", "W.npz")
    with np.load("W.npz") as found:
        assert found["W"].tobytes() == load_run("run").W.tobytes()


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


def test_a_store_is_not_replaced_with_what_lies_beside_it(counts):
    call("convert", "counts.npz", "-o", "store")
    (counts / "store" / "notes.txt").write_text("mine")
    refused = call("convert", "counts.npz", "-o", "store", "--force", code=2).stderr
    assert "store holds notes.txt beside the store" in refused
    assert (counts / "store" / "notes.txt").read_text() == "mine"


def test_a_consensus_is_no_fit_to_go_on_from(counts):
    call("consensus", "counts.npz", "-k", 2, "-o", "run", "--replicates", 2)
    refused = call("fit", "counts.npz", "-k", 2, "-o", "run", "--resume", code=2)
    assert "holds a run already, of another " in refused.stderr


def test_what_an_interruption_left_out_is_written_by_resume(counts, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    words = (*(w for w in FIT if w != "--no-report"), "--also", "csv")
    with monkeypatch.context() as patch:
        patch.setattr("sipower.cli.run_folder.write_report", interrupted)
        said = call(*words, code=3).stderr
    assert "the run is in run, and --resume writes what is missing" in said
    factors, table = (counts / "run" / name for name in ("factors.npz", "W.csv"))
    before = factors.stat().st_mtime_ns, table.stat().st_mtime_ns
    call(*words, "--resume")
    assert (counts / "run" / "report.html").exists()
    assert (factors.stat().st_mtime_ns, table.stat().st_mtime_ns) == before
    table.unlink()
    call(*words, "--resume")
    assert table.exists()


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


def test_a_killed_command_goes_on_to_the_same_bits(counts):
    """And a worker that is told to end by Ctrl-C leaves a checkpoint, too."""
    words = [sys.executable, "-m", "sipower", *map(str, FIT), "--resume", "--checkpoint-every",
             "0.01", "--json", "--tol", "1e-10"]  # fmt: skip
    for at, sign in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGKILL)):
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            seen = 0
            for line in process.stdout:
                seen += json.loads(line)["event"] == "round"
                if seen > at:
                    break
            time.sleep(0.05)
            os.kill(process.pid, sign)
            process.stdout.read()
        assert process.returncode in (-sign, 3, 0, 4)
    if not (counts / "run" / "checkpoint.npz").exists():  # it was sooner than the signals
        assert load_run("run").facts["status"] == "converged"
    else:
        subprocess.run(words, check=False, capture_output=True)
    whole = KLNMF(4, tol=1e-10, random_state=0)
    whole.fit(V)
    assert load_run("run").H.tobytes() == whole.components_.tobytes()


def test_force_forgets_the_checkpoint_of_the_older_run(counts):
    call(*FIT, "--resume", "--max-iter", 3)
    misspelt = ("fit", "count.npz", *FIT[2:])
    assert "does not exist" in call(*misspelt, "--force", code=2).stderr
    assert (counts / "run" / "checkpoint.npz").exists()  # hours of work, maybe
    call(*FIT, "--force", "--seed", 4, "--max-iter", 2)
    assert not (counts / "run" / "checkpoint.npz").exists()


def test_a_store_is_not_converted_again(counts):
    call("convert", "counts.npz", "-o", "store")
    assert "is a store already" in call("convert", "store", "-o", "again", code=2).stderr


# ---- one folder, several sessions --------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "consensus", "rank", "demo"])
def test_a_folder_belongs_to_one_session_at_a_time(counts, command):
    words = () if command == "demo" else ("counts.npz", "-k", 2)
    more = ("--force",) if command != "rank" else ()
    (counts / "run").mkdir()
    with file_lock(counts / "run" / "run"):
        said = call(command, *words, "-o", "run", *more, code=2).stderr
    assert "Another session is at work on run" in said
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
    said = call(command, "zeros.npy", "-k", 2, *out, code=2).stderr
    assert "All counts are zero" in said
    assert not list(counts.glob("made/*"))


def test_a_smaller_limit_leaves_a_longer_run_as_it_is(counts):
    words = ("fit", "counts.npz", "-k", 4, "-o", "run", "--no-report", "--tol", 1e-12, "--resume")
    call(*words, "--max-iter", 6)
    before = load_run("run")
    call(*words, "--max-iter", 3)
    after = load_run("run")
    assert after.facts["parameters"]["max_iter"] == after.facts["rounds"] == 6
    assert after.H.tobytes() == before.H.tobytes()
