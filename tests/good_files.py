# SPDX-License-Identifier: BSD-3-Clause
"""Small files of every format that `sipower.io.read` knows, by the libraries that own them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
from scipy import sparse
from scipy.io import mmwrite

V = np.random.default_rng(7).poisson(0.5, (12, 9)).astype(np.int32)
V[0, 0], V[-1, -1] = 40_000, 12
CELLS = [f"AAACCTGAGAAACC{'ACGT'[i % 4]}{'ACGT'[i // 4]}-1" for i in range(12)]
GENES = [f"Gene{i}" for i in range(9)]


def write_mtx(folder: Path) -> Path:
    mmwrite(folder / "v.mtx", sparse.coo_array(V))
    return folder / "v.mtx"


def write_real_mtx(folder: Path) -> Path:
    mmwrite(folder / "v.mtx", sparse.coo_array(V * 0.37), precision=6)
    return folder / "v.mtx"


def write_array_mtx(folder: Path) -> Path:
    mmwrite(folder / "v.mtx", V)
    return folder / "v.mtx"


def write_mtx_gz(folder: Path) -> Path:
    file = write_mtx(folder)
    packed = folder / "v.mtx.gz"
    packed.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    return packed


def write_docword(folder: Path) -> Path:
    i, j = np.nonzero(V)
    lines = [*V.shape, len(i), *(f"{a + 1} {b + 1} {V[a, b]}" for a, b in zip(i, j, strict=True))]
    (folder / "docword.v.txt").write_text("\n".join(map(str, lines)) + "\n")
    return folder / "docword.v.txt"


def write_npz(folder: Path) -> Path:
    sparse.save_npz(folder / "v.npz", sparse.csr_array(V), compressed=False)
    return folder / "v.npz"


def write_npz_compressed(folder: Path) -> Path:
    sparse.save_npz(folder / "v.npz", sparse.csc_array(V))
    return folder / "v.npz"


def write_npy(folder: Path) -> Path:
    np.save(folder / "v.npy", V.astype(np.float32))
    return folder / "v.npy"


def write_h5(folder: Path) -> Path:
    by_columns = sparse.csc_array(V.T)
    with h5py.File(folder / "v.h5", "w") as file:
        group = file.create_group("matrix")
        for name, kind in (("data", "i4"), ("indices", "i8"), ("indptr", "i8")):
            part = getattr(by_columns, name).astype(kind)
            group.create_dataset(name, data=part, compression="gzip" if name == "data" else None)
        group["shape"], group["barcodes"] = np.array(V.T.shape, "i4"), np.array(CELLS, "S18")
        group["features/name"] = np.array(GENES, "S")
        group["features/feature_type"] = np.array(["Gene Expression"] * 9, "S")
    return folder / "v.h5"


def write_h5ad(folder: Path, make: Callable = sparse.csr_matrix) -> Path:
    obs, var = pd.DataFrame(index=CELLS), pd.DataFrame(index=GENES)
    adata = anndata.AnnData(make(V.astype(np.float32)), obs=obs, var=var)
    adata.write_h5ad(folder / "v.h5ad")
    return folder / "v.h5ad"


def write_dense_h5ad(folder: Path) -> Path:
    return write_h5ad(folder, np.array)


def write_csv(folder: Path) -> Path:
    pd.DataFrame(V, CELLS, GENES).to_csv(folder / "v.csv")
    return folder / "v.csv"


def write_long_csv(folder: Path) -> Path:
    frame = pd.DataFrame(V, CELLS, GENES).stack().reset_index()
    frame.set_axis(["cell", "gene", "count"], axis=1).to_csv(folder / "v.csv", index=False)
    return folder / "v.csv"


def write_csv_gz(folder: Path) -> Path:
    pd.DataFrame(V, CELLS, GENES).to_csv(folder / "v.csv.gz")
    return folder / "v.csv.gz"


def write_parquet(folder: Path) -> Path:
    pd.DataFrame(V, CELLS, GENES).to_parquet(folder / "v.parquet")
    return folder / "v.parquet"


WRITERS: dict[str, Callable[[Path], Path]] = {
    name.removeprefix("write_"): function
    for name, function in list(globals().items())
    if name.startswith("write_")
}
