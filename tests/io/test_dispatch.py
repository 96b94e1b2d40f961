# SPDX-License-Identifier: BSD-3-Clause
"""All formats: the same counts from any, the ending decides, and files that cannot be opened."""

import gzip
import os
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite

from reading import BAG, BANNER, MARKET, WIDE, V, refused, wide, write_10x_hdf5
from sipower import as_matrix
from sipower.io import FORMATS, ReadError, read


def test_the_same_counts_have_the_same_fingerprint_in_every_format(tmp_path) -> None:
    mmwrite(tmp_path / "a.mtx", sparse.coo_array(V))
    mmwrite(tmp_path / "b.mtx", V)
    sparse.save_npz(tmp_path / "c.npz", sparse.csc_array(V.astype(float)))
    np.save(tmp_path / "d.npy", V.astype(np.uint32))
    wide().to_csv(tmp_path / "e.csv")
    write_10x_hdf5(tmp_path / "f.h5", 3)
    tables = [read(file) for file in sorted(tmp_path.iterdir())]
    assert len({as_matrix(table.counts).sha256 for table in tables}) == 1


def test_swapped_names_are_remarked(tmp_path) -> None:
    contexts = [f"{a}[{b}]{c}" for a in "AC" for b in ("C>A", "T>G") for c in "GT"]
    frame = pd.DataFrame(np.eye(8, 3, dtype=int), index=contexts, columns=["P1", "P2", "P3"])
    frame.to_csv(tmp_path / "sbs.txt", sep="\t")
    assert "samples look like kinds of mutation" in read(tmp_path / "sbs.txt").remarks[0]
    assert read(tmp_path / "sbs.txt", transpose=True).remarks == ()
    frame.index = [f"ENSG{i:011}" for i in range(8)]
    frame.to_csv(tmp_path / "genes.csv")
    assert "samples look like genes" in read(tmp_path / "genes.csv").remarks[0]


def test_every_known_ending_finds_a_reader_and_others_are_told(tmp_path) -> None:
    for ending in FORMATS:
        (tmp_path / f"v{ending}").write_text("nothing\n")
        with pytest.raises(ReadError, match=rf"v{ending}[ ,]"):
            read(tmp_path / f"v{ending}")
    (tmp_path / "v.xlsx").write_text("nothing")
    with pytest.raises(ReadError, match=r"v\.xlsx has an unknown ending: sipower reads \.mtx, "):
        read(tmp_path / "v.xlsx")


@pytest.mark.parametrize(
    ("name", "package"), [("v.csv", "pandas"), ("v.parquet", "pyarrow"), ("v.h5", "h5py")]
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, name, package) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n")
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ReadError, match=f"{name} needs the package {package}: install it"):
        read(tmp_path / name)


def test_fractions_are_the_same_numbers_from_any_file(tmp_path) -> None:
    numbers = np.random.default_rng(0).gamma(0.5, 3.0, (50, 20))
    np.save(tmp_path / "v.npy", numbers)
    frame = pd.DataFrame(numbers)
    frame.columns = frame.columns.map("g{}".format)
    frame.index = frame.index.map("s{}".format)
    frame.to_csv(tmp_path / "v.csv")
    frame.to_parquet(tmp_path / "v.parquet")
    long = frame.reset_index().melt("index")
    long.to_csv(tmp_path / "long.csv", index=False)
    mmwrite(tmp_path / "v.mtx", sparse.coo_array(numbers), precision=17)
    for name in ("v.npy", "v.csv", "v.parquet", "long.csv", "v.mtx"):
        matrix = as_matrix(read(tmp_path / name).counts)
        assert matrix.sha256 == as_matrix(numbers).sha256, name


def test_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path) -> None:
    for name, text in (("v.mtx", MARKET), ("docword.v.txt", BAG), ("v.csv", WIDE)):
        file = tmp_path / name
        file.write_bytes(text.encode())
        plain = read(file)
        file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
        table = read(file)
        assert (table.counts != plain.counts).sum() == 0
        assert (table.samples, table.features) == (plain.samples, plain.features)
        assert table.remarks == plain.remarks


def test_layouts_and_layers_are_checked(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(WIDE)
    refused(file, "has 4 columns, expected sample, feature and count", layout="long")
    refused(file, "has no layers", layer="counts")
    bag = tmp_path / "docword.v.txt"
    bag.write_text("1\n1\n1\n1 1 1\n")
    refused(bag, "is not a table: do not give a layout", layout="wide")
    with pytest.raises(ReadError, match="`layout` must be wide or long, got 'tall'"):
        read(file, layout="tall")


@pytest.mark.parametrize("name", ["v.mtx.gz", "docword.v.txt.gz", "v.csv.gz"])
def test_torn_compression_says_the_line(tmp_path, name) -> None:
    # Bytes that do not compress: the data up to the tear are those of about half of the lines.
    numbers = np.random.default_rng(0).integers(1, 10**9, 2000)
    body = "".join(f"{i + 1} 1 {value}\n" for i, value in enumerate(numbers))
    heads = {"v": f"{BANNER}2000 1 2000\n", "docword": "2000\n1\n2000\n"}
    text = heads[name.partition(".")[0]] + body
    if "csv" in name:
        text = "name,a,b\n" + body.replace(" ", ",")
    file = tmp_path / name
    packed = gzip.compress(text.encode())
    file.write_bytes(packed)
    assert read(file).counts.shape[0] == 2000
    file.write_bytes(packed[: len(packed) // 2])
    refused(file, r"line (9\d\d|10\d\d): the compressed data are truncated or damaged")
    file.write_bytes(packed[:-4])
    refused(file, r"line 200\d: the compressed data are truncated or damaged")


@pytest.mark.parametrize("ending", ["mtx", "h5", "h5ad", "npz", "npy", "csv", "parquet", "txt"])
def test_empty_missing_and_locked_files(tmp_path, ending) -> None:
    file = tmp_path / f"v.{ending}"
    refused(file, "does not exist")
    file.write_bytes(b"")
    refused(file, "is empty")
    if hasattr(os, "geteuid") and os.geteuid():  # root may read everything
        file.write_bytes(b"x")
        file.chmod(0)
        refused(file, "[Pp]ermission denied")
