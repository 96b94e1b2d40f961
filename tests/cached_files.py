# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the cache share: files of every kind, and the entry that was made of one."""

import warnings
from contextlib import contextmanager

import anndata
import h5py
import numpy as np
import scipy.sparse as sp
from scipy.io import mmwrite

from oracles import counts
from sipower.io.cache import cache_entries

V = counts(60, 40)


@contextmanager
def zarr_format(version):
    """Write Zarr files in this format; anndata 0.13 warns that the choice will be removed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with anndata.settings.override(zarr_write_format=version):
            yield


def write_anndata(path, matrix, **layers):
    adata = anndata.AnnData(matrix, layers=layers)
    if path.suffix == ".h5ad":
        adata.write_h5ad(path, compression="gzip")
        return
    with zarr_format(2 if path.stem == "v2" else 3):
        adata.write_zarr(path)


def write_tenx(path):
    by_cells = sp.csr_array(V.astype(np.int32))
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(by_cells, name)
        group["shape"], group["barcodes"] = V.shape[::-1], np.arange(60).astype("S")
        group["features/name"] = group["features/id"] = np.arange(40).astype("S")


def write_folder(path):
    path.mkdir()
    mmwrite(path / "matrix.mtx", sp.coo_array(V.T.astype(int)))
    for name, number in (("barcodes", 60), ("features", 40)):
        lines = "".join(f"{name}{i}\n" for i in range(number))
        (path / f"{name}.tsv").write_text(lines)


FILES = {
    "csr.h5ad": lambda path: write_anndata(path, sp.csr_matrix(V.astype(np.float32))),
    "csc.h5ad": lambda path: write_anndata(path, sp.csc_matrix(V.astype(np.float32))),
    "dense.h5ad": lambda path: write_anndata(path, V.astype(np.float32)),
    "v2.zarr": lambda path: write_anndata(path, sp.csr_matrix(V.astype(np.float32))),
    "v3.zarr": lambda path: write_anndata(path, sp.csc_matrix(V.astype(np.float32))),
    "dense.zarr": lambda path: write_anndata(path, V.astype(np.float32)),
    "tenx.h5": write_tenx,
    "tenx": write_folder,
    "counts.mtx": lambda path: mmwrite(path, sp.coo_array(V.astype(int))),
}


def stamp(folder):
    """When the store of the only entry was made."""
    (entry,) = cache_entries(folder)
    assert entry.status == "current"
    return entry.label["made"]
