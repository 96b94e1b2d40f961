# SPDX-License-Identifier: BSD-3-Clause
"""Damaged files end in one sentence or in valid counts: never in a crash, a hang or much memory.

Each reader gets its damaged files in a process of its own, which `damage.py` is.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite

from sipower.io import ReadError, read

V = np.random.default_rng(7).poisson(0.5, (12, 9)).astype(np.int32)
V[0, 0], V[-1, -1] = 40_000, 12
CELLS = [f"AAACCTGAGAAACC{'ACGT'[i % 4]}{'ACGT'[i // 4]}-1" for i in range(12)]
GENES = [f"Gene{i}" for i in range(9)]


# ---- good files, by the libraries that own their formats -----------------------------------------


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
# HDF5 starts a process for each file, so a thousand take minutes: `make stress` has them.
KINDS = [pytest.param(kind, marks=pytest.mark.stress) if "h5" in kind else kind for kind in WRITERS]
# A plain table may be cut between two lines; all others notice each lost byte.
NOTICING = sorted(set(WRITERS) - {"csv", "long_csv"})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's limits of memory")
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_damaged_files(kind: str, tmp_path: Path) -> None:
    assert_survives(kind, tmp_path, 1000)


def assert_survives(kind: str, folder: Path, variants: int) -> None:
    script = Path(__file__).with_name("damage.py")
    command = [sys.executable, "-X", "faulthandler", script, WRITERS[kind](folder), str(variants)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    assert found["refused"] >= variants / 8  # those cut short, at the least
    assert found["slowest"] < 10
    assert found["peak"] < 2 << 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's limits of memory")
@pytest.mark.parametrize("kind", ["h5", "h5ad"])
def test_some_damaged_hdf5(kind: str, tmp_path: Path) -> None:
    assert_survives(kind, tmp_path, 64)


@pytest.mark.parametrize("kind", NOTICING)
def test_every_cut_is_noticed(kind: str, tmp_path: Path) -> None:
    file = WRITERS[kind](tmp_path)
    good = file.read_bytes()
    last_line = good.rstrip().rfind(b"\n") + 1
    ends = {len(good) - cut for cut in range(1, 20)}
    for end in sorted(ends | set(range(1, len(good), max(1, len(good) // 40)))):
        file.write_bytes(good[:end])
        try:
            table = read(file)
        except ReadError:
            continue
        # Digits of the very last count may be gone: a plain text cannot tell, so the user is told.
        assert file.suffix in (".mtx", ".txt")
        assert end > last_line
        assert "does not end" in table.remarks[0]
