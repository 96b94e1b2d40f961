# SPDX-License-Identifier: BSD-3-Clause
"""Commands that fail leave no folders, and what a fit says when it stopped early."""

import anndata
import numpy as np
import pytest
import scipy.sparse as sp

from cli.calls import call, events
from sipower.cli.new_folder import make_folder
from sipower.results import load_run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fit", "nowhere.csv", "-k", 2, "-o", "deep/run"), "nowhere.csv does not exist"),
        (("fit", "bad.csv", "-k", 2), "bad.csv, line 3"),
        (("fit", "cells.h5ad", "-k", 2, "--layer", "spliced"), "spliced"),
        (("fit", "cells.h5ad", "-k", 2, "--layer", "no", "--memory-limit", "1MB"), "no"),
        (("consensus", "bad.csv", "-k", 2), "bad.csv, line 3"),
        (("rank", "counts.csv", "-k", "1:2", "--seed", 2**32 - 1), "`random_state` must be"),
    ],
)
def test_a_failed_command_leaves_no_folder(counts, words, sentence):
    (counts / "bad.csv").write_text("a,b\n1,2\n3,-4\n")
    anndata.AnnData(sp.csr_matrix(np.eye(3, dtype="f4"))).write_h5ad("cells.h5ad")
    before = sorted(counts.iterdir())
    assert sentence in call(*words, code=2).stderr
    assert sorted(counts.iterdir()) == before


def test_folders_that_were_there_or_are_used_stay(tmp_path):
    (tmp_path / "old").mkdir()
    with make_folder(tmp_path / "old" / "new" / "run"):
        pass
    assert list(tmp_path.rglob("*")) == [tmp_path / "old"]
    with make_folder(tmp_path / "kept" / "run"):
        (tmp_path / "kept" / "note").write_text("mine")
    assert (tmp_path / "kept" / "note").exists()
    assert not (tmp_path / "kept" / "run").exists()


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (("--max-iter", 2), "raise --max-iter above 2"),
        (("--max-time", 0.01), "raise --max-time above 0.01"),
        (("--max-iter", 2, "--solver", "mu"), "use --solver auto in place of mu"),
    ],
)
def test_a_limit_says_what_to_do(counts, limit, words):
    result = call("fit", "counts.csv", "-k", 3, "--tol", 1e-9, "--no-report", *limit)
    (sentence,) = [line for line in result.stdout.splitlines() if "Not converged" in line]
    assert words in sentence
    assert "the gap is above --tol 1e-09" in sentence


def test_a_converged_fit_has_no_advice(counts):
    assert "Not converged" not in call("fit", "counts.csv", "-k", 3, "--no-report").stdout


def test_remarks_of_a_fit_are_sentences(counts):
    result = call("fit", "counts.csv", "-k", 41, "--no-report", "-o", "run")
    assert result.stdout.count("--components is 41, but 40 components reproduce") == 1
    assert "Warning" not in result.stdout + result.stderr
    lines = events(call("fit", "counts.csv", "-k", 41, "--no-report", "-o", "run2", "--json"))
    assert [line["text"][:19] for line in lines if line["event"] == "warning"] == [
        "--components is 41,"
    ]


def test_a_dry_run_estimates_and_writes_nothing(counts):
    before = sorted(counts.iterdir())
    result = call("fit", "counts.csv", "-k", 3, "--dry-run", "--threads", 1)
    assert "MB for data and factors" in result.stdout
    assert "1 threads" in result.stdout
    (_, event) = events(call("fit", "counts.csv", "-k", 3, "--dry-run", "--json"))
    assert event["event"] == "estimate"
    assert 0 < event["seconds"][0] < event["seconds"][1]
    assert sorted(counts.iterdir()) == before


def test_help_says_when_the_exit_code_is_0_or_4(counts, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = " ".join(call("--help").stdout.split())
    assert "0 converged, or stopped by --max-iter or --max-time" in text
    assert "4 saved, but not converged within the default number of rounds" in text


def test_a_run_and_data_in_the_wrong_order_are_told_apart(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--no-report")
    words = "sipower transform run counts.csv -o W.csv"
    assert words in call("transform", "counts.csv", "run", "-o", "W.csv", code=2).stderr
    call(*words.split()[1:])
    assert load_run("run").W.shape == (60, 2)
