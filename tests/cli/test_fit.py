# SPDX-License-Identifier: BSD-3-Clause
"""`sipower fit`: a run folder with everything that was asked for."""

import subprocess
import sys

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from cli.calls import V, call, events
from sipower import KLNMF, as_matrix
from sipower.results import load_run
from sipower.results.describe import describe


def test_fit_is_klnmf_with_names_and_provenance(counts):
    result = call("fit", "counts.csv", "-k", 3, "-o", "run", "--seed", 5)
    assert "converged after" in result.stdout
    run = load_run("run")
    model = KLNMF(3, random_state=5)
    np.testing.assert_array_equal(run.W, model.fit_transform(V)[:, run.order])
    np.testing.assert_array_equal(run.H, model.components_[run.order])
    assert run.samples[7] == "document 7"
    assert run.features[-1] == "word39"
    facts = run.facts
    assert facts["input"]["sha256"] == as_matrix(V).sha256
    assert facts["input"]["nonzeros"] == np.count_nonzero(V)
    assert facts["certified_gap"] == model.kkt_residual_ <= 1e-3
    assert facts["parameters"]["random_state"] == 5
    assert {"python", "sipower", "numpy", "scipy"} <= set(facts["versions"])
    assert "word39" in (counts / "run" / "report.html").read_text()


def test_all_outputs_can_be_asked_for(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--also", "csv,parquet,h5ad", "--no-report")
    files = {path.name for path in (counts / "run").iterdir()}
    names = ("W", "H", "shares")
    tables = {f"{name}.{ending}" for name in names for ending in ("csv", "parquet")}
    assert tables | {"run.h5ad", "factors.npz", "names.json", "run.json", "trace.csv"} == files
    W, shares = (pd.read_csv(f"run/{name}.csv", index_col="name") for name in ("W", "shares"))
    about = describe(load_run("run"))  # numbers components as the report does
    np.testing.assert_allclose(W.sum(axis=1), V.sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(W.sum(axis=0) / V.sum(), about.sizes, rtol=1e-6)
    np.testing.assert_allclose(shares, about.memberships, rtol=1e-9)
    np.testing.assert_allclose(pd.read_parquet("run/H.parquet").T, about.profiles, rtol=1e-12)
    adata = anndata.read_h5ad("run/run.h5ad")
    np.testing.assert_allclose(adata.varm["nmf"].T, about.profiles, rtol=1e-12)
    np.testing.assert_array_equal(adata.X, V)
    call("fit", "counts.csv", "-k", 2, "-o", "raw", "--also", "csv", "--no-normalise")
    H = pd.read_csv("raw/H.csv", index_col="name")
    np.testing.assert_allclose(H.T, np.load("raw/factors.npz")["H"], rtol=1e-12)


@pytest.fixture
def cells():
    """An AnnData file with log-normalised X of some genes, and counts in a layer and in raw."""
    names = [f"gene{j}" for j in range(40)]
    adata = anndata.AnnData(csr_matrix(V.astype(np.float32)), var=pd.DataFrame(index=names))
    adata.raw = adata.copy()
    adata = adata[:, :30].copy()
    adata.layers["counts"] = adata.X.copy()
    adata.X = np.log1p(adata.X)
    adata.obs["batch"] = pd.Categorical(np.where(np.arange(60) % 2, "a", "b"))
    adata.var["length"] = np.arange(30)
    adata.obsm["X_pca"] = np.ones((60, 2))
    adata.uns["log1p"] = {"base": 2}
    return adata


@pytest.mark.parametrize("memory_limit", [(), ("--memory-limit", "10MB")])
def test_the_h5ad_file_is_the_input_with_the_results(counts, cells, memory_limit):
    cells.write_h5ad("cells.h5ad")
    before = (counts / "cells.h5ad").read_bytes()
    words = ("--layer", "counts", "--also", "h5ad", "--no-report", *memory_limit)
    call("fit", "cells.h5ad", "-k", 2, "-o", "run", *words)
    call("fit", "cells.h5ad", "-k", 2, "-o", "run", *words, "--force")
    assert (counts / "cells.h5ad").read_bytes() == before
    adata = anndata.read_h5ad("run/run.h5ad")
    assert (adata.X != cells.X).nnz == (adata.layers["counts"] != cells.layers["counts"]).nnz == 0
    assert (adata.raw.X != cells.raw.X).nnz == 0
    pd.testing.assert_frame_equal(adata.obs, cells.obs)
    pd.testing.assert_frame_equal(adata.var, cells.var)
    assert adata.uns["log1p"]["base"] == 2
    np.testing.assert_array_equal(adata.obsm["X_pca"], cells.obsm["X_pca"])
    about = describe(load_run("run"))
    totals = np.asarray(cells.layers["counts"].sum(axis=1)).ravel()
    np.testing.assert_allclose(adata.obsm["X_nmf"].sum(axis=1), totals, rtol=1e-5)
    np.testing.assert_allclose(adata.obsm["X_nmf_shares"], about.memberships, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(adata.varm["nmf"].T, about.profiles, rtol=1e-5, atol=1e-9)
    assert describe(adata).top_features(3) == about.top_features(3)


def test_raw_and_transposed_files_are_copied_too(counts, cells):
    cells.write_h5ad("cells.h5ad")
    words = ("--also", "h5ad", "--no-report")
    call("fit", "cells.h5ad", "-k", 2, "-o", "raw", "--layer", "raw", *words)
    adata = anndata.read_h5ad("raw/run.h5ad")
    assert adata.varm["nmf"].shape == (40, 2)
    np.testing.assert_array_equal(adata.X.toarray(), V)
    assert "log1p" not in adata.uns  # X holds counts now
    assert list(adata.obs["batch"]) == list(cells.obs["batch"])
    np.testing.assert_array_equal(load_run("raw").features, cells.raw.var_names)
    words_on_disk = ("--layer", "raw", "--memory-limit", "10MB", "--no-report")
    call("fit", "cells.h5ad", "-k", 2, "-o", "on-disk", *words_on_disk)
    run = load_run("on-disk")
    np.testing.assert_allclose(run.normalised().W.sum(axis=1), V.sum(axis=1), rtol=1e-5)
    assert run.features == load_run("raw").features
    call("fit", "cells.h5ad", "-k", 2, "-o", "turned", "--layer", "counts", "--transpose", *words)
    adata = anndata.read_h5ad("turned/run.h5ad")
    assert adata.obsm["X_nmf"].shape == (30, 2)
    assert list(adata.obs["length"]) == list(range(30))


def test_a_link_to_another_file_is_never_written_to(counts, cells):
    """obsm of the copy could be a link to a file of somebody else."""
    cells.write_h5ad("cells.h5ad")
    with h5py.File("other.h5", "w") as other:
        other.create_group("obsm")
        other["values"] = np.arange(3)
    before = (counts / "other.h5").read_bytes()
    with h5py.File("cells.h5ad", "r+") as file:
        del file["obsm"]
        file["obsm"] = h5py.ExternalLink("../other.h5", "obsm")
    call("fit", "cells.h5ad", "-k", 2, "-o", "run", "--layer", "counts", "--no-report")
    words = ("--resume", "--layer", "counts", "--no-report", "--also", "h5ad")
    result = call("fit", "cells.h5ad", "-k", 2, "-o", "run", *words, code=2)
    assert "cells.h5ad has a link in place of obsm" in result.stderr
    assert (counts / "other.h5").read_bytes() == before
    with h5py.File("cells.h5ad", "r+") as file:
        del file["obsm"]
        source = h5py.VirtualSource("other.h5", "values", shape=(3,))
        layout = h5py.VirtualLayout(shape=(3,), dtype=int)
        layout[:] = source
        file.create_virtual_dataset("uns/values", layout)
    result = call("fit", "cells.h5ad", "-k", 2, "-o", "run", *words, code=2)
    assert "cells.h5ad has a link in place of uns/values" in result.stderr


def test_features_are_excluded_from_the_lists_of_the_report(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--exclude", "^word(1|2.)$")
    text = (counts / "run" / "report.html").read_text()
    assert "11 features that were excluded on request" in text
    assert "word12" in text
    assert '"word12"' in text
    for excluded in ("word1", *(f"word2{digit}" for digit in range(10))):
        assert f">{excluded}<" not in text
        assert f'"{excluded}"' not in text
    call("report", "run", "-o", "again.html")
    assert ">word2" in (counts / "again.html").read_text()
    result = call("fit", "counts.csv", "-k", 2, "-o", "new", "--exclude", "(", code=2)
    assert "`exclude` must be a regular expression or a list, got '('" in result.stderr
    assert not (counts / "new").exists()


def test_json_speaks_to_machines_alone(counts):
    lines = events(call("fit", "counts.csv", "-k", 2, "--json"))
    assert [lines[0]["event"], lines[-1]["event"]] == ["read", "done"]
    gaps = [event["gap"] for event in lines if event["event"] == "round"]
    assert gaps[-1] <= lines[-1]["certified_gap"] * 1.01 or lines[-1]["status"] == "converged"
    assert (counts / "counts-k2" / "run.json").exists()


def test_a_run_is_not_overwritten_unasked(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--no-report")
    result = call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report", code=2)
    assert "holds a run already" in result.stderr
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report", "--force")
    assert load_run("run").W.shape == (60, 3)


def test_not_converged_has_its_own_code_unless_asked_for(counts, monkeypatch):
    rounds = ("fit", "counts.csv", "-k", 3, "--tol", 1e-12, "--no-report", "--force")
    call(*rounds, "--max-iter", 2)
    call(*rounds, "--max-time", 0.01)
    monkeypatch.setattr("sipower.cli.options.DEFAULT_MAX_ITER", 2)
    call(*rounds, code=4)
    assert load_run("counts-k3").facts["status"] == "max_rounds"


def test_a_run_is_replaced_as_a_whole(counts):
    """Files of the older run stayed beside the new factors."""
    call("consensus", "counts.csv", "-k", 2, "--replicates", 2, "-o", "run", "--also", "csv")
    call("fit", "counts.csv", "-k", 4, "-o", "run", "--force", "--no-report")
    assert not {"report.html", "consensus.json", "W.csv"} & {p.name for p in counts.glob("run/*")}
    call("report", "run")


def test_what_must_fail_fails_before_the_fit(counts):
    np.save("zero.npy", np.zeros((4, 5)))
    for words, sentence in (
        (["fit", "zero.npy", "-k", 1], "The data are all zero"),
        (["rank", "zero.npy", "-k", "1:2"], "The data are all zero"),
        (["fit", "counts.csv", "-k", 1, "--image-shape", "3x3"], "must have 40 pixels"),
        (["fit", "counts.csv", "-k", 1, "-o", "counts.csv/x"], "counts.csv"),
        (
            ["consensus", "counts.csv", "-k", 1, "--seed", 2**32 - 1],
            "`random_state` must be at most",
        ),
    ):
        assert sentence in call(*words, code=2).stderr
    assert not list(counts.glob("*/factors.npz"))


@pytest.mark.parametrize("way", ["| head -1", "--json | head -1", ">&-"])
def test_a_reader_that_leaves_does_not_cost_the_fit(counts, way):
    line = f"{sys.executable} -m sipower fit counts.csv -k 3 -o run --no-report {way}"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == b""
    assert load_run("run").facts["status"] == "converged"
