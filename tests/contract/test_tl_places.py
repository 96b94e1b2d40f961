# SPDX-License-Identifier: BSD-3-Clause
"""X, a layer or raw: what was fitted is read again, another choice is said."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from sipower import tl
from sipower.datasets import poisson_topics

ad = pytest.importorskip("anndata", reason="optional")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
V = poisson_topics(80, 50, 3, length=200, seed=0).toarray()
LOGS = np.log1p(1e4 * V / np.maximum(V.sum(axis=1, keepdims=True), 1))


def cells():
    """Return cells whose X holds logarithms, with the counts as a layer and in raw."""
    counts = ad.AnnData(sparse.csr_matrix(V.astype("f4")))
    result = ad.AnnData(sparse.csr_matrix(LOGS), layers={"counts": counts.X})
    result.raw = counts
    return result


def quietly(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return call(*arguments, **options)


@pytest.mark.parametrize("place", [{"layer": "counts"}, {"use_raw": True}])
def test_later_functions_read_what_was_fitted(place, tmp_path):
    fitted = cells()
    quietly(tl.nmf, fitted, 3, **place)
    assert {name: fitted.uns["nmf"]["params"][name] for name in place} == place
    assert fitted.uns["nmf"]["whole_numbers"] == 1
    new = quietly(tl.project, cells(), fitted, copy=True)
    moved = np.abs(new.obsm["X_nmf_shares"] - fitted.obsm["X_nmf_shares"]).sum(axis=1).mean() / 2
    assert moved < 1e-6
    fitted.write_h5ad(tmp_path / "fitted.h5ad")
    again = quietly(tl.project, cells(), ad.read_h5ad(tmp_path / "fitted.h5ad"), copy=True)
    np.testing.assert_array_equal(again.obsm["X_nmf"], new.obsm["X_nmf"])
    quietly(tl.spectra, fitted)
    quietly(tl.differential, fitted, check=False)
    usual = ad.AnnData(sparse.csr_matrix(V.astype("f4")))
    quietly(tl.nmf, usual, 3)
    quietly(tl.spectra, usual)
    quietly(tl.differential, usual, check=False)
    for name in ("nmf_z", "nmf_lfc"):
        np.testing.assert_allclose(fitted.varm[name], usual.varm[name], atol=1e-3)


def test_another_place_is_used_and_said_once():
    fitted = cells()
    tl.nmf(fitted, 3, layer="counts")
    sentence = r"fitted to the layer 'counts', but `layer` and `use_raw` choose adata\.X"
    for use in (tl.spectra, lambda cells, **place: tl.project(cells, fitted, **place)):
        with pytest.warns(UserWarning, match=sentence) as seen:
            use(fitted.copy(), layer="X")
        assert [str(each.message)[:13] for each in seen] == ["The programs ", "X holds no wh"]
        assert "as those of the fit were" in str(seen[1].message)
        assert {each.filename for each in seen} == {__file__}
    with pytest.warns(UserWarning, match=r"choose adata\.raw") as seen:
        tl.differential(fitted, use_raw=True, check=False)
    assert len(seen) == 1
    quietly(tl.project, cells(), fitted, layer="counts")
    quietly(tl.project, cells(), fitted, use_raw=False)


def test_a_layer_that_new_cells_lack_is_named():
    fitted, new = cells(), cells()
    tl.nmf(fitted, 3, layer="counts")
    del new.layers["counts"]
    sentence = (
        r"has no layer 'counts', to which the programs were fitted: .* layer='X' for adata\.X"
    )
    with pytest.raises(ValueError, match=sentence):
        tl.project(new, fitted)


def test_logarithms_that_were_fitted_are_said_at_the_fit_only():
    fitted = cells()
    with pytest.warns(UserWarning, match=r"X holds no whole numbers.*object has a layer 'counts'"):
        tl.nmf(fitted, 3)
    quietly(tl.project, cells(), fitted)
    quietly(tl.spectra, fitted)


def test_scaled_values_are_refused_with_the_place_of_counts():
    fitted, new = cells(), cells()
    tl.nmf(fitted, 3, layer="counts")
    new.X = LOGS - 1
    with (
        pytest.warns(UserWarning, match="fitted to the layer"),
        pytest.raises(ValueError, match=r"Negative values .* The object has a layer 'counts'"),
    ):
        tl.project(new, fitted, layer="X")
