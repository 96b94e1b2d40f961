# SPDX-License-Identifier: BSD-3-Clause
"""`sipower.tl.nmf` with columns of obs and var, known programs and guides."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sipower import KLNMF, tl
from sipower.datasets import poisson_topics
from sipower.results import Run

ad = pytest.importorskip("anndata", reason="optional")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
V = poisson_topics(80, 50, 3, length=100, seed=0).astype(np.float32)
RNG = np.random.default_rng(0)
GENES = [f"gene {j}" for j in range(50)]


def adata():
    cells = ad.AnnData(X=sparse.csr_matrix(V))
    cells.var_names = GENES
    cells.obs["weight"] = RNG.uniform(0.5, 2, 80)
    cells.obs["size"] = RNG.uniform(0.5, 2, 80)
    cells.obs["text"] = "x"
    cells.var["panel"] = np.arange(50) % 4 > 0
    return cells


def test_columns_are_the_arguments_of_fit():
    cells = adata()
    keys = {"weight_key": "weight", "offset_key": "size", "mask_key": "panel"}
    tl.nmf(cells, 3, normalise=False, **keys)
    model = KLNMF(3, random_state=0)
    W = model.fit_transform(
        V,
        sample_weight=cells.obs["weight"],
        offsets=cells.obs["size"],
        mask=cells.var["panel"].to_numpy(),
    )
    order = Run.from_model(model, W).order
    np.testing.assert_array_equal(cells.varm["nmf"], model.components_[order].T)
    np.testing.assert_array_equal(cells.obsm["X_nmf"], W[:, order])
    assert not cells.varm["nmf"][~cells.var["panel"].to_numpy()].any()
    assert keys.items() <= cells.uns["nmf"]["params"].items()


def test_columns_that_cannot_be_used_are_named():
    cells = adata()
    with pytest.raises(ValueError, match=r"`offset_key` must be a column of adata\.obs, got 'si'"):
        tl.nmf(cells, 2, offset_key="si")
    with pytest.raises(ValueError, match=r"`mask_key` must be a column of adata\.var.*has panel"):
        tl.nmf(cells, 2, mask_key="weight")
    with pytest.raises(ValueError, match=r"`weight_key` must be .* unlike adata\.obs\['text'\]"):
        tl.nmf(cells, 2, weight_key="text")
    cells.var["panel"] = np.arange(50.0)
    with pytest.raises(ValueError, match=r"adata\.var\['panel'\] must be True or False"):
        tl.nmf(cells, 2, mask_key="panel")
    cells.obs.loc[cells.obs_names[3], "size"] = np.nan
    with pytest.raises(ValueError, match=r"must have a value for every cell, got none for '3'"):
        tl.nmf(cells, 2, offset_key="size")


def test_programs_of_varm_are_kept(tmp_path):
    cells = adata()
    truth = KLNMF(3, random_state=0).fit(V).components_
    cells.varm["catalogue"] = pd.DataFrame(truth[:2].T, GENES, ["stress", "growth"])
    tl.nmf(cells, 3, fixed="catalogue", normalise=False, key_added="beside")
    names = list(cells.uns["beside"]["components"])
    assert sorted(n for n in names if not n.startswith("component ")) == ["growth", "stress"]
    np.testing.assert_array_equal(cells.varm["beside"][:, names.index("growth")], truth[1])
    assert cells.uns["beside"]["params"]["fixed"] == "catalogue"
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = Run.from_anndata(ad.read_h5ad(tmp_path / "cells.h5ad"), "beside")
    assert list(again.component_labels()) == names
    shuffled = cells.varm["catalogue"].iloc[::-1]
    tl.nmf(cells, 3, fixed=shuffled, normalise=False, key_added="by name")
    np.testing.assert_array_equal(cells.varm["by name"], cells.varm["beside"])
    tl.nmf(cells, 3, fixed=truth[:2].T, normalise=False, key_added="array")
    np.testing.assert_array_equal(cells.varm["array"], cells.varm["beside"])
    assert "fixed 2" in cells.uns["array"]["components"]
    tl.nmf(cells, 4, fixed="beside", normalise=False, key_added="next")
    assert {"growth", "stress"} < set(cells.uns["next"]["components"])


def test_programs_that_do_not_fit_are_refused():
    cells = adata()
    with pytest.raises(ValueError, match=r"`fixed` must be an entry of adata\.varm, got 'none'"):
        tl.nmf(cells, 3, fixed="none")
    with pytest.raises(ValueError, match=r"`fixed` must have one row for each of the 50 genes"):
        tl.nmf(cells, 3, fixed=np.ones((2, 50)))
    with pytest.raises(ValueError, match="`fixed` lacks the gene 'gene 49' of adata"):
        tl.nmf(cells, 3, fixed=pd.DataFrame(np.ones((49, 1)), GENES[:49]))


def test_guides_have_names_of_genes():
    cells = adata()
    truth = KLNMF(3, random_state=0).fit(V).components_
    guides = {"B": [GENES[j] for j in np.argsort(-truth[2])[:5]]}
    tl.nmf(cells, 3, guides=guides, key_added="guided")
    names = list(cells.uns["guided"]["components"])
    program = cells.varm["guided"][:, names.index("B")]
    cosine = program @ truth[2] / np.linalg.norm(program) / np.linalg.norm(truth[2])
    assert cosine > 0.95
    with pytest.raises(ValueError, match=r"`guides`: no feature of 'C' is in the data"):
        tl.nmf(cells, 3, guides={"C": ["gene 99"]})


def test_a_panel_of_genes_is_projected_by_name():
    cells = adata()
    tl.nmf(cells, 3, normalise=False)
    panel = cells[:, cells.var["panel"].to_numpy()][:, ::-1].copy()
    with pytest.warns(UserWarning, match="features of the run are not in the file"):
        tl.project(panel, cells)
    model = KLNMF(3, random_state=0).fit(V)
    own = model.transform(V, mask=cells.var["panel"].to_numpy())
    order = Run.from_model(model, model.transform(V)).order
    np.testing.assert_allclose(panel.obsm["X_nmf"], own[:, order], rtol=1e-3, atol=1e-4)
