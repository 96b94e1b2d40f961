# SPDX-License-Identifier: BSD-3-Clause
"""Names of features: every reader makes them unique by the same rule and keeps their ids."""

import anndata
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reading import CELLS, V, write_10x_hdf5
from sipower.data.on_disk import StoredMatrix
from sipower.io import convert, open_on_disk, open_store, read
from sipower.io.base import unique_names

GENES = ["Sox2", "Tbce", "Actb", "Tbce"]
IDS = tuple(f"ENSMUSG{i:011}" for i in range(4))
NAMES = ("Sox2", f"Tbce ({IDS[1]})", "Actb", f"Tbce ({IDS[3]})")
pytestmark = pytest.mark.filterwarnings("ignore:Variable names are not unique")


def write_h5ad(file, genes=GENES, column="gene_ids"):
    var = pd.DataFrame({} if column is None else {column: list(IDS)}, index=genes)
    obs = pd.DataFrame(index=list(CELLS))
    anndata.AnnData(sparse.csr_matrix(V, dtype=np.float32), obs, var).write_h5ad(file)
    return file


def test_files_of_10x_and_anndata_have_the_same_names_and_ids(tmp_path):
    for version in (2, 3):
        table = read(write_10x_hdf5(tmp_path / f"v{version}.h5", version, GENES))
        assert (table.features, table.feature_ids) == (NAMES, IDS)
    for column in ("gene_ids", "ensembl_id"):
        table = read(write_h5ad(tmp_path / f"{column}.h5ad", column=column))
        assert (table.features, table.feature_ids) == (NAMES, IDS)


def test_without_ids_names_that_repeat_are_numbered(tmp_path):
    table = read(write_h5ad(tmp_path / "v.h5ad", column=None))
    assert (table.features, table.feature_ids) == (("Sox2", "Tbce", "Actb", "Tbce (2)"), None)
    (tmp_path / "v.csv").write_text(",Tbce,Tbce,Actb\ncell,1,2,3\n")
    assert read(tmp_path / "v.csv").features == ("Tbce", "Tbce (2)", "Actb")


def test_names_and_ids_survive_a_store_and_rows_on_disk(tmp_path):
    file = write_h5ad(tmp_path / "v.h5ad")
    convert(file, tmp_path / "v.sipower")
    for V_on_disk in (open_store(tmp_path / "v.sipower"), open_on_disk(file, cache=False)):
        assert isinstance(V_on_disk, StoredMatrix)
        assert tuple(V_on_disk.column_names) == NAMES
        assert V_on_disk.source.feature_ids == IDS


def test_a_transposed_table_has_no_feature_ids(tmp_path):
    table = read(write_h5ad(tmp_path / "v.h5ad"), transpose=True)
    assert (table.samples, table.features, table.feature_ids) == (NAMES, CELLS, None)


@given(st.lists(st.sampled_from(["a", "a (2)", "a (3)", "b", ""])), st.booleans())
def test_names_become_unique_and_unique_ones_stay(names, with_ids):
    ids = [name[:1] for name in names] if with_ids else None
    unique = unique_names(names, ids)
    assert len(set(unique)) == len(unique) == len(names)
    assert all(new.startswith(old) for new, old in zip(unique, names, strict=True))
    assert all(n == o for n, o in zip(unique, names, strict=True) if names.count(o) == 1)
    assert unique_names(unique, ids) == unique
