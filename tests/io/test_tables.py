# SPDX-License-Identifier: BSD-3-Clause
"""Tables in csv, tsv and parquet are read as other programs write them."""

import numpy as np
import pandas as pd
import pytest

from reading import CELLS, GENES, V, assert_read, held, wide
from sipower.io import read


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "tsv.gz", "txt"])
@pytest.mark.parametrize("heading", [None, "cell"])
def test_wide_texts(tmp_path, ending, heading) -> None:
    file = tmp_path / f"v.{ending}"
    wide(name=heading).to_csv(file, sep="," if "csv" in ending else "\t")
    table = read(file)
    assert_read(table)
    assert isinstance(table.counts, np.ndarray)
    assert table.counts.dtype == np.int64
    assert table.remarks == ()


def test_wide_texts_of_other_programs(tmp_path) -> None:
    by_r = wide().to_csv(sep="\t").removeprefix("\t")  # R writes no heading over the names
    (tmp_path / "r.tsv").write_text(by_r)
    assert_read(read(tmp_path / "r.tsv"))
    by_excel = "\ufeff" + wide().to_csv(sep=";", lineterminator="\r\n")
    (tmp_path / "excel.csv").write_text(by_excel, encoding="utf-8", newline="")
    assert_read(read(tmp_path / "excel.csv"))


def test_names_stay_as_they_are_written(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(',a,a,"b,c"\n007,1,2,3\n1e3,4,5,6\n')
    table = read(file)
    assert (table.samples, table.features) == (("007", "1e3"), ("a", "a (2)", "b,c"))
    assert held(table).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_wide_without_names(tmp_path) -> None:
    wide().to_csv(tmp_path / "v.csv", index=False)
    table = read(tmp_path / "v.csv")
    assert_read(table, names=False)
    assert (table.samples, table.features) == (None, GENES)
    np.savetxt(tmp_path / "bare.csv", V, delimiter=",", fmt="%g")
    table = read(tmp_path / "bare.csv")
    assert_read(table, names=False)
    assert (table.samples, table.features) == (None, None)
    assert "numbers only and was read as counts" in table.remarks[0]


def test_columns_that_may_be_names_are_remarked(tmp_path) -> None:
    (tmp_path / "v.csv").write_text("id,a,b,c\n" + "".join(f"{i},0,1,2\n" for i in range(5)))
    table = read(tmp_path / "v.csv")
    assert table.counts.shape == (5, 4)
    assert "counts up by one" in table.remarks[0]


@pytest.mark.parametrize("heading", ["id", "cell_id", "Unnamed: 0", "Barcode", "index"])
def test_a_heading_of_names_over_numbers_is_remarked(tmp_path, heading) -> None:
    text = f"{heading},a,b,c\n" + "".join(f"{7 * i % 5},0,1,2\n" for i in range(5))
    (tmp_path / "v.csv").write_text(text)
    assert f"is headed {heading} and was read as counts" in read(tmp_path / "v.csv").remarks[0]
    (tmp_path / "v.csv").write_text(text.replace(heading, "acid"))
    assert read(tmp_path / "v.csv").remarks == ()
    (tmp_path / "w.csv").write_text("s1,0,1,2\ns2,3,4,5\n")
    assert "was read as headings" in read(tmp_path / "w.csv").remarks[0]


def long() -> pd.DataFrame:
    i, j = np.nonzero(V)
    unique = ("Xkr4", "Gm1992", "Sox17", "Mrpl15")
    cells, genes = [CELLS[at] for at in i], [unique[at] for at in j]
    return pd.DataFrame({"cell": cells, "gene": genes, "count": V[i, j]})


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "parquet"])
def test_long_tables(tmp_path, ending) -> None:
    file = tmp_path / f"v.{ending}"
    if ending == "parquet":
        long().to_parquet(file)
    else:
        long().to_csv(file, index=False, sep="," if ending == "csv" else "\t")
    table = read(file)
    frame = pd.DataFrame(held(table), index=table.samples, columns=table.features)
    expected = long().pivot_table(index="cell", columns="gene", values="count", fill_value=0)
    assert (frame.loc[expected.index, expected.columns] == expected).all(axis=None)
    assert table.remarks == ()


def test_three_columns_of_numbers_are_wide_unless_told(tmp_path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,count\n007,10,3\n007,11,1\n9,10,2\n")
    table = read(file)
    assert table.counts.shape == (3, 3)
    assert "set the layout to long" in table.remarks[0]
    table = read(file, layout="long")
    assert held(table).tolist() == [[3, 1], [2, 0]]
    assert (table.samples, table.features) == (("007", "9"), ("10", "11"))


@pytest.mark.parametrize("kind", [np.int32, np.float32, "Int64", "uint8[pyarrow]"])
def test_wide_parquet(tmp_path, kind) -> None:
    counts = np.minimum(V, 200)
    frame = pd.DataFrame(counts, index=CELLS, columns=["a", "b", "c", "d"]).astype(kind)
    frame.to_parquet(tmp_path / "v.parquet")
    table = read(tmp_path / "v.parquet")
    assert_read(table, counts, names=False)
    assert (table.samples, table.features) == (CELLS, ("a", "b", "c", "d"))
    frame.to_parquet(tmp_path / "bare.parquet", index=False)
    assert read(tmp_path / "bare.parquet").samples is None


def test_features_that_repeat_are_numbered_where_there_are_no_ids(tmp_path) -> None:
    (tmp_path / "v.csv").write_text("cell,a,a\nx,1,2\nx,3,4\n")
    table = read(tmp_path / "v.csv", layout="wide")
    assert (table.samples, table.features) == (("x", "x"), ("a", "a (2)"))
