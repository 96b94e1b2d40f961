# SPDX-License-Identifier: BSD-3-Clause
"""`sipower fit --resume`: runs that are stopped, killed or limited, and go on."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

from cli.calls import SPARSE_V as V
from cli.calls import call
from sipower import KLNMF
from sipower.results import load_run
from systems import unix_only

FIT = ("fit", "counts.npz", "-k", 4, "-o", "run", "--no-report", "--tol", 1e-6)


@pytest.fixture(name="counts")
def _counts(sparse_counts):
    return sparse_counts


def test_a_run_goes_on_with_a_larger_limit_and_then_forgets_its_checkpoint(counts):
    call(*FIT, "--resume", "--max-iter", 3)
    assert (counts / "run" / "checkpoint.npz").exists()
    assert load_run("run").facts["rounds"] == 3
    call(*FIT, "--resume")
    assert not (counts / "run" / "checkpoint.npz").exists()
    whole = KLNMF(4, tol=1e-6, random_state=0).fit(V)
    run = load_run("run")
    assert run.H.tobytes() == whole.components_[run.order].tobytes()
    assert run.facts["rounds"] == whole.n_iter_
    before = (counts / "run" / "factors.npz").stat().st_mtime_ns
    assert "converged after" in call(*FIT, "--resume").stdout  # nothing is left to do
    assert (counts / "run" / "factors.npz").stat().st_mtime_ns == before
    assert "holds a run already" in call(*FIT, "--resume", "--seed", 9, code=2).stderr


def test_a_checkpoint_of_other_parameters_is_refused(counts):
    call(*FIT, "--resume", "--max-iter", 3)
    refused = call(*FIT, "--resume", "--seed", 8, code=2)
    assert "holds a run already, which differs in random_state" in refused.stderr
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
    assert f"holds a run already, which differs in {other}: " in refused.stderr
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
    call("transform", "run", "counts.npz", "-o", "W.npz", "--no-normalise")
    with np.load("W.npz") as arrays:
        assert arrays["W"].tobytes() == load_run("run").W.tobytes()


def test_what_an_interruption_left_out_is_written_by_resume(counts, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    words = (*(w for w in FIT if w != "--no-report"), "--also", "csv")
    with monkeypatch.context() as patch:
        patch.setattr("sipower.cli.run_folder.write_report", interrupted)
        message = call(*words, code=3).stderr
    assert "the run is in run, and --resume writes what is missing" in message
    factors, table = (counts / "run" / name for name in ("factors.npz", "W.csv"))
    before = factors.stat().st_mtime_ns, table.stat().st_mtime_ns
    call(*words, "--resume")
    assert (counts / "run" / "report.html").exists()
    assert (factors.stat().st_mtime_ns, table.stat().st_mtime_ns) == before
    table.unlink()
    call(*words, "--resume")
    assert table.exists()


@unix_only
def test_a_killed_command_goes_on_to_the_same_bits(counts):
    """And a worker that is told to end by Ctrl-C leaves a checkpoint, too."""
    words = [sys.executable, "-m", "sipower", *map(str, FIT), "--resume", "--checkpoint-every",
             "0.01", "--json", "--tol", "1e-10"]  # fmt: skip
    for at, sign in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGKILL)):
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            rounds = 0
            for line in process.stdout:
                rounds += json.loads(line)["event"] == "round"
                if rounds > at:
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
    run = load_run("run")
    assert run.H.tobytes() == whole.components_[run.order].tobytes()


def test_force_forgets_the_checkpoint_of_the_older_run(counts):
    call(*FIT, "--resume", "--max-iter", 3)
    misspelt = ("fit", "count.npz", *FIT[2:])
    assert "does not exist" in call(*misspelt, "--force", code=2).stderr
    assert (counts / "run" / "checkpoint.npz").exists()  # hours of work, maybe
    call(*FIT, "--force", "--seed", 4, "--max-iter", 2)
    assert not (counts / "run" / "checkpoint.npz").exists()


def test_a_smaller_limit_leaves_a_longer_run_as_it_is(counts):
    words = ("fit", "counts.npz", "-k", 4, "-o", "run", "--no-report", "--tol", 1e-12, "--resume")
    call(*words, "--max-iter", 6)
    before = load_run("run")
    call(*words, "--max-iter", 3)
    after = load_run("run")
    assert after.facts["parameters"]["max_iter"] == after.facts["rounds"] == 6
    assert after.H.tobytes() == before.H.tobytes()
