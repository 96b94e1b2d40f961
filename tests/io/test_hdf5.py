# SPDX-License-Identifier: BSD-3-Clause
"""HDF5 files of 10x and AnnData: what is read, and what is refused."""

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite

from reading import CELLS, GENES, V, assert_read, held, refused, write_10x_hdf5
from sipower.io import ReadError, read


def test_genes_that_share_a_name_have_their_ids(tmp_path) -> None:
    """Or new cells could not be matched with a run by the names of its genes."""
    genes = ["Sox2", "Tbce", "Actb", "Tbce"]
    expected = ("Sox2", "Tbce (ENSMUSG00000000001)", "Actb", "Tbce (ENSMUSG00000000003)")
    for version in (2, 3):
        file = write_10x_hdf5(tmp_path / f"v{version}.h5", version, genes)
        assert read(file).features == expected
    mmwrite(tmp_path / "matrix.mtx", sparse.coo_array(V.T))
    (tmp_path / "barcodes.tsv").write_text("\n".join(CELLS) + "\n")
    lines = (f"ENSMUSG{i:011}\t{name}\tGene Expression\n" for i, name in enumerate(genes))
    (tmp_path / "features.tsv").write_text("".join(lines))
    assert read(tmp_path).features == expected


@pytest.mark.parametrize("version", [2, 3])
def test_hdf5_of_10x(tmp_path, version) -> None:
    table = read(write_10x_hdf5(tmp_path / "molecules.h5", version))
    assert_read(table)
    assert table.remarks == ()
    assert held(table).dtype == np.int32


def test_mixed_kinds_of_features_are_remarked(tmp_path) -> None:
    file = write_10x_hdf5(tmp_path / "multi.h5", 3)
    with h5py.File(file, "a") as handle:
        handle["matrix/features/feature_type"][3] = b"Antibody Captur"
    assert "several kinds" in read(file).remarks[0]


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, np.array])
@pytest.mark.parametrize("layer", [None, "counts"])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_anndata(tmp_path, make, layer, compression) -> None:
    obs, var = pd.DataFrame(index=list(CELLS)), pd.DataFrame(index=list(GENES))
    adata = anndata.AnnData(make(V.astype(np.float32)), obs=obs, var=var)
    if layer:
        adata.layers[layer], adata.X = adata.X, adata.X * 0.5
    adata.write_h5ad(tmp_path / "cells.h5ad", compression=compression)
    table = read(tmp_path / "cells.h5ad", layer=layer)
    assert_read(table)
    assert held(table).dtype == np.float32


def test_anndata_without_the_layer_names_those_it_has(tmp_path) -> None:
    adata = anndata.AnnData(sparse.csr_array(V.astype(float)), layers={"raw": V, "spliced": V})
    adata.write_h5ad(tmp_path / "cells.h5ad")
    with pytest.raises(ReadError, match=r"cells\.h5ad has no layers/counts.*raw, spliced\.$"):
        read(tmp_path / "cells.h5ad", layer="counts")


def test_hdf5(tmp_path) -> None:
    file = tmp_path / "v.h5"
    file.write_text("no HDF5")
    refused(file, "is damaged or not an HDF5 file")
    with h5py.File(file, "w") as handle:
        handle["something"] = np.ones(3)
    refused(file, r"has 0 10x matrices, expected one; it holds: something")
    refused(file, "is not an AnnData file and has no layer 'counts'", layer="counts")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("indices", np.array([0, 9, 1]), "an index is outside 2 x 3"),
        ("indptr", np.array([0, 9, 3]), "the starts of its rows are out of order"),
        ("data", np.array([1, -1, 2]), "row 1, column 3, holds -1"),
        ("data", np.array([b"a", b"b", b"c"]), "has values of type"),
        ("shape", np.array([2**40, 2]), "declares 2 x 1099511627776"),
        ("barcodes", np.array([b"a"]), "1 barcodes and 3 features for a matrix of 2 x 3"),
    ],
)
def test_damaged_matrices_of_10x(tmp_path, name, content, message) -> None:
    file, good = tmp_path / "v.h5", sparse.csr_array(np.array([[0, 2, 1], [3, 0, 0]]))
    with h5py.File(file, "w") as handle:
        group = handle.create_group("matrix")
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(good, part)
        group["shape"], group["barcodes"] = [3, 2], np.array([b"x", b"y"])
        group["features/name"] = np.array([b"a", b"b", b"c"])
    assert read(file).counts.sum() == 6
    with h5py.File(file, "a") as handle:
        del handle[f"matrix/{name}"]
        handle[f"matrix/{name}"] = content
    refused(file, message)


def test_an_empty_dataset_of_terabytes_is_refused(tmp_path) -> None:
    file = tmp_path / "v.h5ad"
    anndata.AnnData(np.ones((2, 3), np.float32)).write_h5ad(file)
    with h5py.File(file, "a") as handle:
        del handle["X"]
        handle.create_dataset("X", (10**6, 10**6), "f4", chunks=(1000, 1000))
    refused(file, r"/X, declares 4000000000000 bytes and stores 0: it is damaged")


def test_names_that_are_a_link_to_the_whole_file(tmp_path) -> None:
    """They were read with all that the file holds, again and again."""
    file = tmp_path / "v.h5ad"
    anndata.AnnData(np.ones((2, 3), np.float32)).write_h5ad(file)
    with h5py.File(file, "a") as handle:
        del handle["var/_index"]
        handle["var/_index"] = h5py.SoftLink("/")
    refused(file, "/var/_index holds no names")
