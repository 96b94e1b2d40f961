# SPDX-License-Identifier: BSD-3-Clause
"""The option --spectra of `sipower fit` and `sipower consensus`."""

import anndata
import numpy as np
import pandas as pd

from cli.calls import V, call
from sipower.inference import spectra
from sipower.results import load_run


def test_fit_writes_spectra_tables_annotations_and_report(counts):
    result = call("fit", "counts.csv", "-k", 3, "-o", "run", "--spectra", "--also", "csv,h5ad")
    assert "wrote run/spectra.npz" in result.stdout
    run = load_run("run")
    expected = spectra(V, (run.W, run.H))
    np.testing.assert_allclose(run.spectra.z_scores, expected.z_scores, rtol=1e-10, atol=1e-12)
    table = pd.read_csv("run/z_scores.csv", index_col="name")
    assert table.index.tolist() == list(run.features)
    adata = anndata.read_h5ad("run/run.h5ad")
    for name, array in (("z", run.spectra.z_scores), ("median", run.spectra.median_units)):
        np.testing.assert_array_equal(adata.varm[f"nmf_{name}"].T, array)
    assert adata.uns["nmf"]["median_total"] == np.median(V.sum(axis=1))
    assert "highest z-scores" in (counts / "run" / "report.html").read_text()
    call("report", "run", "-o", "again.html")
    assert "highest z-scores" in (counts / "again.html").read_text()


def test_resume_adds_spectra_to_a_finished_run(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--also", "csv")
    assert load_run("run").spectra is None
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--also", "csv", "--resume", "--spectra")
    assert load_run("run").spectra.z_scores.shape == (2, V.shape[1])
    assert (counts / "run" / "median_units.csv").exists()
    assert "highest z-scores" in (counts / "run" / "report.html").read_text()
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--force")
    assert not (counts / "run" / "spectra.npz").exists()
    assert not (counts / "run" / "z_scores.csv").exists()


def test_consensus(counts):
    call("consensus", "counts.csv", "-k", 2, "-o", "run", "--replicates", 2, "--spectra")
    assert load_run("run").spectra.top_features(1)[0]


def test_weights_of_entries_are_refused_before_the_fit(counts):
    pd.DataFrame(np.ones(V.shape), [f"document {i}" for i in range(len(V))]).set_axis(
        pd.read_csv("counts.csv", index_col=0).columns, axis=1
    ).to_csv("weights.csv")
    result = call(
        "fit", "counts.csv", "-k", 2, "-o", "run", "--spectra", "--weights", "weights.csv", code=2
    )
    assert "--spectra and --weights of single entries" in result.stderr
    assert not (counts / "run" / "run.json").exists()
