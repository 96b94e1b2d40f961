# SPDX-License-Identifier: BSD-3-Clause
"""Matrix Market files and folders of 10x: what is read, and what is refused with its line."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import mmwrite

from reading import BANNER, CELLS, GENES, MARKET, V, assert_read, compress, held, refused
from sipower.io import ReadError, read


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("value", [np.int32, np.float64])
@pytest.mark.parametrize("shape", [sparse.coo_array, np.asarray])
def test_matrix_market_is_read_as_written(tmp_path, shape, value, packed) -> None:
    file = tmp_path / "counts.mtx"
    mmwrite(file, shape(V.astype(value)), comment="a comment\nof two lines")
    table = read(compress(file) if packed else file)
    assert_read(table, names=False)
    assert (table.samples, table.features, table.remarks) == (None, None, ())
    assert held(table).dtype == value


def test_matrix_market_symmetric_and_pattern(tmp_path) -> None:
    square = V[:, :3] + V[:, :3].T
    mmwrite(tmp_path / "symmetric.mtx", sparse.coo_array(square), symmetry="symmetric")
    assert_read(read(tmp_path / "symmetric.mtx"), square, names=False)
    mmwrite(tmp_path / "pattern.mtx", sparse.coo_array(V), field="pattern")
    assert_read(read(tmp_path / "pattern.mtx"), (V > 0).astype(int), names=False)


def write_10x(folder: Path, matrix: NDArray, features: str, prefix: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / f"{prefix}matrix.mtx"
    mmwrite(file, sparse.coo_array(matrix), field="integer")
    lines = [f"ENSMUSG{i:011}\t{gene}\tGene Expression" for i, gene in enumerate(GENES)]
    if features == "genes.tsv":
        lines = [line.rpartition("\t")[0] for line in lines]
    (folder / f"{prefix}{features}").write_text("\n".join(lines) + "\n")
    (folder / f"{prefix}barcodes.tsv").write_text("\n".join(CELLS) + "\n")
    return file


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("features", ["genes.tsv", "features.tsv"])
def test_folders_of_10x_become_cells_by_genes(tmp_path, features, packed) -> None:
    folder = tmp_path / "filtered_feature_bc_matrix"
    write_10x(folder, V.T, features)
    if packed:
        for file in list(folder.iterdir()):
            compress(file)
    assert_read(read(folder))
    assert read(folder).remarks == ()
    assert_read(read(next(folder.glob("matrix.mtx*"))))
    transposed = read(folder, transpose=True)
    np.testing.assert_array_equal(held(transposed), V.T)
    assert (transposed.samples, transposed.features) == (GENES, CELLS)
    assert transposed.remarks == ()


def test_files_with_a_prefix_find_their_own_names(tmp_path) -> None:
    assert_read(read(write_10x(tmp_path, V.T, "features.tsv", "GSM1_")))


def test_names_show_a_matrix_that_is_already_cells_by_genes(tmp_path) -> None:
    table = read(write_10x(tmp_path, V, "features.tsv"))
    assert_read(table)
    assert table.remarks == ("matrix.mtx was read as cells x genes to match the names beside it.",)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("2 1 7", "2 1 x7", r"line 5: 'x7' is not a finite number"),
        ("2 1 7", "2 1 nan", r"line 5: 'nan' is not a finite number"),
        ("2 1 7", "2 1 inf", r"line 5: 'inf' is not a finite number"),
        ("2 1 7", "2 1 -7", r"line 5: the count -7 is negative; KL-NMF needs non-negative data\.$"),
        ("2 1 7", "2 1 7.5", r"line 5: '7\.5' is not a whole number"),
        ("2 1 7", "2 1 1_0", r"line 5: '1_0' is not a finite number"),
        ("2 1 7", "2 1 99999999999999999999", r"line 5: '9+' is not a whole number of at most 18"),
        ("2 1 7", "4 1 7", r"line 5: the row 4 is outside 3 x 4"),
        ("2 1 7", "2 0 7", r"line 5: the column 0 is outside 3 x 4"),
        ("2 1 7", "-2 1 7", r"line 5: the row -2 is outside 3 x 4"),
        ("2 1 7", "99999999999 1 7", r"line 5: the row 99999999999 is outside 3 x 4"),
        ("2 1 7", "2.0 1 7", r"line 5: the row '2\.0' is not a whole number"),
        ("2 1 7", "2 1", r"line 5: 2 numbers in a line, expected 3"),
        ("2 1 7", "2 1 7 7", r"line 5: 4 numbers in a line, expected 3"),
        ("2 1 7", "1 2 7", r"line 5, has the same row and column as line 4: add up"),
        (
            "2 1 7\n",
            "\n2 1 7\n\n1 2 1\n",
            r"line 3, declares 3 counts and has more, from line 9 on",
        ),
        ("2 1 7\n", "", r"line 3, declares 3 counts and has 2 up to its end at line 5"),
        ("3 4 3", "3 4 4000000000000", r"line 3, declares 4000000000000 counts and has 3"),
        ("3 4 3", "4000000000 4 3", r"line 3, declares 4000000000 x 4 with 3 counts"),
        ("3 4 3", "3 4", r"line 3, is '3 4', expected 3 whole numbers for the size"),
        ("3 4 3", "3 4 -3", r"line 3, is '3 4 -3', expected 3 whole numbers"),
        ("integer", "complex", r"line 1, declares 'coordinate complex general'.*write the matrix"),
        ("general", "skew-symmetric", r"line 1, declares 'coordinate integer skew-symmetric'"),
        ("general", "symmetric", r"line 3: a symmetric matrix cannot be 3 x 4"),
        ("%%MatrixMarket", "%%Market", r"line 1, is '%%Market matrix.*begins with '%%MatrixMarket"),
        (MARKET.removeprefix(BANNER), "", r"line 1, is the end of the file, expected 3 whole"),
    ],
)
def test_a_bad_line_is_named(tmp_path, good, bad, message) -> None:
    file = tmp_path / "v.mtx"
    file.write_text(MARKET.replace(good, bad, 1))
    refused(file, message)
    packed = tmp_path / "v.mtx.gz"
    packed.write_bytes(gzip.compress(file.read_bytes().replace(b"\n", b"\r\n")))
    refused(packed, message)


@pytest.mark.parametrize("value", ["1,5", "1.5D+03", "0x18", "1/2", "1.5 7", "1.5x", "1e400"])
def test_what_scipy_would_cut_off_a_fraction_is_refused(tmp_path, value) -> None:
    file = tmp_path / "v.mtx"
    file.write_text(MARKET.replace("integer", "real").replace("2 1 7", f"2 1 {value}"))
    refused(file, r"line 5: ('.*' is not a finite number|4 numbers in a line, expected 3)")


@pytest.mark.parametrize("text", ["1 2 5\n2 1 1.5\n", "1 2 5\n2 1 1e3\n", "1 2 5 9\n2 1 7\n"])
def test_what_scipy_would_cut_off_an_integer_is_refused_beside_regular_lines(tmp_path, text):
    file = tmp_path / "v.mtx"
    regular = "".join(f"{i} 3 4\n" for i in range(1, 999))
    file.write_text(f"{BANNER}999 4 1000\n{regular}{text}")
    refused(file, r"line 100[12]: ('1\.5'|'1e3' is not a whole|4 numbers in a line)")


def test_duplicates_of_a_symmetric_matrix_are_found_across_the_diagonal(tmp_path) -> None:
    file = tmp_path / "v.mtx"
    text = BANNER.replace("general", "symmetric") + "3 3 3\n1 1 5\n3 2 7\n2 3 1\n"
    file.write_text(text)
    refused(file, "line 5, has the same row and column as line 4")


def test_a_last_line_without_end_is_remarked(tmp_path) -> None:
    file = tmp_path / "v.mtx"
    file.write_text(MARKET.removesuffix("\n"))
    assert read(file).counts.sum() == 13
    assert "does not end" in read(file).remarks[0]


def write_small_10x(folder: Path) -> None:
    (folder / "matrix.mtx").write_text(MARKET)
    (folder / "barcodes.tsv").write_text("c1\nc2\nc3\nc4\n")
    (folder / "features.tsv").write_text("g1\tG1\ng2\tG2\ng3\tG3\n")


def test_folders(tmp_path) -> None:
    refused(tmp_path, "is not a 10x folder")
    write_small_10x(tmp_path)
    assert read(tmp_path).counts.shape == (4, 3)
    (tmp_path / "barcodes.tsv").write_text("c1\nc2\n")
    with pytest.raises(
        ReadError,
        match=r"is 3 x 4, but features\.tsv has 3 names and barcodes\.tsv has 2",
    ):
        read(tmp_path)
    (tmp_path / "barcodes.tsv").unlink()
    refused(tmp_path, "is not a 10x folder")


def test_a_long_word_in_a_banner_does_not_fill_the_sentence(tmp_path) -> None:
    file = tmp_path / "v.mtx"
    file.write_text(MARKET.replace("general", "x" * 5000))
    refused(file, r"declares 'coordinate integer x+…', which")
