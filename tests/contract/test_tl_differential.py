# SPDX-License-Identifier: BSD-3-Clause
"""`sipower.tl.differential`: the numbers of the function, stored where scverse expects them."""

import numpy as np
import pytest
from scipy import sparse

from sipower import KLNMF, differential, pl, tl
from sipower.datasets import poisson_topics
from sipower.results import Run

ad = pytest.importorskip("anndata", reason="optional")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
V = poisson_topics(120, 50, 3, length=200, seed=0).astype(np.float32)
ENTRIES = {"lfc": "posterior_mean", "lfsr": "lfsr", "lfc_lower": "lower", "lfc_upper": "upper",
           "lfc_estimate": "log2_fold_change", "lfc_error": "standard_error",
           "lfc_against": "against"}  # fmt: skip


def fitted(**options):
    rng = np.random.default_rng(0)
    cells = ad.AnnData(X=sparse.csr_matrix(V * 2), layers={"counts": sparse.csr_matrix(V)})
    cells.var_names = [f"gene/{j}" for j in range(50)]
    cells.obs["size"], cells.obs["lab"] = rng.uniform(0.5, 2, 120), rng.choice(["A", "B"], 120)
    cells.var["panel"] = np.arange(50) % 4 > 0
    tl.nmf(cells, 3, layer="counts", **options)
    return cells


@pytest.mark.parametrize("contrast", ["least extreme", "null", "pairwise"])
def test_the_numbers_are_those_of_the_function(contrast, tmp_path):
    cells = fitted()
    changed = tl.differential(cells, contrast=contrast, copy=True)
    assert set(cells.varm) == {"nmf"}
    own = differential(V, cells.obsm["X_nmf"], contrast=contrast)
    for ending, name in ENTRIES.items():
        frame = changed.varm[f"nmf_{ending}"]
        np.testing.assert_array_equal(frame.to_numpy(), getattr(own, name).T, name)
        assert list(frame.columns) == [own.label(row) for row in range(3)]
        assert list(frame.index) == list(cells.var_names)
    about = changed.uns["nmf_differential"]
    assert about["verdict"] == str(own.replication)
    assert about["params"]["layer"] == "counts"
    first = own.label(0)
    assert about["names"][first][0] == cells.var_names[np.argmax(own.z[0])]
    assert (np.diff(about["scores"][first]) <= 0).all()
    changed.write_h5ad(tmp_path / "cells.h5ad")
    read = ad.read_h5ad(tmp_path / "cells.h5ad")
    for ending in ENTRIES:
        assert read.varm[f"nmf_{ending}"].equals(changed.varm[f"nmf_{ending}"])
    stored = read.uns["nmf_differential"]
    assert stored["verdict"] == about["verdict"]
    assert list(stored["names"][first]) == list(about["names"][first])
    assert stored["names"].dtype.names == about["names"].dtype.names


def test_plots_take_the_stored_differences(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    cells = fitted(key_added="programs")
    tl.differential(cells, key="programs")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    for stored in (cells, ad.read_h5ad(tmp_path / "cells.h5ad"), cells[:, ::2]):
        ax = pl.volcano(stored, "component 2", key="programs")
        assert sum(len(part.get_offsets()) for part in ax.collections) == stored.n_vars
        pl.intervals(stored, contrast=1, key="programs")
        pyplot.close("all")
    with pytest.raises(ValueError, match=r"`differences` must have varm\['nmf_lfc'\]"):
        pl.volcano(cells)


@pytest.mark.parametrize("keys", [{"offset_key": "size"}, {"mask_key": "panel"}])
def test_columns_of_the_fit_are_used_again(keys):
    cells = fitted(**keys)
    tl.differential(cells)
    observed = {"offsets": cells.obs["size"]} if "offset_key" in keys else None
    observed = observed or {"mask": cells.var["panel"].to_numpy()}
    own = differential(V, cells.obsm["X_nmf"], **observed)
    np.testing.assert_array_equal(cells.varm["nmf_lfc"], own.posterior_mean.T)
    assert cells.uns["nmf_differential"]["verdict"] == str(own.replication)


def test_batch_effects_of_the_fit_are_used_again():
    cells = fitted(batch_key="lab")
    tl.differential(cells)
    model, lab = KLNMF(3, random_state=0), cells.obs["lab"].astype(str).to_numpy()
    W = model.fit_transform(V, batch=lab)
    own = differential(V, model, batch=lab)
    order = Run.from_model(model, W).order
    expected = own.posterior_mean[order].T
    np.testing.assert_allclose(cells.varm["nmf_lfc"], expected, rtol=1e-3, atol=1e-3)
    del cells.varm["nmf_batch_effects"]
    with pytest.raises(ValueError, match=r"must have varm\['nmf_batch_effects'\]"):
        tl.differential(cells)
    cells = fitted(batch_key="lab", prior_W=0.1)
    with pytest.raises(ValueError, match="a fit with `batch_key` and `prior_W` needs normalise="):
        tl.differential(cells)


def test_another_fit_removes_the_differences():
    cells = fitted()
    tl.differential(cells)
    tl.nmf(cells, 2, layer="counts")
    assert set(cells.varm) == {"nmf"}
    assert set(cells.uns) == {"nmf"}


def test_raw_counts_of_the_fit_are_used_again():
    cells = fitted()
    cells.raw = ad.AnnData(sparse.csr_matrix(V), var=cells.var)
    cells.X = cells.X.log1p()
    tl.nmf(cells, 3, use_raw=True)
    tl.differential(cells, check=False)
    own = differential(V, cells.obsm["X_nmf"], check=False)
    np.testing.assert_array_equal(cells.varm["nmf_lfsr"], own.lfsr.T)


def test_objects_that_cannot_be_used_are_named():
    with pytest.raises(TypeError, match="`adata` must be an AnnData object, got a csr_array"):
        tl.differential(V)
    with pytest.raises(ValueError, match=r"`adata` must have varm\['nmf'\] and obsm\['X_nmf'\]"):
        tl.differential(ad.AnnData(V))
    with pytest.raises(ValueError, match="`layer` must be a layer of adata, got 'other'"):
        tl.differential(fitted(), layer="other")
    with pytest.raises(ValueError, match="`contrast` must be one of least extreme, null"):
        tl.differential(fitted(), contrast="most extreme")


def test_noise_causes_a_warning():
    noise = ad.AnnData(np.random.default_rng(0).poisson(0.5, (100, 80)).astype(np.float32))
    tl.nmf(noise, 3)
    with pytest.warns(UserWarning, match="The components fit noise"):
        tl.differential(noise)
    assert "do not interpret" in noise.uns["nmf_differential"]["verdict"]
