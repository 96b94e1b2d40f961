# SPDX-License-Identifier: BSD-3-Clause
"""Tables that hold no counts are refused with the line or row."""

import re

import numpy as np
import pandas as pd
import pytest

from reading import LONG, WIDE, held, refused
from sipower.io import ReadError, read
from sipower.io.item_values import Items, read_item_values


@pytest.mark.parametrize(
    ("text", "bad", "message"),
    [
        (WIDE, WIDE.replace("5", "five"), r"line 3, column 'b': 'five' is not a finite number"),
        (WIDE, WIDE.replace("5", "nan"), r"line 3, column 'b': 'nan' is not a finite number"),
        (WIDE, WIDE.replace("5", "NA"), r"line 3, column 'b': 'NA' is not a finite number"),
        (WIDE, WIDE.replace("5", "-inf"), r"line 3, column 'b': '-inf' is not a finite number"),
        (WIDE, WIDE.replace("5", ""), r"line 3, column 'b': a count is missing"),
        (WIDE, WIDE.replace("5", "True"), r"line 3, column 'b': 'True' is not a finite number"),
        (WIDE, WIDE.replace("5", "-5"), r"line 3, column 'b': the count -5 is negative"),
        (WIDE, WIDE.replace("4,5", "4"), r"line 3, has 3 cells, expected 4"),
        (WIDE, WIDE.replace("4,5", "4,5,5"), r"line 3, has 5 cells, expected 4"),
        (WIDE, WIDE.replace(",a,b", ""), r"line 2, has 4 cells, expected 2"),
        (WIDE, "name,a\n", r"has headings and no rows"),
        (WIDE, "\n\n", r"line 1, is empty, expected headings"),
        (WIDE, "name\ns1\ns2\n", r"has names of samples and no counts"),
        (LONG, LONG.replace("2\n", "x\n"), r"line 3, column 'count': 'x' is not a finite number"),
        (LONG, LONG.replace("s2", "s1"), r"line 4, has the same sample and feature as line 2"),
        (LONG, LONG.replace("b,", "b,,"), r"line 3, has 4 cells, expected 3"),
    ],
)
def test_tables(tmp_path, text, bad, message) -> None:
    file = tmp_path / "v.csv"
    file.write_text(text)
    read(file)
    file.write_text(bad)
    refused(file, message)


ENDS = r"ends with a comma: remove it from the end of every line\.$"
MADE_OF = r"is written with a (narrow )?no-break space \(U\+(00A0|202F)\); remove it\.$"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (WIDE.replace("\n", ",\n"), rf"line 1, {ENDS}"),
        (WIDE.replace("3\n", "3,\n").replace("6\n", "6,\n"), rf"line 2, {ENDS}"),
        (WIDE.replace("6\n", "6,\n"), rf"line 3, {ENDS}"),
        (WIDE.replace("c\n", "c,\n"), rf"line 1, {ENDS}"),
        (LONG.replace("\n", ",\n"), rf"line 1, {ENDS}"),
        (
            LONG.replace("1\n", "1,\n").replace("2\n", "2,\n").replace("3\n", "3,\n"),
            rf"line 2, {ENDS}",
        ),
        ("1;2;\n3;4;\n", r"line 1, ends with a semicolon"),
        (WIDE.replace("5", "\u00a05"), rf"line 3, column 'b': the number 5 {MADE_OF}"),
        (WIDE.replace("5", "5\u202f000"), rf"line 3, column 'b': the number 5000 {MADE_OF}"),
        ("n,a\ns,\u00a05\nt,\u00a06\n", rf"line 2, column 'a': the number 5 {MADE_OF}"),
        (WIDE.replace("s2", ""), r"line 3, has an empty sample name: name the sample, or drop"),
        (WIDE.replace("s2", "  "), r"line 3, has an empty sample name: name the sample, or drop"),
        (WIDE.replace("b", ""), r"column 3, has an empty heading: name the feature\.$"),
        (LONG.replace("s2", ""), r"line 4, has an empty sample or feature name: name it, or drop"),
        (LONG.replace("b", ""), r"line 3, has an empty sample or feature name: name it, or drop"),
        (WIDE.replace("b", "b" * 2**20), r"line 1, has a cell of more than 131,072 characters: "),
        (WIDE.replace("5", "5" * 2**20), r"line 3, has a cell of more than 131,072 characters: "),
    ],
)
def test_what_programs_and_people_leave_in_tables(tmp_path, bad, message) -> None:
    file = tmp_path / "v.csv"
    file.write_text(bad, encoding="utf-8")
    with pytest.raises(ReadError, match=rf"v\.csv, .*{message}") as caught:
        read(file)
    assert len(str(caught.value)) < 300 + len(str(file))


def test_a_blank_line_of_one_column_is_a_row(tmp_path) -> None:
    """It was dropped, and the rows below moved up."""
    file = tmp_path / "v.csv"
    file.write_text("a\n1\n\n3\n")
    refused(file, r"line 3, column 'a': a count is missing\.$")
    file.write_text("1\n3\n  \n5\n")
    refused(file, r"line 3, column 1: a count is missing\.$")
    file.write_text("a\n1\n3\n\n \n\n")  # editors add empty lines to the end
    assert held(read(file)).tolist() == [[1], [3]]
    file.write_text('text\ngood film\n\n""\nbad film\n""\n\n')
    table = read(file, text_column="text")
    assert held(table).tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 0], [0, 0, 0]]
    file.write_text("factor\n1\n\n3\n")
    with pytest.raises(ReadError, match="the value '' of sample 1 is not a number"):
        read_item_values(file).align_numbers(Items("sample", 3))


BIG = 2**53 + 1


@pytest.mark.parametrize("other", ["4", "4.5", f"{2**63 + 1}"])
@pytest.mark.parametrize("text", [WIDE, WIDE.replace("name,", "").replace("s2", "7"), LONG])
def test_whole_numbers_that_would_be_rounded_are_refused(tmp_path, text, other) -> None:
    """Beyond 2^53 float64 has only every other one."""
    file = tmp_path / "v.csv"
    cell = "5" if "5" in text else "3"
    file.write_text(text.replace(cell, str(BIG)).replace("1\n", f"{other}\n"))
    where = r"line \d, column '\w+'"
    refused(file, rf"{where}: the count \d+ is a whole number beyond 2\^53, which float64 would ")
    file.write_text(text.replace(cell, str(BIG - 1)))
    assert float(held(read(file)).max()) == BIG - 1
    file.write_text(text.replace(cell, "9.007199254740993e15"))  # whoever writes it so accepts it
    assert float(held(read(file)).max()) == BIG - 1


@pytest.mark.parametrize("kind", ["int64", "Int64", "uint64", "uint64[pyarrow]"])
def test_whole_numbers_of_parquet_that_would_be_rounded(tmp_path, kind) -> None:
    file = tmp_path / "v.parquet"
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": pd.Series([3, BIG], dtype=kind)})
    frame.to_parquet(file)
    refused(file, rf"row 2, column 'b': the count {BIG} is a whole number beyond 2\^53")


def test_a_negative_count_in_a_first_column_makes_it_no_names(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text("a,b\n1,2\n-3,4\n5,6\n")
    refused(file, r"line 3, column 'a': the count -3 is negative")


def test_a_count_of_400_digits_is_none(tmp_path) -> None:
    """pandas 3.1 makes a Python number of it, which is no float."""
    file = tmp_path / "v.csv"
    file.write_text(f",a\ns,2\nt,1{'0' * 400}\n")
    refused(file, r"line 3, column 'a': '10+…' is not a finite number")


def test_an_exponent_of_many_digits_ends_in_a_sentence(tmp_path) -> None:
    """pandas.to_numeric reads beyond its memory there."""
    file = tmp_path / "v.csv"
    file.write_text(f",a\ns,2\nt,{'9' * 300}1e400{'9' * 100}\n")
    refused(file, r"line 3, column 'a': '9+…' is not a finite number")


def test_lists_in_parquet_are_no_counts(tmp_path) -> None:
    file = tmp_path / "v.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "b": [[1], [2, 3]]}).to_parquet(file)
    refused(file, "column 'b': lists and structures are not counts")


def test_fixed_texts_in_parquet_may_not_unpack_to_more_than_memory(tmp_path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "v.parquet"
    names = arrow.array([b"x" * 1_000_000] * 20, arrow.binary(1_000_000))
    table = arrow.table({"s": names, "n": [1] * 20})
    with parquet.ParquetWriter(file, table.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(table)
    refused(file, r"declares 400006400 bytes and stores")


@pytest.mark.parametrize("kind", [np.nan, np.inf, -1.0])
def test_parquet_says_the_row(tmp_path, kind) -> None:
    file = tmp_path / "v.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, kind]}).to_parquet(file)
    refused(file, rf"row 2, column 'b': .*{re.escape(str(kind))}")
    pd.DataFrame({"s": ["x", None], "f": ["u", "v"], "n": [1, 2]}).to_parquet(file)
    refused(file, "row 2, has an empty sample or feature name")


def test_wrong_encoding_says_the_line(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_bytes(WIDE.replace("s2", "sé").encode("latin-1"))
    refused(file, "line 3, is not UTF-8 text: save the file as UTF-8")
    file.write_bytes(WIDE.encode("utf-16"))
    refused(file, "line 1, is not UTF-8 text")


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


def test_digits_of_other_scripts_are_no_counts(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(LONG.replace(",3", ",٣"), encoding="utf-8")
    refused(file, "line 4, column 'count': '٣' is not a finite number", layout="long")


def test_a_parquet_table_without_rows_gets_one_sentence(tmp_path):
    file = tmp_path / "empty.parquet"
    pd.DataFrame({"a": np.array([], float), "b": np.array([], float)}).to_parquet(file)
    refused(file, "holds no counts: it has 0 rows and 2 columns")
