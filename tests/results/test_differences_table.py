# SPDX-License-Identifier: BSD-3-Clause
"""Tables of differences are read as they were written, and damaged ones are refused."""

import json

import numpy as np
import pandas as pd
import pytest

from results.differences import example
from sipower.inference.fold_changes import CONTRASTS
from sipower.results.differences_table import COLUMNS, read_differences, write_differences

ARRAYS = ("log2_fold_change", "standard_error", "posterior_mean", "lower", "upper", "lfsr",
          "against", "pairs", "counts", "shrinkage_gaps")  # fmt: skip


@pytest.mark.parametrize("contrast", CONTRASTS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_are_read_as_written(tmp_path, contrast, ending):
    for named in (True, False):
        differences = example(contrast, named=named)
        files = write_differences(differences, tmp_path / "new" / f"table.{ending}")
        assert [file.name for file in files] == [f"table.{ending}", "table.json"]
        read = read_differences(files[0])
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(read, name), getattr(differences, name), name)
        np.testing.assert_allclose(read.profiles, differences.profiles, rtol=1e-12)
        assert read.to_frame().equals(differences.to_frame())
        assert repr(read) == repr(differences)
        assert str(read.replication) == str(differences.replication)
        assert (read.features is None) == (not named)


def test_columns_are_stable(tmp_path):
    table, _ = write_differences(example(), tmp_path / "table.csv")
    assert tuple(pd.read_csv(table).columns) == COLUMNS
    assert COLUMNS == (
        "feature", "contrast", "against", "counts", "share", "log2_fold_change", "standard_error",
        "z", "posterior_mean", "lower", "upper", "lfsr",
    )  # fmt: skip


def test_names_are_kept(tmp_path):
    names = ["NA", "nan", "1e5", "", 'a "quoted", name', "two\nlines", "return\r", " space "]
    differences = example(names=names)
    for ending in ("csv", "parquet"):
        file, _ = write_differences(differences, tmp_path / f"table.{ending}")
        assert list(read_differences(file).features) == names
    with pytest.raises(ValueError, match=r"cannot hold the name 'a\\x00', which contains NUL"):
        write_differences(example(names=["a\0", *names[1:]]), tmp_path / "table.csv")
    assert list(read_differences(tmp_path / "table.csv").features) == names


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"table\.txt must end in \.csv or \.parquet"):
        write_differences(example(), tmp_path / "table.txt")
    with pytest.raises(ValueError, match=r"table\.csv does not exist"):
        read_differences(tmp_path / "table.csv")
    table, beside = write_differences(example(), tmp_path / "table.csv")
    text, facts = table.read_text(), json.loads(beside.read_text())
    changes = [
        {"format": "7"}, {"format": None}, {"pairs": [[9, -1]] * 3}, {"features": 5}, {"level": 0},
        {"contrast": "none"}, {"components": ["a", "b", "c"]}, {"replication": 3},
    ]  # fmt: skip
    for change in changes:
        beside.write_text(json.dumps(facts | change))
        with pytest.raises(ValueError, match=r"table\.csv or table\.json is damaged \("):
            read_differences(table)
    for broken in ("[]", "{", ""):
        beside.write_text(broken)
        with pytest.raises(ValueError, match="is damaged"):
            read_differences(table)
    beside.write_text(json.dumps(facts))
    lines = text.splitlines(keepends=True)
    tables = [lines[:-1], lines[1:], [lines[0], *lines[2:], "x" * 50]]
    for broken in ("".join(part) for part in tables):
        table.write_text(broken)
        with pytest.raises(ValueError, match="is damaged"):
            read_differences(table)
    beside.unlink()
    with pytest.raises(ValueError, match=r"table\.json does not exist"):
        read_differences(table)
