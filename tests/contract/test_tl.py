# SPDX-License-Identifier: BSD-3-Clause
"""`sipower.tl.nmf` on AnnData, in memory and backed."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context

from sipower import KLNMF, tl
from sipower.datasets import poisson_topics

ad = pytest.importorskip("anndata", reason="optional")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
V = poisson_topics(80, 50, 3, length=100, seed=0)


def adata(X=V):
    cells = ad.AnnData(X=sparse.csr_matrix(X).astype(np.float32))
    cells.layers["counts"] = cells.X.copy()
    return cells


def test_results_are_those_of_klnmf_in_the_usual_places():
    cells = adata()
    before = cells.X.copy()
    assert tl.nmf(cells, 3, tol=1e-2) is None
    model = KLNMF(3, tol=1e-2, random_state=0)
    W = model.fit_transform(V.astype(np.float32))
    np.testing.assert_array_equal(cells.obsm["X_nmf"], W)
    np.testing.assert_array_equal(cells.varm["nmf"], model.components_.T)
    facts = cells.uns["nmf"]
    assert facts["divergence"] == model.kl_divergence_
    assert facts["certified_gap"] == model.kkt_residual_ <= 1e-2
    assert facts["status"] == "converged"
    assert facts["params"]["n_components"] == 3
    assert (before != cells.X).nnz == 0


def test_frames_as_the_default_output_change_nothing():
    cells, usual = adata(), adata()
    tl.nmf(usual, 2)
    with config_context(transform_output="pandas"):
        tl.nmf(cells, 2)
    np.testing.assert_array_equal(cells.obsm["X_nmf"], usual.obsm["X_nmf"])


def test_no_cells_are_one_sentence_backed_too(tmp_path):
    ad.AnnData(sparse.csr_matrix((0, 5))).write_h5ad(tmp_path / "empty.h5ad")
    for backed in (None, "r"):
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            tl.nmf(ad.read_h5ad(tmp_path / "empty.h5ad", backed=backed), 2)


def test_backed_and_in_memory_give_the_same_bits(tmp_path):
    whole = adata()
    whole.write_h5ad(tmp_path / "cells.h5ad")
    tl.nmf(whole, 3)
    for layer in (None, "counts"):
        backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")
        tl.nmf(backed, 3, layer=layer)
        np.testing.assert_array_equal(backed.obsm["X_nmf"], whole.obsm["X_nmf"])
        copied = tl.nmf(backed, 3, layer=layer, copy=True, key_added="again")
        np.testing.assert_array_equal(copied.varm["again"], whole.varm["nmf"])
        assert "again" not in backed.varm
        backed.file.close()


def test_dense_views_and_copies(tmp_path):
    dense = ad.AnnData(X=V.toarray().astype(np.float32))
    copied = tl.nmf(dense, 2, copy=True, key_added="topics")
    assert not dense.obsm
    assert copied.obsm["X_topics"].shape == (80, 2)
    part = dense[10:40].copy()
    tl.nmf(part, 2)
    assert part.obsm["X_nmf"].shape == (30, 2)


def test_results_can_be_written(tmp_path):
    cells = adata()
    tl.nmf(cells, 2, dtype=np.float32, max_time=5.0)
    cells.write_h5ad(tmp_path / "done.h5ad")
    stored = ad.read_h5ad(tmp_path / "done.h5ad")
    assert stored.uns["nmf"]["params"]["dtype"] == "float32"
    np.testing.assert_array_equal(stored.varm["nmf"], cells.varm["nmf"])


def test_what_is_missing_is_named():
    with pytest.raises(TypeError, match=r"`adata` must be an AnnData object, .*: use KLNMF"):
        tl.nmf(np.ones((3, 3)), 2)
    with pytest.raises(ValueError, match=r"`layer` must be .* got 'raw'; the layers are: 'counts'"):
        tl.nmf(adata(), 2, layer="raw")
    with pytest.raises(ValueError, match="has no X"):
        tl.nmf(ad.AnnData(obs=adata().obs), 2)


def test_the_estimator_names_this_door():
    with pytest.raises(TypeError, match=r"sipower\.tl\.nmf"):
        KLNMF(2).fit(adata())


@pytest.mark.parametrize("dense", [True, False])
def test_views_are_data_too(dense):
    """The array of a view has a type of anndata's own and was taken for an AnnData object."""
    whole = ad.AnnData(X=V.toarray().astype(np.float32)) if dense else adata()
    part = whole[:, :20]
    np.testing.assert_array_equal(
        KLNMF(2, random_state=0).fit_transform(part.X),
        KLNMF(2, random_state=0).fit_transform(part.X.copy()),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata says that the view becomes an object
        tl.nmf(part, 2)
    assert part.varm["nmf"].shape == (20, 2)


def test_a_view_of_a_file_is_refused_at_once(tmp_path):
    adata().write_h5ad(tmp_path / "cells.h5ad")
    backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match="view of a file"):
        tl.nmf(backed[:20], 2)
    assert tl.nmf(backed[:20], 2, copy=True).obsm["X_nmf"].shape == (20, 2)
    backed.file.close()


def test_any_seed_can_be_written(tmp_path):
    cells = adata()
    tl.nmf(cells, 2, random_state=np.random.RandomState(0))
    cells.write_h5ad(tmp_path / "done.h5ad")


def test_logarithms_are_warned_of_with_the_layer_of_counts():
    cells = adata()
    cells.X = cells.X.log1p()
    with pytest.warns(
        UserWarning, match="X holds no whole numbers.*object has a layer 'counts'"
    ) as w:
        tl.nmf(cells, 2, tol=0.1)
    assert len(w) == 1
    assert str(w[0].message).endswith("use layer='counts'.")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        tl.nmf(cells, 2, tol=0.1, layer="counts")


def test_counts_in_raw_are_named_dense_and_backed_too(tmp_path):
    cells = adata()
    cells.raw = cells.copy()
    del cells.layers["counts"]
    cells.X = cells.X.log1p().toarray()
    cells.write_h5ad(tmp_path / "cells.h5ad")
    for data in (cells, ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")):
        with pytest.warns(UserWarning, match=r"has counts in \.raw: use use_raw=True"):
            tl.nmf(data, 2, tol=0.1)


def test_negative_values_name_the_layer_of_counts():
    cells = adata()
    cells.X = cells.X.toarray() - 1
    with pytest.raises(ValueError, match=r"Negative values in data.*use layer='counts'"):
        tl.nmf(cells, 2)


def test_swapped_cells_and_genes_are_warned_of():
    cells = adata()
    cells.obs_names = [f"ENSG{i:011}" for i in range(80)]
    with pytest.warns(UserWarning, match=r"samples look like genes.*use `adata\.T`"):
        tl.nmf(cells, 2, tol=0.1)
