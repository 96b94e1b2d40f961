# SPDX-License-Identifier: BSD-3-Clause
"""A matrix of counts, and writers of the formats that `convert` reads in blocks."""

import gzip

import anndata
import h5py
import numpy as np
import pandas as pd
from scipy import sparse
from scipy.io import mmwrite

RNG = np.random.default_rng(0)
V = RNG.integers(1, 400, (600, 150)) * (RNG.random((600, 150)) < 0.4)
V[:, 7] = V[11] = 0
CELLS = tuple(f"cell {i}" for i in range(600))
GENES = tuple(f"gene {j}" for j in range(150))


def docword(file, matrix, shuffled=False):
    rows, columns = np.nonzero(matrix)
    order = np.random.default_rng(1).permutation(len(rows)) if shuffled else np.arange(len(rows))
    lines = (f"{rows[k] + 1} {columns[k] + 1} {matrix[rows[k], columns[k]]}\n" for k in order)
    head = f"{matrix.shape[0]}\n{matrix.shape[1]}\n{len(rows)}\n"
    text = (head + "".join(lines)).encode()
    file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)
    return file


def tenx_folder(folder):
    mmwrite(folder / "matrix.mtx", sparse.coo_array(V.T))
    (folder / "matrix.mtx.gz").write_bytes(gzip.compress((folder / "matrix.mtx").read_bytes()))
    (folder / "matrix.mtx").unlink()
    (folder / "barcodes.tsv").write_text("".join(f"{name}\n" for name in CELLS))
    lines = (f"id{j}\t{name}\tGene Expression\n" for j, name in enumerate(GENES))
    (folder / "features.tsv").write_text("".join(lines))
    return folder


def tenx_hdf5(file):
    by_columns = sparse.csc_array(V.T)
    with h5py.File(file, "w") as handle:
        group = handle.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            content = getattr(by_columns, name).astype("i8")
            group.create_dataset(name, data=content, compression="gzip", chunks=(500,))
        group["shape"], group["barcodes"] = by_columns.shape, np.array(CELLS, "S")
        group["features/name"] = np.array(GENES, "S")
        group["features/id"] = np.array(GENES, "S")
    return file


def cells(file, make, **layers):
    obs, var = pd.DataFrame(index=list(CELLS)), pd.DataFrame(index=list(GENES))
    X = make((V / 2 if layers else V).astype(np.float32))
    layers = {name: make(layer) for name, layer in layers.items()}
    anndata.AnnData(X, obs=obs, var=var, layers=layers).write_h5ad(file, compression="gzip")
    return file


def shuffled_market(file):
    docword(file, V, shuffled=True)
    size, body = " ".join(file.read_text().split("\n", 3)[:3]), file.read_text().split("\n", 3)[3]
    file.write_text(f"%%MatrixMarket matrix coordinate real general\n{size}\n{body}")
    return file
