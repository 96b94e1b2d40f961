# SPDX-License-Identifier: BSD-3-Clause
"""`sipower fit`: a run folder with everything that was asked for."""

import subprocess
import sys

import anndata
import numpy as np
import pandas as pd
import pytest

from cli.calls import V, call, events
from sipower import KLNMF, as_matrix
from sipower.results import load_run
from sipower.results.describe import describe


def test_fit_is_klnmf_with_names_and_provenance(counts):
    result = call("fit", "counts.csv", "-k", 3, "-o", "run", "--seed", 5)
    assert "converged after" in result.stdout
    run = load_run("run")
    model = KLNMF(3, random_state=5)
    np.testing.assert_array_equal(run.W, model.fit_transform(V))
    np.testing.assert_array_equal(run.H, model.components_)
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
    tables = {f"{factor}.{ending}" for factor in "WH" for ending in ("csv", "parquet")}
    assert tables | {"run.h5ad", "factors.npz", "names.json", "run.json", "trace.csv"} == files
    W = pd.read_csv("run/W.csv", index_col="name")
    run = load_run("run")
    order = describe(run.W, run.H).order  # as the report counts them
    np.testing.assert_allclose(W, run.W[:, order], rtol=1e-12)
    np.testing.assert_allclose(pd.read_parquet("run/H.parquet").T, run.H[order], rtol=1e-12)
    np.testing.assert_array_equal(anndata.read_h5ad("run/run.h5ad").varm["nmf"].T, run.H[order])


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
