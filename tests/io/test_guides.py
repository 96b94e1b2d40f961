# SPDX-License-Identifier: BSD-3-Clause
"""Guides: the same features from every format, and malformed files with their line."""

import gzip
import json
import re

import pandas as pd
import pytest

from sipower.io import ReadError, read_guides

GUIDES = {"T cell": {"CD3D": 1.0, "CD3E": 1.0}, "B cell": {"MS4A1": 1.0, "CD79A": 1.0}}
WEIGHTED = {"T cell": {"CD3D": 2.0, "CD3E": 0.5}, "B cell": {"MS4A1": 1.0}}
GMT = "T cell\tlymphocytes\tCD3D\tCD3E\t\nB cell\t\tMS4A1\tCD79A\n"
LONG = "guide,feature\nT cell,CD3D\nT cell,CD3E\nB cell,MS4A1\nB cell,CD79A\n"
LONG_WEIGHTED = "guide\tfeature\tweight\nT cell\tCD3D\t2\nT cell\tCD3E\t0.5\nB cell\tMS4A1\t1\n"
WIDE = "guide,CD3D,CD3E,MS4A1\nT cell,2,0.5,0\nB cell,,0,1\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("g.gmt", GMT, GUIDES),
        ("g.json", json.dumps({name: list(f) for name, f in GUIDES.items()}), GUIDES),
        ("g.json", json.dumps(WEIGHTED), WEIGHTED),
        ("g.csv", LONG, GUIDES),
        ("g.csv", LONG.partition("\n")[2], GUIDES),  # without headings
        ("g.tsv", LONG_WEIGHTED, WEIGHTED),
        ("g.csv", WIDE, WEIGHTED),
    ],
)
def test_every_format_has_the_same_guides(tmp_path, name, text, expected) -> None:
    (tmp_path / name).write_text(text)
    assert read_guides(tmp_path / name) == expected
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert read_guides(tmp_path / f"{name}.gz") == expected


def test_parquet(tmp_path) -> None:
    pytest.importorskip("pyarrow")
    rows = [(g, f, w) for g, weights in WEIGHTED.items() for f, w in weights.items()]
    pd.DataFrame(rows, columns=["g", "f", "w"]).to_parquet(tmp_path / "long.parquet")
    assert read_guides(tmp_path / "long.parquet") == WEIGHTED
    pd.DataFrame(WEIGHTED).T.fillna(0).to_parquet(tmp_path / "wide.parquet")
    assert read_guides(tmp_path / "wide.parquet") == WEIGHTED


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.gmt", "T cell\tonly a description\n", "line 1, must have a name, a description and"),
        ("g.gmt", GMT + "\n" + GMT.splitlines()[0], "line 4, repeats the guide 'T cell'"),
        ("g.gmt", "T cell CD3D CD3E\n", "line 1, must have .* separated by tabs"),
        ("g.gmt", "\n", "has no guides"),
        ("g.json", '{"T cell":\n ["CD3D",]}', "line 2, is not JSON"),
        ("g.json", '["CD3D"]', "must hold a JSON object"),
        ("g.json", '{"T cell": "CD3D"}', "guide 'T cell', must be a list of features"),
        ("g.json", '{"T cell": []}', "guide 'T cell', has no features"),
        ("g.json", '{"T cell": ["A"], "T cell": ["B"]}', "has the key 'T cell' twice"),
        ("g.json", '{"T cell": {"CD3D": -1}}', "feature 'CD3D': the weight -1 must be a positive"),
        ("g.json", '{"T cell": {"CD3D": true}}', "feature 'CD3D': the weight True must be"),
        ("g.csv", LONG + "T cell,\n", "line 6, has an empty guide or feature"),
        ("g.csv", LONG + "T cell,CD3D\n", "line 6, repeats 'CD3D' of 'T cell'"),
        ("g.tsv", LONG_WEIGHTED.replace("0.5", "x"), "line 3: the weight 'x' must be a positive"),
        ("g.csv", WIDE.replace("0.5", "-2"), "line 2, column 'CD3E': the weight '-2' must be"),
        ("g.csv", WIDE.replace("B cell", "T cell"), "line 3, must begin with the name of another"),
        ("g.csv", "guide,A,B,C\nx,0,0,0\n", "line 2, has no feature with a positive weight"),
        ("g.csv", "guide\nx\n", "must have headings, and columns of guides"),
        ("g.csv", LONG + "T cell\n", "line 6, has 1 cells, expected 2"),
        ("g.xlsx", "x", r"must end in \.gmt, \.json"),
    ],
)
def test_malformed_guides_are_refused_with_their_line(tmp_path, name, text, message) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ReadError, match=rf"{re.escape(str(file))}.*{message}"):
        read_guides(file)


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(ReadError, match=r"none\.gmt does not exist"):
        read_guides(tmp_path / "none.gmt")
