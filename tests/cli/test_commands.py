# SPDX-License-Identifier: BSD-3-Clause
"""The command as users run it: files in, run folders out, one sentence for every mistake."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite
from typer.testing import CliRunner

from sipower import KLNMF, as_matrix
from sipower.cli import app
from sipower.cli.console import printable
from sipower.cli.progress import duration
from sipower.cli.rank import parse_ranks
from sipower.data.fingerprint import fingerprint
from sipower.datasets import poisson, poisson_topics
from sipower.results import load_run
from sipower.results.describe import describe

V = poisson_topics(60, 40, 3, length=80, seed=0).toarray()  # a csv file is dense


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A folder to work in, with counts.csv in it."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(V, index=[f"document {i}" for i in range(60)],
                         columns=[f"word{j}" for j in range(40)])  # fmt: skip
    frame.to_csv("counts.csv")
    return tmp_path


def call(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.stderr, done.exception)
    return done


def events(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


# ---- fit, transform, report --------------------------------------------------------------------


def test_fit_is_klnmf_with_names_and_provenance(counts):
    done = call("fit", "counts.csv", "-k", 3, "-o", "run", "--seed", 5)
    assert "converged after" in done.stdout
    run = load_run("run")
    model = KLNMF(3, random_state=5)
    np.testing.assert_array_equal(run.W, model.fit_transform(V))
    np.testing.assert_array_equal(run.H, model.components_)
    assert run.samples[7] == "document 7"
    assert run.features[-1] == "word39"
    facts = run.facts
    assert facts["input"]["sha256"] == fingerprint(as_matrix(V))
    assert facts["input"]["nonzeros"] == np.count_nonzero(V)
    assert facts["certified_gap"] == model.kkt_residual_ <= 1e-3
    assert facts["parameters"]["random_state"] == 5
    assert {"python", "sipower", "numpy", "scipy"} <= set(facts["versions"])
    assert "word39" in (counts / "run" / "report.html").read_text()


def test_all_outputs_can_be_asked_for(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--also", "csv,parquet,h5ad", "--no-report")
    found = {path.name for path in (counts / "run").iterdir()}
    tables = {f"{factor}.{ending}" for factor in "WH" for ending in ("csv", "parquet")}
    assert tables | {"run.h5ad", "factors.npz", "names.json", "run.json", "trace.csv"} == found
    W = pd.read_csv("run/W.csv", index_col="name")
    run = load_run("run")
    order = describe(run.W, run.H).order  # as the report counts them
    np.testing.assert_allclose(W, run.W[:, order], rtol=1e-12)
    np.testing.assert_allclose(pd.read_parquet("run/H.parquet").T, run.H[order], rtol=1e-12)
    np.testing.assert_array_equal(anndata.read_h5ad("run/run.h5ad").varm["nmf"].T, run.H[order])


def test_json_speaks_to_machines_alone(counts):
    heard = events(call("fit", "counts.csv", "-k", 2, "--json"))
    assert [heard[0]["event"], heard[-1]["event"]] == ["read", "done"]
    gaps = [event["gap"] for event in heard if event["event"] == "round"]
    assert gaps[-1] <= heard[-1]["certified_gap"] * 1.01 or heard[-1]["status"] == "converged"
    assert (counts / "counts-k2" / "run.json").exists()


def test_a_run_is_not_overwritten_unasked(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--no-report")
    done = call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report", code=2)
    assert "holds a run already" in done.stderr
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report", "--force")
    assert load_run("run").W.shape == (60, 3)


def test_not_converged_has_its_own_code_unless_asked_for(counts, monkeypatch):
    rounds = ("fit", "counts.csv", "-k", 3, "--tol", 1e-12, "--no-report", "--force")
    call(*rounds, "--max-iter", 2)
    call(*rounds, "--max-time", 0.01)
    monkeypatch.setattr("sipower.cli.options.DEFAULT_MAX_ITER", 2)
    call(*rounds, code=4)
    assert load_run("counts-k3").facts["status"] == "max_rounds"


def test_transform_is_that_of_the_model(counts):
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
    pd.DataFrame(V[:7], columns=[f"word{j}" for j in range(40)]).to_csv("new.csv", index=False)
    call("transform", "run", "new.csv", "-o", "W.csv")
    found = pd.read_csv("W.csv", index_col="name")
    model = KLNMF(3, random_state=0).fit(V)
    order = describe(load_run("run").W, model.components_).order
    np.testing.assert_allclose(found, model.transform(V[:7])[:, order], rtol=1e-6)
    call("transform", "run", "new.csv", "-o", "W.npz")
    np.testing.assert_allclose(np.load("W.npz")["W"][:, order], found, rtol=1e-12)


def test_transform_finds_features_by_name(counts):
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
    frame = pd.read_csv("counts.csv", index_col=0)
    frame.iloc[:, ::-1].to_csv("turned.csv")
    call("transform", "run", "turned.csv", "-o", "turned.npz")
    call("transform", "run", "counts.csv", "-o", "same.npz")
    np.testing.assert_array_equal(np.load("turned.npz")["W"], np.load("same.npz")["W"])
    empty = [name for name in frame if not frame[name].any()] or ["word0"]
    frame.drop(columns=empty[0]).to_csv("fewer.csv")
    assert (
        "1 features of the run are not in the file"
        in call("transform", "run", "fewer.csv", "-o", "fewer.npz").stdout
    )
    frame.rename(columns={"word3": "new"}).to_csv("other.csv")
    done = call("transform", "run", "other.csv", "-o", "x.npz", code=2)
    assert "does not know feature 'new'" in done.stderr
    np.save("narrow.npy", np.ones((3, 5)))
    done = call("transform", "run", "narrow.npy", "-o", "x.npz", code=2)
    assert "The file has 5 features, the run 40" in done.stderr


def test_report_shows_rank_and_consensus(counts):
    call("rank", "counts.csv", "-k", "2:4", "-o", "ranks", "--replicates", 2)
    call("consensus", "counts.csv", "-k", 3, "-o", "run", "--replicates", 3)
    call("report", "run", "--rank", "ranks", "-o", "both.html")
    text = (counts / "both.html").read_text()
    best = json.loads((counts / "ranks" / "rank.json").read_text())["best"]
    assert f"K = {best}" in text
    assert "stability" in text.lower()


# ---- rank, consensus ---------------------------------------------------------------------------


def test_rank_writes_what_it_found_and_goes_on(counts):
    done = call("rank", "counts.csv", "-k", "1:5", "-o", "ranks", "--replicates", 2)
    assert "10 fits: about" in done.stdout
    assert re.search(r"K = \d+ predicts unseen counts", done.stdout)
    table = pd.read_csv("ranks/rank.csv")
    assert table["rank"].tolist() == [1, 2, 3, 4, 5]
    assert (counts / "ranks" / "rank.png").stat().st_size > 10_000
    again = events(
        call("rank", "counts.csv", "-k", "1:5", "-o", "ranks", "--replicates", 2, "--json")
    )
    fits = [event for event in again if event["event"] == "fit"]
    assert len(fits) == 2  # each replicate is found finished at once
    done = call("rank", "counts.csv", "-k", "1:6", "-o", "ranks", code=2)
    assert "pieces of another task" in done.stderr


def test_consensus_is_a_run(counts):
    call("consensus", "counts.csv", "-k", 3, "-o", "run", "--replicates", 3, "--threads", 2)
    run = load_run("run")
    assert run.facts["replicates"] == 3
    assert run.facts["status"] == "converged"
    model = KLNMF(3, random_state=run.facts["parameters"]["random_state"])
    np.testing.assert_array_equal(model.fit_transform(V), run.W)
    call("transform", "run", "counts.csv", "-o", "W.npz")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", [7]), ("5,10,5", [5, 10]), ("3:6", [3, 4, 5, 6]), ("5:20:5", [5, 10, 15, 20])],
)
def test_ranks_are_read(text, expected):
    assert parse_ranks(text) == expected


@pytest.mark.parametrize("text", ["", "0:3", "a", "3:1", "1:2:3:4", "5:10:0", "-2"])
def test_nonsense_ranks_are_refused(text):
    with pytest.raises(ValueError, match="expected numbers of components as"):
        parse_ranks(text)


# ---- the others --------------------------------------------------------------------------------


def test_info_tells_what_a_bug_report_needs():
    heard = events(call("info", "--json"))[0]
    assert heard["versions"]["numpy"] == np.__version__
    assert heard["threads"] >= 1
    assert "plotly" in call("info").stdout


def test_bench_of_data_that_are_fitted_exactly_and_of_none(counts):
    np.save("exact.npy", np.outer(np.arange(1.0, 6), np.arange(1.0, 8)))
    call("bench", "exact.npy", "-k", 1, "--max-time", 0.05, "--dtype", "float64")
    np.save("none.npy", np.zeros((3, 4)))
    assert "All counts are zero" in call("bench", "none.npy", "-k", 1, code=2).stderr


def test_table_1_is_a_table(counts):
    said = call("reproduce", "table1", "--quick", "--out", "repro", "--jobs", 1).stdout
    assert "\\n" not in said
    assert sum(line.startswith("| ") for line in said.splitlines()) > 3


def test_bench_races_the_solvers(counts):
    heard = events(call("bench", "counts.csv", "-k", 3, "--max-time", 0.2, "--json"))
    ends = {event["solver"]: event for event in heard if event["event"] == "end"}
    assert {"auto", "mu", "scikit-learn mu"} <= set(ends)
    assert ends["auto"]["divergence"] <= 1.01 * min(e["divergence"] for e in ends.values())
    call("bench", "counts.csv", "-k", 3, "--max-time", 0.1)


@pytest.mark.slow
def test_demo_ends_with_a_report_of_recognisable_topics(tmp_path):
    done = call("demo", "-o", tmp_path / "demo")
    text = (tmp_path / "demo" / "report.html").read_text()
    assert len(text) > 1_000_000
    lines = [set(line.split()[2:]) for line in done.stdout.splitlines() if "%  " in line]
    assert len(lines) == 20
    for topic in ({"sparse", "csr"}, {"distribution", "random"}, {"kernel"}, {"array"}):
        assert any(topic & line for line in lines), topic


# ---- mistakes ----------------------------------------------------------------------------------


def test_mistakes_get_one_sentence(counts):
    (counts / "empty.csv").write_text("")
    (counts / "bad.csv").write_text("a,b\n1,2\n3,-4\n")
    (counts / "file").write_text("x")
    for words, sentence in (
        (["fit", "nowhere.csv", "-k", 2], "nowhere.csv"),
        (["fit", "empty.csv", "-k", 2], "empty.csv"),
        (["fit", "bad.csv", "-k", 2], "bad.csv, line 3"),
        (["fit", "counts.csv", "-k", 2, "-o", "file"], "file is a file, expected a folder"),
        (["fit", "counts.csv", "-k", 2, "--also", "xlsx"], "--also xlsx: choose of"),
        (["fit", "counts.csv", "-k", 2, "--image-shape", "big"], "expected height x width"),
        (["transform", "nowhere", "counts.csv", "-o", "W.csv"], "nowhere is no run"),
        (["report", "nowhere"], "nowhere is no run"),
        (["rank", "counts.csv", "-k", "x", "-o", "r"], "expected numbers of components"),
    ):
        done = call(*words, code=2)
        assert sentence in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert "Traceback" not in done.stderr + done.stdout


def test_debug_shows_where(counts):
    done = CliRunner().invoke(app, ["--debug", "report", "nowhere"])
    assert isinstance(done.exception, ValueError)


def test_a_fault_of_ours_is_called_so(counts, monkeypatch):
    monkeypatch.setattr("sipower.cli.report.load_run", lambda folder: 1 / 0)
    done = call("report", "run", code=1)
    assert "ZeroDivisionError" in done.stderr
    assert "--debug" in done.stderr


def test_names_cannot_command_the_terminal(counts):
    (counts / "evil.csv").write_text("x,\x1b[2Jred,b\n\x1b]0;title\x07a,1,2\nb,2,1\n")
    done = call("fit", "evil.csv", "-k", 1, "--no-report")
    assert "\x1b" not in done.stdout + done.stderr
    assert printable("a\x1b[2J\u202eb\nc") == "a\\x1b[2J\\u202eb\\nc"
    done = call("transform", "evil-k1", "counts.csv", "-o", "W.csv", code=2)
    assert "\x1b" not in done.stderr


def test_times_are_told_in_words():
    assert [duration(s) for s in (40, 720, 12600)] == ["40 s", "12 min", "3.5 h"]


# ---- what a reviewer found ---------------------------------------------------------------------


def test_a_run_is_replaced_as_a_whole(counts):
    """Files of the older run stayed beside the new factors."""
    call("consensus", "counts.csv", "-k", 2, "--replicates", 2, "-o", "run", "--also", "csv")
    call("fit", "counts.csv", "-k", 4, "-o", "run", "--force", "--no-report")
    assert not {"report.html", "consensus.json", "W.csv"} & {p.name for p in counts.glob("run/*")}
    call("report", "run")


def test_consensus_does_not_overwrite_a_fit(counts):
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
    done = call("consensus", "counts.csv", "-k", 2, "--replicates", 1, "-o", "run", code=2)
    assert "holds a run already" in done.stderr
    assert load_run("run").W.shape == (60, 3)


def test_json_is_json_even_where_something_is_unknown(counts):
    done = call("consensus", "counts.csv", "-k", 2, "--replicates", 1, "-o", "run", "--json")
    assert events(done)[-1]["stability"] == [None, None]
    strict = json.loads((counts / "run/consensus.json").read_text(), parse_constant=lambda c: 1 / 0)
    assert strict["stability"] == [None, None]


def test_consensus_that_did_not_converge_has_its_code(counts, monkeypatch):
    monkeypatch.setattr("sipower.cli.options.DEFAULT_MAX_ITER", 2)
    words = ("consensus", "counts.csv", "-k", 3, "--replicates", 2, "--tol", 1e-12)
    done = call(*words, "-o", "run", code=4)
    assert "Warning" not in done.stderr
    call(*words, "-o", "other", "--max-iter", 2)


def test_what_must_fail_fails_before_the_fit(counts):
    np.save("zero.npy", np.zeros((4, 5)))
    for words, sentence in (
        (["fit", "zero.npy", "-k", 1], "All counts are zero"),
        (["rank", "zero.npy", "-k", "1:2"], "All counts are zero"),
        (["fit", "counts.csv", "-k", 1, "--image-shape", "3x3"], "does not make 40 features"),
        (["fit", "counts.csv", "-k", 1, "-o", "counts.csv/x"], "counts.csv"),
        (["consensus", "counts.csv", "-k", 1, "--seed", 2**32 - 1], "leaves no room"),
    ):
        assert sentence in call(*words, code=2).stderr
    assert not list(counts.glob("*/factors.npz"))


def test_names_of_folders_follow_the_file(counts):
    from sipower.cli.run_folder import default_folder  # noqa: PLC0415

    names = [
        default_folder(counts / name, "k2").name for name in ("docword.kos.txt", "a.csv.gz", ".x")
    ]
    assert names == ["docword.kos-k2", "a-k2", "x-k2"]


@pytest.mark.parametrize("way", ["| head -1", "--json | head -1", ">&-"])
def test_a_reader_that_leaves_does_not_cost_the_fit(counts, way):
    line = f"{sys.executable} -m sipower fit counts.csv -k 3 -o run --no-report {way}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert load_run("run").facts["status"] == "converged"


def test_damaged_facts_get_a_sentence(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--no-report")
    for text in ("[]", '{"format": 1, "input": 3}'):
        (counts / "run" / "run.json").write_text(text)
        assert "is damaged" in call("report", "run", code=2).stderr


def test_version():
    assert re.fullmatch(r"sipower \d+\.\d+\.\d+\n", call("--version").stdout)


# ---- a real terminal, a real interrupt ---------------------------------------------------------


def command(*words):
    return [sys.executable, "-m", "sipower", *map(str, words)]


@pytest.fixture
def large(tmp_path):
    mmwrite(tmp_path / "large.mtx", sparse.coo_array(poisson(1500, 1200, 0.2, seed=1)))
    return tmp_path


def test_ctrl_c_leaves_a_usable_run_and_code_3(large):
    words = ("fit", "large.mtx", "-k", 30, "--tol", 1e-9, "-o", "run", "--json")
    with subprocess.Popen(command(*words), cwd=large, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE) as process:  # fmt: skip
        for line in process.stdout:
            if json.loads(line)["event"] == "round":
                break
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, complaint = process.communicate(timeout=60)
    assert process.returncode == 3, complaint
    assert json.loads(rest.splitlines()[-1])["status"] == "interrupted"
    run = load_run(large / "run")
    assert run.facts["status"] == "interrupted"
    assert np.isfinite(run.W).all()
    assert (large / "run" / "report.html").exists()
    call("transform", large / "run", large / "large.mtx", "-o", large / "W.npz")


def test_a_terminal_shows_live_progress(large):
    main, worker = pty.openpty()
    words = ("fit", "large.mtx", "-k", 10, "--tol", 1e-9, "--max-time", 3, "--no-report")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command(*words), cwd=large, stdout=worker, stderr=worker,
                               stdin=worker, env=environment)  # fmt: skip
    os.close(worker)
    shown = b""
    while select.select([main], [], [], 60)[0]:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(main)
    assert process.wait(60) == 0, shown
    assert len(set(re.findall(rb"round (\d+)", shown))) > 2  # the line is drawn again and again
    assert b"gap" in shown
    assert b"left" in shown
