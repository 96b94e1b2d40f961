# SPDX-License-Identifier: BSD-3-Clause
"""Errors of every command: one sentence, the right exit code, nothing for the terminal to obey."""

import json
import re
import signal
import subprocess
import time

import numpy as np
from typer.testing import CliRunner

from cli.calls import call, command
from sipower._files import printable
from sipower.cli import app
from sipower.results import load_run


def test_mistakes_get_one_sentence(counts):
    (counts / "empty.csv").write_text("")
    (counts / "bad.csv").write_text("a,b\n1,2\n3,-4\n")
    (counts / "file").write_text("x")
    for words, sentence in (
        (["fit", "nowhere.csv", "-k", 2], "nowhere.csv"),
        (["fit", "empty.csv", "-k", 2], "empty.csv"),
        (["fit", "bad.csv", "-k", 2], "bad.csv, line 3"),
        (["fit", "counts.csv", "-k", 2, "-o", "file"], "file is a file, expected a folder"),
        (["fit", "counts.csv", "-k", 2, "--also", "xlsx"], "--also xlsx: choose from"),
        (["fit", "counts.csv", "-k", 2, "--image-shape", "big"], "expected height x width"),
        (["transform", "nowhere", "counts.csv", "-o", "W.csv"], "nowhere is not a run"),
        (["report", "nowhere"], "nowhere is not a run"),
        (["rank", "counts.csv", "-k", "x", "-o", "r"], "expected numbers of components"),
    ):
        result = call(*words, code=2)
        assert sentence in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
        assert "Traceback" not in result.stderr + result.stdout


def test_debug_shows_where(counts):
    result = CliRunner().invoke(app, ["--debug", "report", "nowhere"])
    assert isinstance(result.exception, ValueError)


def test_a_fault_of_ours_is_called_so(counts, monkeypatch):
    monkeypatch.setattr("sipower.cli.report.load_run", lambda folder: 1 / 0)
    result = call("report", "run", code=1)
    assert "ZeroDivisionError" in result.stderr
    assert "--debug" in result.stderr


def test_names_cannot_command_the_terminal(counts):
    (counts / "evil.csv").write_text("x,\x1b[2Jred,b\n\x1b]0;title\x07a,1,2\nb,2,1\n")
    result = call("fit", "evil.csv", "-k", 1, "--no-report")
    assert "\x1b" not in result.stdout + result.stderr
    assert printable("a\x1b[2J\u202eb\nc") == "a\\x1b[2J\\u202eb\\nc"
    result = call("transform", "evil-k1", "counts.csv", "-o", "W.csv", code=2)
    assert "\x1b" not in result.stderr


def test_version():
    assert re.fullmatch(r"sipower \d+\.\d+\.\d+\n", call("--version").stdout)


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
