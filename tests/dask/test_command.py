# SPDX-License-Identifier: BSD-3-Clause
"""`sipower fit`, `rank` and `consensus` with --workers and --scheduler."""

import contextlib
import json
import os
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cli.calls import call, command, events
from interrupted_commands import assert_states_its_divergence, fit_words, write_files
from lazy_fits import V
from sipower.results import load_run
from sipower.store import write_store
from systems import unix_only

pytest.importorskip("distributed.client")

RANDOM = ("-k", 4, "--init", "random", "--no-report")
FILES = ("day1.csv", "day2.csv")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder to work in, with a store and with the same counts in two files."""
    monkeypatch.chdir(tmp_path)
    names = [f"word {j}" for j in range(60)], [f"text {i}" for i in range(240)]
    write_store(sp.csr_array(V).astype(np.uint16), "counts.sipower",
                samples=names[1], features=names[0])  # fmt: skip
    frame = pd.DataFrame(V.astype(int), names[1], names[0])
    frame[:150].to_csv("day1.csv")
    frame[150:].to_csv("day2.csv")
    return tmp_path


@pytest.fixture
def cluster(client):
    return "--scheduler", client.scheduler.address


def run_command(*words):
    result = subprocess.run(
        command(*words), capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    return result


def living(group):
    """The command lines of the processes of a group that have not ended."""
    psutil = pytest.importorskip("psutil")
    lines = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                lines.append(process.cmdline())
    return lines


def assert_same_run(here, there, *, same_data=True):
    """Factors have the same bits; the trace agrees to the rounding of sums."""
    a, b = load_run(here), load_run(there)
    assert a.W.tobytes() == b.W.tobytes()
    assert a.H.tobytes() == b.H.tobytes()
    assert (a.samples, a.features) == (b.samples, b.features)
    assert [r.round for r in a.trace] == [r.round for r in b.trace]
    np.testing.assert_allclose([r.objective for r in a.trace], [r.objective for r in b.trace])
    keys = ("parameters", "status", "rounds", "certified_gap", "coherence")
    assert all(a.facts[key] == b.facts[key] for key in keys)
    recorded, expected = dict(a.facts["input"]), dict(b.facts["input"])
    if not same_data:  # a hash of those of the files, not of the stacked rows
        assert recorded.pop("sha256") != expected.pop("sha256")
    assert recorded == expected
    assert set(os.listdir(here)) == set(os.listdir(there))
    return a


def test_the_command_fits_a_store_and_two_files_on_its_own_workers(files):
    for source, is_one in ((("counts.sipower",), True), (FILES, False)):
        result = run_command("fit", *source, *RANDOM, "-o", "there", "--workers", 2, "--force")
        assert "2 workers" in result.stdout
        assert "bringing the columns together on the workers" in result.stdout
        assert result.stderr == ""
        call("fit", *source, *RANDOM, "-o", "here", "--force")
        run = assert_same_run("there", "here", same_data=is_one)
        assert run.facts["workers"] == 2
    assert run.samples[149:151] == ("text 149", "text 150")
    assert [part["samples"] for part in run.facts["input"]["files"]] == [150, 90]


def test_the_default_start_is_a_sample_and_events_are_those_of_a_local_fit(files, cluster):
    result = call("fit", *FILES, "-k", 4, "-o", "run", "--json", *cluster)
    found = events(result)
    kinds = [event["event"] for event in found]
    assert kinds[:3] == ["cluster", "loading", "read"]
    assert kinds[-1] == "done"
    assert found[kinds.index("read")]["shape"] == [240, 60]
    rounds = [event for event in found if event["event"] == "round"]
    assert rounds
    assert all(event["gap"] > 0 and event["objective"] > 0 for event in rounds)
    run = load_run("run")
    assert run.facts["parameters"]["init"] == "sample"
    assert run.facts["status"] == "converged"
    assert (files / "run" / "report.html").exists()


OPTIONS = {
    "batch": ("--batch", "batch.csv", "--batch-prior", 20),
    "weights": ("--sample-weight", "weight.csv", "--alpha-w", 0.01, "--alpha-h", 0.01),
    "offsets": ("--offsets", "weight.csv", "--prior-h", 0.01, "--guides", "guides.gmt"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_the_model(files, cluster, name):
    samples = [f"text {i}" for i in range(240)]
    pd.Series(np.linspace(0.5, 2, 240), samples, name="weight").to_csv("weight.csv")
    pd.Series(np.repeat(["a", "b"], 120), samples, name="batch").to_csv("batch.csv")
    (files / "guides.gmt").write_text("first\tx\tword 1\tword 5\n")
    words = (*FILES, *RANDOM, *OPTIONS[name], "--tol", 1e-2)
    call("fit", *words, "-o", "there", *cluster)
    call("fit", *words, "-o", "here")
    here, there = load_run("here"), load_run("there")
    assert there.H.tobytes() == here.H.tobytes()
    np.testing.assert_allclose(there.W, here.W, rtol=1e-9, atol=1e-12 * here.W.max())
    for key in ("observed", "guides", "parameters"):
        assert there.facts.get(key) == here.facts.get(key)
    assert there.component_names == here.component_names


def test_a_memory_limit_is_that_of_each_worker_for_its_store(files, cluster):
    call("fit", "counts.sipower", *RANDOM, "-o", "there", "--memory-limit", "400kB", *cluster)
    call("fit", "counts.sipower", *RANDOM, "-o", "here")
    assert_same_run("there", "here")
    for part, rows in (("first", slice(150)), ("second", slice(150, None))):
        anndata = pytest.importorskip("anndata")
        counts = sp.csr_matrix(V[rows].astype(np.float32))
        donors = pd.DataFrame({"donor": [part] * counts.shape[0]}, map(str, range(counts.shape[0])))
        anndata.AnnData(counts, donors).write_h5ad(f"{part}.h5ad")
    cells = ("first.h5ad", "second.h5ad", *RANDOM, "--batch", "donor", "--tol", 1e-2)
    call("fit", *cells, "-o", "stored", "--memory-limit", "1MB", *cluster)
    call("fit", *cells, "-o", "whole")
    stored, whole = load_run("stored"), load_run("whole")
    assert stored.samples == whole.samples
    assert stored.samples[-1] == "89-second"  # both files have cells with these names
    assert stored.batches == ("first", "second")
    np.testing.assert_allclose(stored.H, whole.H, rtol=1e-5, atol=1e-7 * whole.H.max())
    refused = call(
        "fit", *cells, "-o", "x", "--memory-limit", "1MB", "--no-cache", *cluster, code=2
    )
    assert "--no-cache: Dask workers need first.h5ad as a store" in refused.stderr


def test_a_fit_is_resumed_with_the_same_bits(files, cluster):
    words = ("fit", *FILES, *RANDOM, "--tol", 1e-6)
    call(*words, "-o", "whole", "--max-iter", 12, *cluster)
    call(*words, "-o", "run", "--resume", "--max-iter", 5, *cluster)
    call(*words, "-o", "run", "--resume", "--max-iter", 12, *cluster)
    whole, resumed = load_run("whole"), load_run("run")
    assert resumed.H.tobytes() == whole.H.tobytes()
    assert resumed.facts["rounds"] == 12
    again = call(*words, "-o", "run", "--resume", "--max-iter", 12, *cluster).stdout
    assert "round " not in again  # the run is finished
    refused = call(*words, "-o", "run", "--resume", "--seed", 1, *cluster, code=2).stderr
    assert "differs in" in refused


@unix_only
def test_an_interrupted_fit_is_saved_and_no_worker_is_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    words = fit_words("all but batches", "counts.sipower", "--workers", 2, "--solver", "rows")
    process = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True)  # fmt: skip
    for line in process.stdout:
        if json.loads(line)["event"] == "round":
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does for Ctrl-C
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 3, errors
    assert errors == ""
    assert '"status": "interrupted"' in output
    assert assert_states_its_divergence("run", "all but batches") > 0
    deadline = time.monotonic() + 60
    while left := living(process.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_replicates_and_ranks_on_workers(files, cluster):
    sp.save_npz("counts.npz", sp.csr_array(V))
    rank = ("rank", "counts.npz", "-k", "2,3", "--replicates", 2)
    call(*rank, "-o", "there", *cluster)
    call(*rank, "-o", "here")
    scores = [json.loads((files / name / "rank.json").read_text()) for name in ("there", "here")]
    assert scores[0] == scores[1]
    many = ("consensus", "counts.npz", "-k", 3, "--replicates", 3, "--tol", 1e-2)
    call(*many, "-o", "many there", *cluster)
    call(*many, "-o", "many here")
    assert load_run("many there").H.tobytes() == load_run("many here").H.tobytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--workers", 2), "--scheduler and --workers exclude each other"),
        (("--dry-run",), "--dry-run estimates a fit without a cluster"),
        (("--threads", 2), "--threads does not change the workers of --scheduler"),
        (("--init", "nndsvd"), "--init on Dask must be auto or random or sample, got nndsvd"),
        (("--solver", "mu"), "--solver on Dask must be auto or"),
        (("--spectra",), "--spectra needs the data on this machine"),
        (("--min-df", 2), "pass them to sipower convert"),
        (("--memory-limit", "1MB"), "convert day1.csv to a store first"),
    ],
)
def test_what_a_cluster_cannot_do_is_one_sentence(files, words, sentence):
    cluster = ("--scheduler", "tcp://127.0.0.1:9") if "--memory-limit" not in words else ()
    cluster = cluster or ("--workers", 1)
    result = call("fit", "day1.csv", "-k", 2, *cluster, *words, code=2)
    assert sentence in result.stderr
    assert not (files / "day1-k2").exists()


def test_a_scheduler_that_does_not_answer(files, monkeypatch):
    monkeypatch.setattr("sipower.cli.cluster.CONNECT_TIMEOUT", 1)
    for address in ("tcp://127.0.0.1:9", "nowhere"):
        result = call("fit", "day1.csv", "-k", 2, "--scheduler", address, code=2)
        assert f"--scheduler {address}: no Dask scheduler answers" in result.stderr


def test_a_w_that_is_too_large_is_one_sentence(files, cluster, monkeypatch):
    psutil = pytest.importorskip("psutil")
    memory = psutil.virtual_memory()._replace(available=1000)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    result = call("fit", *FILES, "-k", 4, *cluster, code=2)
    assert "--components 4: W of 240 samples takes" in result.stderr


def test_files_with_other_features_are_one_sentence(files, cluster):
    frame = pd.read_csv("day2.csv", index_col=0)
    frame[frame.columns[::-1]].to_csv("day2.csv")
    for words in (cluster, ()):
        refused = call("fit", *FILES, "-k", 2, *words, code=2).stderr
        assert "day2.csv has other features than" in refused
        assert "feature 0 is word 59, not word 0" in refused
    frame.iloc[:, :5].to_csv("day2.csv")
    for words in (cluster, ()):
        assert "day2.csv has 5 features" in call("fit", *FILES, "-k", 2, *words, code=2).stderr
    refused = call("fit", "day1.csv", "counts.sipower", "-k", 2, code=2).stderr
    assert "counts.sipower, a store, is for a single file: add --workers 2" in refused
