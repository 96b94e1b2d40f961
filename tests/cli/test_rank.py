# SPDX-License-Identifier: BSD-3-Clause
"""`sipower rank`: its files, its resumption, its way to write ranks."""

import re

import pandas as pd
import pytest

from cli.calls import call, events
from sipower.cli.rank import parse_ranks, path_costs


def test_rank_writes_what_it_found_and_goes_on(counts):
    result = call("rank", "counts.csv", "-k", "1:5", "-o", "ranks", "--replicates", 2)
    assert "10 fits: about" in result.stdout
    assert re.search(r"K = \d+ predicts unseen counts", result.stdout)
    table = pd.read_csv("ranks/rank.csv")
    assert table["rank"].tolist() == [1, 2, 3, 4, 5]
    assert table["recommended"].sum() == 1
    assert {"standard error", "stability", "replicate 1", "replicate 2"} <= set(table.columns)
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


@pytest.mark.parametrize("text", ["", "a", "3:1", "1:2:3:4", "5:10:0"])
def test_nonsense_ranks_are_refused(text):
    with pytest.raises(ValueError, match="such as 20, 5,10,20, 2:8 or 5:50:5"):
        parse_ranks(text)


@pytest.mark.parametrize(("text", "lowest"), [("0:3", 0), ("-2", -2), ("4,0", 0)])
def test_ranks_begin_at_1(text, lowest):
    with pytest.raises(ValueError, match=f"-k {text}: K must be at least 1, got {lowest}"):
        parse_ranks(text)


def test_a_pipe_gets_a_few_lines_of_many_fits(counts):
    words = ("rank", "counts.csv", "-k", "1:7", "--replicates", 2, "-o", "ranks")
    lines = call(*words).stdout.splitlines()
    shown = [line.split(",")[0] for line in lines if "fits, about" in line]
    assert len(shown) == 5
    assert (shown[0], shown[-1]) == ("1 of 14 fits", "14 of 14 fits")


def test_one_rank_is_not_the_lowest_of_all(counts):
    result = call("rank", "counts.csv", "-k", 3, "--replicates", 2, "-o", "ranks")
    assert ", the only K tried;" in result.stdout
    assert "lowest" not in result.stdout


def test_costs_of_fits_follow_their_order():
    """Two replicates run at a time, then one alone, each from the largest rank down."""
    assert path_costs([2, 4], 3, 2) == [60, 60, 10, 10, 120, 20]


def test_a_dry_run_of_many_fits_writes_nothing(counts):
    before = sorted(counts.iterdir())
    assert "10 fits: about" in call("rank", "counts.csv", "-k", "1:5", "--replicates", 2,
                                    "--dry-run").stdout  # fmt: skip
    result = call("consensus", "counts.csv", "-k", 3, "--replicates", 4, "--dry-run", "--json")
    (estimate,) = [event for event in events(result) if event["event"] == "estimate"]
    low, high = estimate["seconds"]
    assert 0 < low < high
    assert sorted(counts.iterdir()) == before
