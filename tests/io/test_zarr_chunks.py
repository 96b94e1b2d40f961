# SPDX-License-Identifier: BSD-3-Clause
"""Chunks that a Zarr folder lacks: damage where chunks cannot be left out, else a remark."""

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cached_files import zarr_format
from oracles import counts
from reading import held, refused
from sipower.io import convert, open_on_disk, read
from sipower.io.anndata_columns import read_column

zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore:.*[zZ]arr:UserWarning")

V = counts(40, 30).astype(np.float32) + np.eye(40, 30, dtype=np.float32)


def write(file, version, matrix, *, shards=None, donors="ab" * 20):
    """Write an AnnData file, and all its arrays again in many chunks, or shards, of ten items."""
    obs = pd.DataFrame({"donor": pd.Categorical(list(donors))}, [f"c{i}" for i in range(40)])
    var = pd.DataFrame({"gene_ids": [f"ENS{j}" for j in range(30)]}, [f"g{j}" for j in range(30)])
    with zarr_format(version):
        anndata.AnnData(matrix, obs, var).write_zarr(file)
    group = zarr.open_group(file)
    members = group.members(max_depth=None)
    arrays = [name for name, element in members if getattr(element, "shape", ())]
    for name in arrays:
        old = group[name]
        content, attributes, size = old[...], dict(old.attrs), (10,) * len(old.shape)
        del group[name]
        new = group.create_array(
            name,
            shape=old.shape,
            dtype=old.dtype,
            chunks=(5,) * len(size) if shards else size,
            shards=size if shards else None,
            attributes=attributes,
        )
        new[...] = content
    return file


def remove(file, version, array, *place):
    """Remove one chunk of an array, and return its name."""
    name = ".".join(map(str, place)) if version == 2 else "/".join(["c", *map(str, place)])
    (file / array / name).unlink()
    return name


FORMS = [(2, False), (3, False), (3, True)]


@pytest.mark.parametrize(("version", "shards"), FORMS)
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_a_lost_chunk_of_a_sparse_matrix_is_damage(tmp_path, version, shards, make, part):
    """Its counts were read as zeros, and left out."""
    file = write(tmp_path / "cells.zarr", version, make(V), shards=shards)
    np.testing.assert_array_equal(held(read(file)), V)
    assert read(file).remarks == ()
    name = remove(file, version, f"X/{part}", 1)
    message = rf"is damaged: the chunk {name} of /X/{part} is missing; copy or download it again\.$"
    refused(file, message)
    for act in (open_on_disk, lambda file: convert(file, tmp_path / "v.sipower")):
        with pytest.raises(ValueError, match=message):
            act(file)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("place", ["obs", "var"])
def test_a_lost_chunk_of_names_is_damage(tmp_path, version, place):
    """The names were empty."""
    file = write(tmp_path / "cells.zarr", version, V)
    name = remove(file, version, f"{place}/_index", 2)
    refused(file, f"the chunk {name} of /{place}/_index is missing")


@pytest.mark.parametrize(("version", "shards"), FORMS)
def test_a_chunk_of_zeros_need_not_be_stored(tmp_path, version, shards):
    """Zarr itself leaves it out, so that a lost one looks the same: a remark says so."""
    expected = V.copy()
    expected[:10, 10:20] = 0
    file = write(tmp_path / "cells.zarr", version, expected, shards=shards)
    name = "0.1" if version == 2 else "c/0/1"
    assert not (file / "X" / name).exists()  # else this is no test
    table = read(file)
    np.testing.assert_array_equal(held(table), expected)
    assert len(table.remarks) == 1
    assert f"cells.zarr does not store the chunk {name} of /X, among 1 of 12: " in table.remarks[0]
    assert convert(file, tmp_path / "v.sipower")[0] == table.remarks[0]
    remove(file, version, "X", 3, 2)
    lost = expected.copy()
    lost[30:, 20:] = 0
    table = read(file)
    np.testing.assert_array_equal(held(table), lost)
    assert "among 2 of 12: " in table.remarks[0]


def test_a_matrix_without_entries_is_read(tmp_path):
    """Its starts of rows are zeros, which are not stored."""
    file = write(tmp_path / "cells.zarr", 3, sparse.csr_matrix((40, 30), dtype=np.float32))
    assert held(read(file)).sum() == 0
    assert not any("does not store" in remark for remark in read(file).remarks)


def test_indices_of_the_first_feature_alone_are_read(tmp_path):
    """A chunk of zeros, of which Zarr stores none."""
    one = np.zeros((40, 30), np.float32)
    one[:25, 0] = np.arange(1, 26)
    one[25:, 3] = 1
    file = write(tmp_path / "cells.zarr", 3, sparse.csr_matrix(one))
    assert not (file / "X/indices/c/0").exists()
    table = read(file)
    np.testing.assert_array_equal(held(table), one)
    assert "does not store the chunk c/0 of /X/indices, among 2 of 4: " in table.remarks[0]


def test_columns_with_chunks_that_are_not_stored(tmp_path):
    """The codes of the first category are zeros, so that only a remark is possible."""
    donors = "a" * 20 + "b" * 20
    file = write(tmp_path / "cells.zarr", 3, V, donors=donors)
    cells, remarks = read_column(file, "obs", "donor")
    assert "".join(cells) == donors
    assert "the chunk c/0 of /obs/donor/codes, among 2 of 4: " in remarks[0]
    remove(file, 3, "var/gene_ids", 1)
    assert "the chunk c/1 of /var/gene_ids, among 1 of 3: " in read(file).remarks[0]
    remove(file, 3, "obs/donor/categories", 0)
    with pytest.raises(ValueError, match=r"the chunk c/0 of /obs/donor/categories is missing"):
        read_column(file, "obs", "donor")
