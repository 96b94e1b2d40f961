# SPDX-License-Identifier: BSD-3-Clause
"""Spectra in AnnData objects, run folders, tables and the report."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from sipower import KLNMF, as_matrix, tl
from sipower.datasets import negative_binomial_topics
from sipower.inference import spectra
from sipower.results import Run, load_run, save_run
from sipower.results.export import export
from sipower.results.folder import FILES
from sipower.results.report import page, write_report

V = negative_binomial_topics(60, 30, 3, dispersion=0.3, alpha=0.3, beta=0.2, length=120, seed=2)
GENES = [f"gene{j}" for j in range(30)]
MODEL = KLNMF(3, random_state=0)
PLAIN = Run.from_model(MODEL, MODEL.fit_transform(V), features=GENES)
NAMED = as_matrix(V).with_names(None, np.array(GENES, object))
RUN = replace(PLAIN, spectra=spectra(NAMED, PLAIN))


def assert_same(one, other, rtol=1e-12):
    for name in ("usages", "median_units", "z_scores"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol, 1e-12)
    assert one.median_total == other.median_total
    assert (one.features, one.components) == (other.features, other.components)


# ---- AnnData ---------------------------------------------------------------------------------


@pytest.fixture
def cells():
    ad = pytest.importorskip("anndata", reason="optional")
    adata = ad.AnnData(X=sparse.csr_matrix(np.log1p(V.toarray())))
    adata.layers["counts"] = sparse.csr_matrix(V).astype(np.float64)
    adata.var_names = GENES
    return adata


def test_anndata_round_trip(cells, tmp_path):
    tl.nmf(cells, 3, layer="counts")
    tl.spectra(cells)  # of the layer that was fitted
    run = Run.from_anndata(cells)
    assert_same(run.spectra, replace(RUN.spectra, samples=run.samples), rtol=1e-5)
    np.testing.assert_array_equal(cells.varm["nmf_z"].T, run.spectra.z_scores)
    np.testing.assert_allclose(cells.varm["nmf_median"].sum(axis=0), np.median(V.sum(axis=1)), 0.02)
    np.testing.assert_allclose(cells.obsm["X_nmf_shares"], run.spectra.usages, rtol=1e-12)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = pytest.importorskip("anndata").read_h5ad(tmp_path / "cells.h5ad")
    assert_same(Run.from_anndata(again).spectra, run.spectra)
    subset = again[:, :10].copy()
    assert Run.from_anndata(subset).spectra.z_scores.shape == (3, 10)


def test_anndata_copies_layers_and_later_fits(cells):
    tl.nmf(cells, 2, layer="counts", key_added="two")
    copied = tl.spectra(cells, key="two", copy=True)
    assert "two_z" in copied.varm
    assert "two_z" not in cells.varm
    cells.layers["double"] = 2 * cells.layers["counts"]
    with pytest.warns(UserWarning, match="fitted to the layer 'counts', .* the layer 'double'"):
        tl.spectra(cells, key="two", layer="double")
    assert cells.uns["two"]["median_total"] == 2 * copied.uns["two"]["median_total"]
    np.testing.assert_allclose(cells.varm["two_z"], copied.varm["two_z"], rtol=1e-9, atol=1e-12)
    tl.nmf(cells, 3, layer="counts", key_added="two")  # spectra of another fit are removed
    assert "two_z" not in cells.varm
    assert Run.from_anndata(cells, "two").spectra is None
    with pytest.raises(ValueError, match=r"call sipower[.]tl[.]nmf first"):
        tl.spectra(cells)


def test_anndata_weights_are_those_of_the_fit(cells):
    weight = np.random.default_rng(0).integers(1, 4, len(cells)).astype(float)
    cells.obs["weight"] = weight
    tl.nmf(cells, 3, layer="counts", weight_key="weight")
    tl.spectra(cells)
    run = Run.from_anndata(cells)
    expected = spectra(NAMED, run, sample_weight=weight)
    np.testing.assert_allclose(run.spectra.z_scores, expected.z_scores, rtol=1e-12)
    assert not np.allclose(run.spectra.z_scores, spectra(NAMED, run).z_scores)


# ---- run folder, tables and report -----------------------------------------------------------


def test_run_folder_round_trip(tmp_path):
    save_run(RUN, tmp_path / "run")
    assert "spectra.npz" in FILES
    assert_same(load_run(tmp_path / "run").spectra, RUN.spectra, rtol=0)
    save_run(PLAIN, tmp_path / "run")  # replaces the run and removes its spectra
    assert load_run(tmp_path / "run").spectra is None


def test_damaged_spectra_are_reported(tmp_path):
    file = save_run(RUN, tmp_path / "run") / "spectra.npz"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"run is damaged: spectra\.npz"):
        load_run(tmp_path / "run")
    np.savez(file, z_scores=np.zeros((3, 2)), median_units=np.zeros((3, 2)), median_total=1.0)
    with pytest.raises(ValueError, match="its arrays differ in size from H"):
        load_run(tmp_path / "run")
    with pytest.raises(ValueError, match="`spectra` must have the shape"):
        replace(PLAIN, spectra=replace(RUN.spectra, z_scores=np.zeros((3, 2))))


def test_tables(tmp_path):
    pd = pytest.importorskip("pandas")
    files = {file.name: file for file in export(RUN, tmp_path, "csv")}
    for name in ("z_scores", "median_units"):
        table = pd.read_csv(files[f"{name}.csv"], index_col="name")
        assert table.index.tolist() == GENES
        assert table.columns.tolist() == ["component 1", "component 2", "component 3"]
        np.testing.assert_allclose(table.to_numpy().T, getattr(RUN.spectra, name), rtol=1e-12)
    assert [file.name for file in export(PLAIN, tmp_path, "csv")] == [
        "W.csv",
        "H.csv",
        "shares.csv",
    ]


def test_report_lists_the_features_with_the_highest_z_scores(tmp_path, monkeypatch):
    pytest.importorskip("plotly")
    monkeypatch.setattr(page, "_plotly", lambda: "")
    html = write_report(RUN, tmp_path / "report.html").read_text("utf-8")
    assert html.count('data-title="highest z-scores"') == 3
    first = RUN.spectra.top_features(1)[0][0]
    value = f"{RUN.spectra.z_scores[0].max():.3g}"
    assert f"<bdi>{first}</bdi> <small>{value}</small>" in html
    assert '<option value="z_score">' in html
    assert '"z_score":{"names":["' + first in html
    hidden = write_report(RUN, tmp_path / "report.html", exclude=[first]).read_text("utf-8")
    assert f"<bdi>{first}</bdi>" not in hidden
    assert "z-score" not in write_report(PLAIN, tmp_path / "report.html").read_text("utf-8")
