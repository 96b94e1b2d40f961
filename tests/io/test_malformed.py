# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be read is said in one sentence, with the file and for a text the line."""

import gzip
import os
import re
import zipfile
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sipower.io import ReadError, read

BANNER = "%%MatrixMarket matrix coordinate integer general\n"
MARKET = f"{BANNER}% a comment\n3 4 3\n1 2 5\n2 1 7\n3 4 1\n"
BAG = "3\n4\n3\n1 2 5\n2 1 7\n3 4 1\n"
WIDE = "name,a,b,c\ns1,1,2,3\ns2,4,5,6\n"
LONG = "sample,feature,count\ns1,a,1\ns1,b,2\ns2,a,3\n"


def refused(file: Path, said: str, **options: object) -> None:
    with pytest.raises(ReadError) as caught:
        read(file, **options)
    text = str(caught.value)
    assert text.startswith(str(file))
    assert re.search(said, text), text
    assert text.endswith(".")
    assert "\n" not in text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("2 1 7", "2 1 x7", r"line 5: 'x7' is no finite number"),
        ("2 1 7", "2 1 nan", r"line 5: 'nan' is no finite number"),
        ("2 1 7", "2 1 inf", r"line 5: 'inf' is no finite number"),
        ("2 1 7", "2 1 -7", r"line 5: the count -7 is negative"),
        ("2 1 7", "2 1 7.5", r"line 5: '7\.5' is no whole number"),
        ("2 1 7", "2 1 1_0", r"line 5: '1_0' is no finite number"),
        ("2 1 7", "2 1 99999999999999999999", r"line 5: '9+' is no whole number of at most 18"),
        ("2 1 7", "4 1 7", r"line 5: the row 4 lies outside 3 x 4"),
        ("2 1 7", "2 0 7", r"line 5: the column 0 lies outside 3 x 4"),
        ("2 1 7", "-2 1 7", r"line 5: the row -2 lies outside 3 x 4"),
        ("2 1 7", "99999999999 1 7", r"line 5: the row 99999999999 lies outside 3 x 4"),
        ("2 1 7", "2.0 1 7", r"line 5: the row '2\.0' is no whole number"),
        ("2 1 7", "2 1", r"line 5: 2 numbers in a line, expected 3"),
        ("2 1 7", "2 1 7 7", r"line 5: 4 numbers in a line, expected 3"),
        ("2 1 7", "1 2 7", r"line 5, has the same row and column as line 4: add up"),
        (
            "2 1 7\n",
            "\n2 1 7\n\n1 2 1\n",
            r"line 3, promises 3 counts and has more, from line 9 on",
        ),
        ("2 1 7\n", "", r"line 3, promises 3 counts and has 2 up to its end at line 5"),
        ("3 4 3", "3 4 4000000000000", r"line 3, promises 4000000000000 counts and has 3"),
        ("3 4 3", "4000000000 4 3", r"line 3, promises 4000000000 x 4 with 3 counts"),
        ("3 4 3", "3 4", r"line 3, is '3 4', expected 3 whole numbers for the size"),
        ("3 4 3", "3 4 -3", r"line 3, is '3 4 -3', expected 3 whole numbers"),
        ("integer", "complex", r"line 1, announces 'coordinate complex general'.*write the matrix"),
        ("general", "skew-symmetric", r"line 1, announces 'coordinate integer skew-symmetric'"),
        ("general", "symmetric", r"line 3: a symmetric matrix cannot be 3 x 4"),
        ("%%MatrixMarket", "%%Market", r"line 1, is '%%Market matrix.*begins with '%%MatrixMarket"),
        (MARKET.removeprefix(BANNER), "", r"line 1, is the end of the file, expected 3 whole"),
    ],
)
def test_matrix_market(tmp_path, good, bad, said) -> None:
    file = tmp_path / "v.mtx"
    file.write_text(MARKET.replace(good, bad, 1))
    refused(file, said)
    packed = tmp_path / "v.mtx.gz"
    packed.write_bytes(gzip.compress(file.read_bytes().replace(b"\n", b"\r\n")))
    refused(packed, said)


def test_duplicates_of_a_symmetric_matrix_are_found_across_the_diagonal(tmp_path) -> None:
    file = tmp_path / "v.mtx"
    text = BANNER.replace("general", "symmetric") + "3 3 3\n1 1 5\n3 2 7\n2 3 1\n"
    file.write_text(text)
    refused(file, "line 5, has the same row and column as line 4")


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("2 1 7", "2 1 seven", r"line 5: 'seven' is no finite number; this is no bag of words"),
        ("2 1 7", "2 5 7", r"line 5: the column 5 lies outside 3 x 4"),
        ("2 1 7", "1 2 7", r"line 5, has the same row and column as line 4"),
        ("3\n4\n3", "3\n4\n5", r"line 3, promises 5 counts and has 3"),
        ("3\n4\n3", "3\n4\n2", r"line 3, promises 2 counts and has more, from line 6 on"),
        ("3\n4\n3", "3\nfour\n3", r"line 2, is 'four', expected 1 whole number for the size"),
        (BAG, "3\n", r"line 1, is the end of the file"),
    ],
)
def test_bags_of_words(tmp_path, good, bad, said) -> None:
    file = tmp_path / "docword.v.txt"
    file.write_text(BAG.replace(good, bad, 1))
    refused(file, said)


def test_the_line_is_right_behind_many_blocks(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sipower.io.text._BLOCK", 64)
    rows = [f"{i} 1 1" for i in range(1, 501)]
    file = tmp_path / "docword.v.txt"
    file.write_text("\n".join(["500", "1", "500", *rows]) + "\n")
    assert read(file).counts.sum() == 500
    rows[399] = "400 1 -1"
    file.write_text("\n".join(["500", "1", "500", *rows]) + "\n")
    refused(file, "line 403: the count -1 is negative")
    rows[399] = "7 1 1"
    file.write_text("\n".join(["500", "1", "500", *rows]) + "\n")
    refused(file, "line 403, has the same row and column as line 10")
    file.write_text("500\n1\n500\n" + "1" * 100)
    refused(file, "line 4, is longer than 64 bytes")


def test_a_last_line_without_end_is_remarked(tmp_path) -> None:
    file = tmp_path / "v.mtx"
    file.write_text(MARKET.removesuffix("\n"))
    assert read(file).counts.sum() == 13
    assert "does not end" in read(file).remarks[0]


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


@pytest.mark.parametrize(
    ("text", "bad", "said"),
    [
        (WIDE, WIDE.replace("5", "five"), r"line 3, column 'b': 'five' is no finite number"),
        (WIDE, WIDE.replace("5", "nan"), r"line 3, column 'b': 'nan' is no finite number"),
        (WIDE, WIDE.replace("5", "NA"), r"line 3, column 'b': 'NA' is no finite number"),
        (WIDE, WIDE.replace("5", "-inf"), r"line 3, column 'b': '-inf' is no finite number"),
        (WIDE, WIDE.replace("5", ""), r"line 3, column 'b': a count is missing"),
        (WIDE, WIDE.replace("5", "True"), r"line 3, column 'b': 'True' is no finite number"),
        (WIDE, WIDE.replace("5", "-5"), r"line 3, column 'b': the count -5 is negative"),
        (WIDE, WIDE.replace("4,5", "4"), r"line 3, has 3 cells, expected 4"),
        (WIDE, WIDE.replace("4,5", "4,5,5"), r"line 3, has 5 cells, expected 4"),
        (WIDE, WIDE.replace(",a,b", ""), r"line 2, has 4 cells, expected 2"),
        (WIDE, "name,a\n", r"has headings and no rows"),
        (WIDE, "\n\n", r"line 1, is empty, expected headings"),
        (WIDE, "name\ns1\ns2\n", r"has names of samples and no counts"),
        (LONG, LONG.replace("2\n", "x\n"), r"line 3, column 'count': 'x' is no finite number"),
        (LONG, LONG.replace("s2", "s1"), r"line 4, has the same sample and feature as line 2"),
        (LONG, LONG.replace("b,", "b,,"), r"line 3, has 4 cells, expected 3"),
    ],
)
def test_tables(tmp_path, text, bad, said) -> None:
    file = tmp_path / "v.csv"
    file.write_text(text)
    read(file)
    file.write_text(bad)
    refused(file, said)


def test_a_negative_count_in_a_first_column_makes_it_no_names(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text("a,b\n1,2\n-3,4\n5,6\n")
    refused(file, r"line 3, column 'a': the count -3 is negative")


def test_a_count_of_400_digits_is_none(tmp_path) -> None:
    """pandas 3.1 makes a Python number of it, which is no float."""
    file = tmp_path / "v.csv"
    file.write_text(f",a\ns,2\nt,1{'0' * 400}\n")
    refused(file, r"line 3, column 'a': '10+…' is no finite number")


def test_layouts_and_layers_are_checked(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(WIDE)
    refused(file, "has 4 columns, expected sample, feature and count", layout="long")
    refused(file, "has no layers", layer="counts")
    bag = tmp_path / "docword.v.txt"
    bag.write_text("1\n1\n1\n1 1 1\n")
    refused(bag, "is no table: leave the layout out", layout="wide")
    with pytest.raises(ReadError, match="the layout 'tall' is unknown: choose wide or long"):
        read(file, layout="tall")


def test_lists_in_parquet_are_no_counts(tmp_path) -> None:
    file = tmp_path / "v.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "b": [[1], [2, 3]]}).to_parquet(file)
    refused(file, "column 'b': lists and structures are no counts")


def test_fixed_texts_in_parquet_may_not_unpack_to_more_than_memory(tmp_path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "v.parquet"
    names = arrow.array([b"x" * 1_000_000] * 20, arrow.binary(1_000_000))
    table = arrow.table({"s": names, "n": [1] * 20})
    with parquet.ParquetWriter(file, table.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(table)
    refused(file, r"promises 400006400 bytes and stores")


@pytest.mark.parametrize("kind", [np.nan, np.inf, -1.0])
def test_parquet_says_the_row(tmp_path, kind) -> None:
    file = tmp_path / "v.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, kind]}).to_parquet(file)
    refused(file, rf"row 2, column 'b': .*{re.escape(str(kind))}")
    pd.DataFrame({"s": ["x", None], "f": ["u", "v"], "n": [1, 2]}).to_parquet(file)
    refused(file, "row 2, has no name of a sample or feature")


# ---- texts in general ----------------------------------------------------------------------------


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
    refused(file, r"line (9\d\d|10\d\d): the compressed data break off or are damaged")
    file.write_bytes(packed[:-4])
    refused(file, r"line 200\d: the compressed data break off or are damaged")


def test_wrong_encoding_says_the_line(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_bytes(WIDE.replace("s2", "sé").encode("latin-1"))
    refused(file, "line 3, is no UTF-8 text: save the file as UTF-8")
    file.write_bytes(WIDE.encode("utf-16"))
    refused(file, "line 1, is no UTF-8 text")


@pytest.mark.parametrize("ending", ["mtx", "h5", "h5ad", "npz", "npy", "csv", "parquet", "txt"])
def test_empty_missing_and_locked_files(tmp_path, ending) -> None:
    file = tmp_path / f"v.{ending}"
    refused(file, "does not exist")
    file.write_bytes(b"")
    refused(file, "is empty")
    if os.geteuid():  # root may read everything
        file.write_bytes(b"x")
        file.chmod(0)
        refused(file, "[Pp]ermission denied")


def write_10x(folder: Path) -> None:
    (folder / "matrix.mtx").write_text(MARKET)
    (folder / "barcodes.tsv").write_text("c1\nc2\nc3\nc4\n")
    (folder / "features.tsv").write_text("g1\tG1\ng2\tG2\ng3\tG3\n")


def test_folders(tmp_path) -> None:
    refused(tmp_path, "is a folder, but none of 10x")
    write_10x(tmp_path)
    assert read(tmp_path).counts.shape == (4, 3)
    (tmp_path / "barcodes.tsv").write_text("c1\nc2\n")
    with pytest.raises(
        ReadError,
        match=r"is 3 x 4, but beside it features\.tsv has 3 names and barcodes\.tsv has 2",
    ):
        read(tmp_path)
    (tmp_path / "barcodes.tsv").unlink()
    refused(tmp_path, "do not all lie in it")


def test_a_vocabulary_of_another_length(tmp_path) -> None:
    (tmp_path / "docword.v.txt").write_text(BAG)
    (tmp_path / "vocab.v.txt").write_text("a\nb\n")
    with pytest.raises(ReadError, match=r"vocab\.v\.txt has 2 words, but .*txt has 4 columns"):
        read(tmp_path / "docword.v.txt")


# ---- binary --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.ones(3), "has 1 dimensions, expected rows and columns"),
        (np.array([[1.0, np.nan]]), "row 1, column 2, holds nan: a count is finite"),
        (np.array([[1.0], [-np.inf]]), "row 2, column 1, holds -inf"),
        (np.array([[1, 2], [-3, 4]]), "row 2, column 1, holds -3"),
        (np.ones((2, 2), complex), "has values of type complex128, expected numbers"),
        (np.array([["a"]]), "has values of type <U1, expected numbers"),
        (np.ones((0, 3)), "holds no counts: it has 0 rows and 3 columns"),
        (np.array([[{}]]), "holds Python objects"),
    ],
)
def test_npy(tmp_path, array, said) -> None:
    np.save(tmp_path / "v.npy", array, allow_pickle=True)
    refused(tmp_path / "v.npy", said)


def test_npy_of_a_wrong_length(tmp_path) -> None:
    file = tmp_path / "v.npy"
    np.save(file, np.ones((3, 4)))
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    refused(file, "promises an array of 96 bytes and has 95")
    file.write_bytes(whole + b"\0")
    refused(file, "promises an array of 96 bytes and has 97")
    file.write_bytes(whole.replace(b"(3, 4), }        ", b"(3, 4000000000), }"))
    refused(file, "promises an array of|is damaged or no NumPy array")


def save_parts(file: Path, **changed: np.ndarray) -> None:
    """Write a good CSR matrix with some of its parts replaced."""
    good = sparse.csr_array(np.array([[0, 2, 1], [3, 0, 0]]))
    parts = {name: getattr(good, name) for name in ("data", "indices", "indptr")}
    np.savez(file, **({"format": b"csr", "shape": good.shape, **parts} | changed))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"indices": np.array([1, 3, 0])}, "an index lies outside 2 x 3"),
        ({"indices": np.array([1, -1, 0])}, "an index lies outside 2 x 3"),
        ({"indices": np.array([1, 1, 0])}, "holds two counts for row 1, column 2"),
        ({"indices": np.array([1.0, 2, 0])}, "has indices of type float64"),
        ({"indices": np.array([[1, 2, 0]])}, "a part of its matrix is no list of numbers"),
        ({"indptr": np.array([0, 4, 3])}, "the starts of its rows are out of order"),
        ({"indptr": np.array([0, 2, 9])}, "the starts of its rows are out of order"),
        ({"indptr": np.array([0, 3])}, "cannot have 3 values, 3 indices and 2 starts"),
        ({"shape": np.array([2, 10**12])}, "promises 2 x 1000000000000 with 3 counts"),
        ({"shape": np.array([-2, 3])}, "promises -2 x 3"),
        ({"shape": np.array([2, 3, 4])}, "the shape of its matrix"),
        ({"data": np.array([2, 1, -3])}, "row 2, column 1, holds -3"),
        ({"data": np.array([2, np.nan, 3])}, "row 1, column 3, holds nan"),
        ({"format": np.array(b"dia")}, "of the format 'dia'.*save it as CSR"),
    ],
)
def test_sparse_npz(tmp_path, changed, said) -> None:
    save_parts(tmp_path / "v.npz")
    assert read(tmp_path / "v.npz").counts.sum() == 6
    save_parts(tmp_path / "v.npz", **changed)
    refused(tmp_path / "v.npz", said)


def test_coordinates_in_npz(tmp_path) -> None:
    file = tmp_path / "v.npz"
    for rows, said in (([0, 0, 2], "outside 2 x 3"), ([0, 0, 0], "two counts for row 1, column 2")):
        parts = {"row": np.array(rows), "col": np.array([1, 2, 1]), "data": np.ones(3)}
        np.savez(file, format=b"coo", shape=(2, 3), **parts)
        refused(file, said)


def test_other_archives(tmp_path) -> None:
    file = tmp_path / "v.npz"
    np.savez(file, V=np.ones((2, 2)))
    refused(file, "holds the arrays V, expected a sparse matrix")
    file.write_bytes(b"PK no archive")
    refused(file, "is damaged or no .npz file")


def test_a_small_archive_that_unpacks_to_gigabytes_is_refused(tmp_path) -> None:
    file, zeros = tmp_path / "v.npz", np.zeros(300 << 20, np.uint8)
    parts = {"indices": zeros[:1], "indptr": zeros[:3], "shape": (2, 3)}
    np.savez_compressed(file, format=b"csr", data=zeros, **parts)
    raw = file.read_bytes()
    assert len(raw) < 1 << 20
    # The size that the archive's directory tells, made larger than any compression can be.
    size = (zeros.nbytes + 128).to_bytes(4, "little")
    assert raw.count(size) >= 1
    file.write_bytes(raw.replace(size, (0xFFFFFF00).to_bytes(4, "little")))
    refused(file, "promises 4294967040 bytes for the array data and stores")


def test_hdf5(tmp_path) -> None:
    file = tmp_path / "v.h5"
    file.write_text("no HDF5")
    refused(file, "is damaged or no HDF5 file")
    with h5py.File(file, "w") as opened:
        opened["something"] = np.ones(3)
    refused(file, r"has 0 matrices of 10x, expected one: something")
    refused(file, "is no AnnData file and has no layer 'counts'", layer="counts")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("indices", np.array([0, 9, 1]), "an index lies outside 2 x 3"),
        ("indptr", np.array([0, 9, 3]), "the starts of its rows are out of order"),
        ("data", np.array([1, -1, 2]), "row 1, column 3, holds -1"),
        ("data", np.array([b"a", b"b", b"c"]), "has values of type"),
        ("shape", np.array([2**40, 2]), "promises 2 x 1099511627776"),
        ("barcodes", np.array([b"a"]), "1 barcodes and 3 features name a matrix of 2 x 3"),
    ],
)
def test_damaged_matrices_of_10x(tmp_path, name, content, said) -> None:
    file, good = tmp_path / "v.h5", sparse.csr_array(np.array([[0, 2, 1], [3, 0, 0]]))
    with h5py.File(file, "w") as opened:
        group = opened.create_group("matrix")
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(good, part)
        group["shape"], group["barcodes"] = [3, 2], np.array([b"x", b"y"])
        group["features/name"] = np.array([b"a", b"b", b"c"])
    assert read(file).counts.sum() == 6
    with h5py.File(file, "a") as opened:
        del opened[f"matrix/{name}"]
        opened[f"matrix/{name}"] = content
    refused(file, said)


def test_a_text_with_a_wrong_length_crashes_nobody(tmp_path) -> None:
    # A length of 1.6 GB where 5 bytes are: HDF5 copies what lies behind them, or crashes.
    file, names = tmp_path / "v.h5ad", pd.DataFrame(index=["Gene1", "Gene2", "Gene3"])
    anndata.AnnData(np.ones((2, 3), np.float32), var=names).write_h5ad(file)
    with h5py.File(file) as opened:
        texts = opened["var/_index"]  # texts of which some may be missing, as pandas 3 has them
        texts = texts if hasattr(texts, "shape") else texts["values"]
        at = texts.id.get_offset()
    raw = bytearray(file.read_bytes())
    assert raw[at] == 5
    raw[at + 3] = 0x61
    file.write_bytes(raw)
    refused(file, "is damaged or no HDF5 file: its texts, ")


def test_an_empty_dataset_of_terabytes_is_refused(tmp_path) -> None:
    file = tmp_path / "v.h5ad"
    anndata.AnnData(np.ones((2, 3), np.float32)).write_h5ad(file)
    with h5py.File(file, "a") as opened:
        del opened["X"]
        opened.create_dataset("X", (10**6, 10**6), "f4", chunks=(1000, 1000))
    refused(file, r"/X, promises 4000000000000 bytes and stores 0: it is damaged")


def test_a_heading_may_go_on_in_the_next_line(tmp_path) -> None:
    """It was cut there, and all names moved by one."""
    file = tmp_path / "v.csv"
    file.write_text('name,"g\n1",g2\ns1,1,2\ns2,3,4\n')
    table = read(file, layout="wide")
    assert table.features == ("g\n1", "g2")
    assert table.samples == ("s1", "s2")


def test_a_long_table_without_headings_loses_nothing(tmp_path) -> None:
    file = tmp_path / "v.tsv"
    file.write_text("s1\tg1\t3\ns1\tg2\t4\ns2\tg1\t5\n")
    refused(file, "line 1, holds a count where headings are expected")


def test_times_are_no_counts(tmp_path) -> None:
    file = tmp_path / "v.parquet"
    days = pd.to_datetime(["2020-01-01", "2020-01-02"])
    pd.DataFrame({"day": days, "a": [1, 2], "b": [3, 4]}).to_parquet(file)
    assert read(file, layout="wide").features == ("a", "b")
    pd.DataFrame({"a": [1, 2], "day": days}).to_parquet(file)
    refused(file, "column 'day'")


# ---- what fuzzing has found ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("<i8", (-3, -4)), ("<i8", (0, 10**30)), ("|S0", (3, 4)), ("<i8", (0, 2**63)), ("|V0", ())],
)
def test_a_head_of_numpy_with_sizes_that_cannot_be(tmp_path, kind, shape) -> None:
    head = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode() + b"\n"
    raw = np.lib.format.magic(1, 0) + len(head).to_bytes(2, "little") + head
    raw += bytes(8 * 12) if min(shape, default=0) < 0 else b""
    (tmp_path / "v.npy").write_bytes(raw)
    refused(tmp_path / "v.npy", "is damaged or no NumPy array")


@pytest.mark.parametrize(
    ("value", "said"),
    [("1e4000", "row 1, column 1, holds inf"), ("1e-4000", "too small for float64: rescale them")],
)
def test_a_long_double_out_of_range_is_refused_without_a_warning(tmp_path, value, said) -> None:
    np.save(tmp_path / "v.npy", np.array([[value]], np.longdouble))
    refused(tmp_path / "v.npy", said)


def test_a_head_of_numpy_that_is_odd_source_gives_no_warning(tmp_path) -> None:
    head = b"{'descr': '\\d', 'fortran_order': False, 'shape': (1, 1)}\n"
    raw = np.lib.format.magic(1, 0) + len(head).to_bytes(2, "little") + head + bytes(8)
    (tmp_path / "v.npy").write_bytes(raw)
    refused(tmp_path / "v.npy", "is damaged or no NumPy array")


def test_members_of_an_archive_without_the_ending_are_no_arrays(tmp_path) -> None:
    save_parts(tmp_path / "good.npz")
    with zipfile.ZipFile(tmp_path / "good.npz") as good:
        members = {name: good.read(name) for name in good.namelist()}
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as bad:
        for name, content in members.items():
            bad.writestr(name.replace("shape.npy", "shape"), content)
    refused(tmp_path / "v.npz", "holds the arrays data, format, indices, indptr, expected")


def test_a_format_that_is_no_text(tmp_path) -> None:
    save_parts(tmp_path / "v.npz", format=np.array(b"\xff\xfe"))
    refused(tmp_path / "v.npz", "of the format 'ÿþ'")


def test_damage_in_an_archive_packed_by_lzma(tmp_path) -> None:
    save_parts(tmp_path / "good.npz")
    with (
        zipfile.ZipFile(tmp_path / "good.npz") as good,
        zipfile.ZipFile(tmp_path / "v.npz", "w", zipfile.ZIP_LZMA) as packed,
    ):
        for name in good.namelist():
            packed.writestr(name, good.read(name))
    raw = bytearray((tmp_path / "v.npz").read_bytes())
    at = raw.index(b"data.npy") + len(b"data.npy") + 12
    raw[at : at + 20] = b"\xff" * 20
    (tmp_path / "v.npz").write_bytes(raw)
    refused(tmp_path / "v.npz", "is damaged or no NumPy array: Corrupt input data")


def test_digits_of_other_scripts_are_no_counts(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(LONG.replace(",3", ",٣"), encoding="utf-8")
    refused(file, "line 4, column 'count': '٣' is no finite number", layout="long")


def test_a_long_word_in_a_banner_does_not_fill_the_sentence(tmp_path) -> None:
    file = tmp_path / "v.mtx"
    file.write_text(MARKET.replace("general", "x" * 5000))
    refused(file, r"announces 'coordinate integer x+…', which")


def test_names_that_are_a_link_to_the_whole_file(tmp_path) -> None:
    """They were read with all that the file holds, again and again."""
    file = tmp_path / "v.h5ad"
    anndata.AnnData(np.ones((2, 3), np.float32)).write_h5ad(file)
    with h5py.File(file, "a") as opened:
        del opened["var/_index"]
        opened["var/_index"] = h5py.SoftLink("/")
    refused(file, "its texts, ValueError: /var/_index holds no names")
