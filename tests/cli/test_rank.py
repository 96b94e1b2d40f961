# SPDX-License-Identifier: BSD-3-Clause
"""`sipower rank`: its files, its resumption, its way to write ranks."""

import re

import numpy as np
import pandas as pd
import pytest

from cli.calls import call, events
from sipower.cli.rank import parse_ranks


def test_rank_writes_what_it_found_and_goes_on(counts):
    result = call("rank", "counts.csv", "-k", "1:5", "-o", "ranks", "--replicates", 2)
    assert "10 fits: about" in result.stdout
    assert re.search(r"K = \d+ predicts unseen counts", result.stdout)
    table = pd.read_csv("ranks/rank.csv")
    assert table["rank"].tolist() == [1, 2, 3, 4, 5]
    errors = table[["error of replicate 1", "error of replicate 2"]]
    np.testing.assert_allclose(table["mean error"], errors.mean(axis=1), rtol=1e-12)
    assert list(table)[:3] == ["rank", "mean error", "stability"]
    assert (counts / "ranks" / "rank.png").stat().st_size > 10_000
    again = events(
        call("rank", "counts.csv", "-k", "1:5", "-o", "ranks", "--replicates", 2, "--json")
    )
    fits = [event for event in again if event["event"] == "fit"]
    assert len(fits) == 2  # each replicate is found finished at once
    result = call("rank", "counts.csv", "-k", "1:6", "-o", "ranks", code=2)
    assert "fits of another task" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", [7]), ("5,10,5", [5, 10]), ("3:6", [3, 4, 5, 6]), ("5:20:5", [5, 10, 15, 20])],
)
def test_ranks_are_read(text, expected):
    assert parse_ranks(text) == expected


@pytest.mark.parametrize("text", ["", "0:3", "a", "3:1", "1:2:3:4", "5:10:0", "-2"])
def test_nonsense_ranks_are_refused(text):
    with pytest.raises(ValueError, match="expected numbers of components such as"):
        parse_ranks(text)
