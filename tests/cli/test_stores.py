# SPDX-License-Identifier: BSD-3-Clause
"""Commands on data that stay on disk."""

import numpy as np
import pytest

from cli.calls import call
from sipower.results import load_run

FIT = ("fit", "counts.npz", "-k", 4, "-o", "run", "--no-report", "--tol", 1e-6)


@pytest.fixture(name="counts")
def _counts(sparse_counts):
    return sparse_counts


def test_a_store_is_fitted_as_the_file_is(counts):
    call("convert", "counts.npz", "-o", "counts.sipower")
    result = call("fit", "counts.sipower", "-k", 4, "-o", "stored", "--memory-limit", "400kB")
    assert "300 samples x 200 features" in result.stdout
    call("fit", "counts.npz", "-k", 4, "-o", "whole")
    stored, whole = load_run("stored"), load_run("whole")
    assert stored.H.tobytes() == whole.H.tobytes()
    assert stored.W.tobytes() == whole.W.tobytes()
    assert stored.facts["input"]["sha256"] == whole.facts["input"]["sha256"]
    assert (counts / "stored" / "report.html").exists()
    call("transform", "whole", "counts.sipower", "-o", "W.npz", "--no-normalise")
    with np.load("W.npz") as arrays:
        np.testing.assert_allclose(arrays["W"], whole.W, rtol=1e-4, atol=1e-8)


def test_a_store_is_transposed_where_it_is(counts):
    call("convert", "counts.npz", "-o", "store")
    call("fit", "store", "-k", 3, "-o", "stored", "--transpose", "--no-report")
    call("fit", "counts.npz", "-k", 3, "-o", "whole", "--transpose", "--no-report")
    assert load_run("stored").W.tobytes() == load_run("whole").W.tobytes()
    assert load_run("stored").facts["input"]["sha256"] == load_run("whole").facts["input"]["sha256"]
    call("convert", "counts.npz", "-o", "rows", "--rows-only")
    failed = call("fit", "rows", "-k", 3, "-o", "run", "--transpose", code=2)
    assert "available by row only" in failed.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("counts.npz", "--memory-limit", "1MB"), "convert counts.npz to a store first"),
        (("store", "--layout", "wide"), "pass them to sipower convert"),
        (("gone.h5ad", "--memory-limit", "1MB"), "gone.h5ad does not exist"),
        (
            ("store", "--cache", "x", "--no-cache"),
            "--cache and --no-cache exclude each other",
        ),
        (("store", "--layer", "x"), "has no layers"),
        (
            ("store", "--memory-limit", "much"),
            "`memory_limit` must be a number of bytes or a size such as 512MB, got 'much'",
        ),
        (("store", "--memory-limit", "1kB"), "must be at least"),
        (("store", "--init", "nndsvd"), "not in memory"),
        (("counts.npz", "--checkpoint", "there.npz"), "resume from it with --resume"),
        (("counts.npz", "--checkpoint", "there.npz", "--resume"), "is damaged"),
    ],
)
def test_what_cannot_be_done_on_disk_is_one_sentence(counts, words, sentence):
    call("convert", "counts.npz", "-o", "store")
    (counts / "there.npz").write_bytes(b"no checkpoint")
    assert sentence in call("fit", *words, "-k", 2, code=2).stderr


def test_a_store_is_not_replaced_with_what_lies_beside_it(counts):
    call("convert", "counts.npz", "-o", "store")
    (counts / "store" / "notes.txt").write_text("mine")
    refused = call("convert", "counts.npz", "-o", "store", "--force", code=2).stderr
    assert "store also holds notes.txt" in refused
    assert (counts / "store" / "notes.txt").read_text() == "mine"


def test_a_store_is_not_converted_again(counts):
    call("convert", "counts.npz", "-o", "store")
    assert "is a store already" in call("convert", "store", "-o", "again", code=2).stderr
