# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the readers share: good texts, and what a reader must return or refuse."""

import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse

from sipower.io import ReadError, Table, read

V = np.array([[0, 2, 0, 1], [5, 0, 0, 0], [0, 0, 70_000, 3]], dtype=np.int32)
CELLS = ("AAACCTGA-1", "AAACGGGT-1", "AAAGATGC-1")
GENES = ("Xkr4", "Gm1992", "Sox17", "Rp1")
BANNER = "%%MatrixMarket matrix coordinate integer general\n"
MARKET = f"{BANNER}% a comment\n3 4 3\n1 2 5\n2 1 7\n3 4 1\n"
BAG = "3\n4\n3\n1 2 5\n2 1 7\n3 4 1\n"
WIDE = "name,a,b,c\ns1,1,2,3\ns2,4,5,6\n"
LONG = "sample,feature,count\ns1,a,1\ns1,b,2\ns2,a,3\n"


def held(table: Table) -> NDArray:
    counts = table.counts
    if isinstance(counts, np.ndarray):
        return counts
    assert isinstance(counts, sparse.csr_array)
    assert counts.has_canonical_format
    assert counts.nnz == 0 or counts.data.min() > 0
    return counts.toarray()


def assert_read(table: Table, expected: NDArray = V, names: bool = True) -> None:
    np.testing.assert_array_equal(held(table), expected)
    if names:
        assert (table.samples, table.features) == (CELLS, GENES)


def compress(file: Path) -> Path:
    packed = file.with_name(f"{file.name}.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    return packed


def refused(file: Path, message: str, **options: object) -> None:
    with pytest.raises(ReadError) as caught:
        read(file, **options)
    text = str(caught.value)
    assert text.startswith(str(file))
    assert re.search(message, text), text
    assert text.endswith(".")
    assert "\n" not in text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def write_10x_hdf5(file: Path, version: int, genes: Sequence[str] = GENES) -> Path:
    # As the documentation of Cell Ranger describes its feature-barcode matrices in HDF5.
    by_columns = sparse.csc_array(V.T)
    with h5py.File(file, "w") as handle:
        group = handle.create_group("matrix" if version == 3 else "mm10")
        for name, part in (("data", "i4"), ("indices", "i8"), ("indptr", "i8")):
            values = getattr(by_columns, name).astype(part)
            group.create_dataset(name, data=values, compression="gzip")
        group["shape"] = np.array(by_columns.shape, "i4")
        group["barcodes"] = np.array(CELLS, "S18")
        ids = np.array([f"ENSMUSG{i:011}" for i in range(4)], "S18")
        if version == 3:
            features = group.create_group("features")
            features["id"], features["name"] = ids, np.array(genes, "S")
            features["feature_type"] = np.array(["Gene Expression"] * 4, "S")
            features["genome"] = np.array(["mm10"] * 4, "S")
        else:
            group["genes"], group["gene_names"] = ids, np.array(genes, "S")
    return file


def wide(**more: object) -> pd.DataFrame:
    return pd.DataFrame(V, index=pd.Index(CELLS, **more), columns=GENES)
