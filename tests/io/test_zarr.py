# SPDX-License-Identifier: BSD-3-Clause
"""AnnData files in Zarr, formats 2 and 3: what is read, and what is refused."""

import json

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cached_files import zarr_format
from reading import CELLS, GENES, V, assert_read, held, refused
from sipower.io import ReadError, convert, read
from sipower.io.anndata_columns import has_columns, read_column

zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore:.*[zZ]arr:UserWarning")


def write(file, version, matrix=None, **layers):
    """Write an AnnData file in a format of Zarr."""
    matrix = sparse.csr_matrix(V.astype(np.float32)) if matrix is None else matrix
    obs = pd.DataFrame({"donor": pd.Categorical(["a", "b", "a"])}, index=list(CELLS))
    adata = anndata.AnnData(matrix, obs, pd.DataFrame(index=list(GENES)), layers=layers)
    with zarr_format(version):
        adata.write_zarr(file)
    return file


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, np.array])
@pytest.mark.parametrize("layer", [None, "counts"])
def test_zarr_is_read_as_h5ad_is(tmp_path, version, make, layer):
    counts = make(V.astype(np.float32))
    first = counts * 0.5 if layer else counts
    file = write(tmp_path / "cells.zarr", version, first, **({layer: counts} if layer else {}))
    table = read(file, layer=layer)
    assert_read(table)
    assert held(table).dtype == np.float32
    convert(file, tmp_path / "v.sipower", layer=layer)
    renamed = file.rename(tmp_path / "cells")  # the content decides, not the name
    assert_read(read(renamed, layer=layer))


@pytest.mark.parametrize("version", [2, 3])
def test_raw_and_columns_of_zarr(tmp_path, version):
    file = tmp_path / "cells.zarr"
    write(file, version, sparse.csr_matrix(V * 0.5))
    assert has_columns(file)
    assert read_column(file, "obs", "donor") == (("a", "b", "a"), [])
    with pytest.raises(ReadError, match=r"has no layers/raw: its layers are none"):
        read(file, layer="raw")
    adata = anndata.read_zarr(file)
    adata.X = sparse.csr_matrix(V.astype(np.float32))
    adata.raw = adata
    adata.X = adata.X * 0.5
    with zarr_format(version):
        adata.write_zarr(tmp_path / "raw.zarr")
    assert_read(read(tmp_path / "raw.zarr", layer="raw"))
    assert "layer='raw'" in read(tmp_path / "raw.zarr").remarks[0]


def test_sharded_zarr(tmp_path):
    with anndata.settings.override(auto_shard_zarr_v3=True):
        file = write(tmp_path / "cells.zarr", 3, x=sparse.csr_matrix(V))
    assert_read(read(file))
    assert_read(read(file, layer="x"))


def test_other_folders_of_that_ending(tmp_path):
    (tmp_path / "empty.zarr").mkdir()
    refused(tmp_path / "empty.zarr", "is not a 10x folder")
    (tmp_path / "file.zarr").write_text("no folder")
    refused(tmp_path / "file.zarr", "is a file")
    zarr.open_group(tmp_path / "other.zarr", mode="w")
    refused(tmp_path / "other.zarr", "is not an AnnData file")


@pytest.mark.parametrize("version", [2, 3])
def test_damaged_zarr(tmp_path, version):
    file = write(tmp_path / "cells.zarr", version)
    chunk = file / "X/data" / ("0" if version == 2 else "c/0")
    content = chunk.read_bytes()
    chunk.write_bytes(content[: len(content) // 2])
    refused(file, "is damaged or not a Zarr file")
    chunk.write_bytes(content)
    mark = file / "X/data" / (".zarray" if version == 2 else "zarr.json")
    mark.write_text("{")
    refused(file, "is damaged or not a Zarr file")


def change(file, version, edit):
    mark = file / "X/data" / (".zarray" if version == 2 else "zarr.json")
    facts = json.loads(mark.read_text())
    edit(facts)
    mark.write_text(json.dumps(facts))


def test_arrays_of_terabytes_without_content_are_refused(tmp_path):
    file = write(tmp_path / "cells.zarr", 2)
    change(file, 2, lambda facts: facts.update(shape=[10**12]))
    refused(file, "declares 4000000000000 bytes")
    file = write(tmp_path / "chunks.zarr", 2)
    change(file, 2, lambda facts: facts.update(chunks=[10**12]))
    refused(file, r"in a chunk declares 4000000000000 bytes")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("place", ["X", "X/data", "obs/_index", "var"])
def test_links_to_other_files_are_refused(tmp_path, version, place):
    write(tmp_path / "private.zarr", version)
    file = write(tmp_path / "cells.zarr", version)
    (file / place).rename(tmp_path / "gone")
    (file / place).symlink_to(tmp_path / "private.zarr" / place)
    refused(file, "another file holds")


def test_a_linked_chunk_is_refused(tmp_path):
    file = write(tmp_path / "cells.zarr", 3)
    (file / "X/data/c/0").rename(tmp_path / "private")
    (file / "X/data/c/0").symlink_to(tmp_path / "private")
    refused(file, "another file holds")


def test_a_folder_that_is_a_link_itself_is_read(tmp_path):
    write(tmp_path / "real.zarr", 3)
    (tmp_path / "cells.zarr").symlink_to(tmp_path / "real.zarr")
    assert_read(read(tmp_path / "cells.zarr"))


@pytest.mark.parametrize(
    ("name", "message"),
    [("pickle", "pickle|No Zarr data type"), ("base64", "uses the codec 'base64'")],
)
def test_codecs_that_do_more_than_decode_numbers_are_refused(tmp_path, name, message):
    """Pickles run any code; zarr refuses them too, today."""
    file = write(tmp_path / "cells.zarr", 2)
    change(file, 2, lambda facts: facts.update(filters=[{"id": name}]))
    refused(file, message)


def test_blosc_in_shards_is_refused(tmp_path):
    """It may read beyond the end of a damaged chunk, whose size is only known for whole files."""
    file = write(tmp_path / "cells.zarr", 3)
    group = zarr.open_group(file)
    data = group["X/data"][...]
    for compressor in (zarr.codecs.ZstdCodec(), zarr.codecs.BloscCodec()):
        del group["X/data"]
        group.create_array(
            "X/data", data=data, chunks=(1,), shards=data.shape, compressors=compressor
        )
        if isinstance(compressor, zarr.codecs.ZstdCodec):
            assert_read(read(file))
    refused(file, "codec 'sharding_indexed', which sipower does not read")
