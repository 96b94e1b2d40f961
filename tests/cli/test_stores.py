# SPDX-License-Identifier: BSD-3-Clause
"""Commands on data that stay on disk."""

import numpy as np
import pytest
import scipy.sparse as sp

from cli.calls import SPARSE_V as V
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


CELLS = ("fit", "cells.h5ad", "-k", 3, "--memory-limit", "1MB", "--no-report", "--force")


def write_cells(factor=1, **layers):
    anndata = pytest.importorskip("anndata")
    counts = sp.csr_matrix(factor * V.astype(np.float32))
    anndata.AnnData(counts, layers=layers).write_h5ad("cells.h5ad")


def test_rows_of_an_h5ad_file_stay_on_disk(counts):
    write_cells()
    call(*CELLS, "-o", "run", "--dtype", "float64", "--no-cache")
    run = load_run("run")
    assert run.facts["status"] == "converged"
    assert run.samples[:2] == ("0", "1")
    assert not (counts / "cells.h5ad.cache").exists()


def test_an_h5ad_file_is_converted_once_while_it_is_unchanged(counts):
    write_cells()
    first = call(*CELLS, "-o", "first")
    assert "converting cells.h5ad to a store in cells.h5ad.cache/" in first.stdout
    whole = call("fit", "cells.h5ad", "-k", 3, "--no-report", "-o", "whole")
    assert "cache" not in whole.stdout
    assert load_run("first").W.tobytes() == load_run("whole").W.tobytes()
    assert load_run("first").facts["input"]["file"] == "cells.h5ad"
    again = call(*CELLS, "-o", "second")
    assert "using cells.h5ad.cache/, the store of this unchanged file" in again.stdout
    assert load_run("first").H.tobytes() == load_run("second").H.tobytes()
    write_cells(factor=2)
    assert "converting cells.h5ad" in call(*CELLS, "-o", "third").stdout
    total = load_run("third").facts["input"]["total"]
    assert total == 2 * load_run("first").facts["input"]["total"]


def test_a_cache_is_made_again_after_an_interruption(counts):
    write_cells()
    call(*CELLS, "-o", "run")
    (counts / "cells.h5ad.cache" / "source.json").write_text("{")
    assert "converting cells.h5ad" in call(*CELLS, "-o", "run").stdout
    (counts / "cells.h5ad.cache" / "source.json").unlink()
    assert "converting cells.h5ad" in call(*CELLS, "-o", "run").stdout


def test_layers_and_transposes_have_caches_of_their_own(counts):
    write_cells(spliced=sp.csr_matrix(3 * V.astype(np.float32)))
    totals = []
    for words in ((), ("--layer", "spliced"), ("--transpose",)):
        call(*CELLS, "-o", "run", *words)
        totals.append(load_run("run").facts["input"]["total"])
        assert load_run("run").W.shape[0] == (200 if words == ("--transpose",) else 300)
    assert totals == [V.sum(), 3 * V.sum(), V.sum()]
    caches = {path.name for path in counts.glob("*.cache")}
    assert caches == {f"cells.h5ad{part}.cache" for part in ("", ".spliced", ".transposed")}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("counts.npz", "--memory-limit", "1MB"), "convert counts.npz to a store first"),
        (("store", "--transpose"), "pass them to sipower convert"),
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
