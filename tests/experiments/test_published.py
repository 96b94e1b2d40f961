# SPDX-License-Identifier: BSD-3-Clause
"""Every comparison on the published page follows from its table, by independent code."""

import json
import re
from collections import Counter
from statistics import median

import numpy as np
import pytest

from experiments.published import (
    BEST_KNOWN,
    FOLDER,
    LOWEST,
    MAKE,
    NAMES,
    PAGE,
    ROWS,
    claims,
    has_diverged,
    runs,
    speed,
    tables,
)
from sipower.experiments.run import execute
from sipower.experiments.table import PlannedRun


def assert_comparison(line, a, b):
    """Check the numbers of both verdicts of a row: median speed, wins, seeds."""
    seeds = sorted(a.keys() & b.keys())
    for numbers, axis in ((line[2], "passes"), (line[4], "seconds")):
        speeds = [speed(a[s], b[s], axis) for s in seeds]
        printed, wins, total = re.match(r"(.*) \((\d+) of (\d+)", numbers).groups()
        assert int(total) == len(seeds)
        near = sum(abs(v - 1) < 1e-3 for v in speeds)
        assert abs(int(wins) - sum(v > 1 for v in speeds)) <= near
        number = {"never reached": 0.0, "reached by the first only": np.inf}.get(printed)
        assert median(speeds) == pytest.approx(
            float(printed) if number is None else number, rel=0.06
        )
        n_diverged = sum(has_diverged(a[s]) for s in seeds)
        assert (f"{n_diverged} diverged" in numbers) == (n_diverged > 0)


# ---- the page -----------------------------------------------------------------------------------


def test_the_page_is_made_of_the_published_table():
    assert MAKE["text"]() == PAGE
    pictures = set(re.findall(r"\((\S+\.png)\)", PAGE))
    assert pictures == {picture.name for picture in FOLDER.glob("*.png")}


def test_all_runs_are_of_one_commit_and_none_is_there_twice():
    assert len({row["commit"] for row in ROWS}) == 1
    names = "problem", "dataset", "method", "params", "seed", "max_passes"
    keys = [json.dumps([row[name] for name in names], sort_keys=True) for row in ROWS]
    assert len(set(keys)) == len(keys)


COMPARISONS = [
    (title, line)
    for title, lines in {
        **claims(), "What the paper does not claim": tables("What the paper does not claim")
    }.items()
    for line in lines
    if " against " in line[0]
]  # fmt: skip


@pytest.mark.parametrize(
    ("title", "line"), COMPARISONS, ids=[f"{t}; {c[0]}" for t, c in COMPARISONS]
)
def test_every_comparison_follows_from_the_runs(title, line):
    dataset, _, rest = line[0].partition(": ")
    dataset = dataset.lower()
    sampled = {
        "the longer dimension": "both sides",
        "elements in both": "elements, one side",
        "elements against": "vectors",
    }
    form = next((form for start, form in sampled.items() if rest.startswith(start)), None)
    if form is not None:
        a = runs(dataset, "nmf", "S-SCI-PI")
        b = runs(dataset, "nmf", "S-SCI-PI", form)
    else:
        problem = "subproblem" if "subproblem" in title else "nmf"
        a, b = (runs(dataset, problem, label) for label in rest.split(" against "))
    assert a
    assert b
    assert_comparison(line, a, b)


def verdict(share, speeds, title):
    """Return the verdict by rules 3 to 5."""
    if " not " in title:
        return "not reproduced" if share >= 0.8 and median(speeds) > 1.1 else "reproduced"
    if share < 0.8:
        return "not reproduced" if share <= 0.2 else "mixed"
    return "mixed" if "much" in title and median(speeds) < 1.5 else "reproduced"


def test_every_verdict_on_speed_follows_from_its_numbers():
    for title, lines in claims().items():
        for line in lines:
            if " against " not in line[0]:
                continue
            for word, numbers in ((line[1], line[2]), (line[3], line[4])):
                printed, wins, total = re.match(r"(.*) \((\d+) of (\d+)", numbers).groups()
                value = {"never reached": 0.0, "reached by the first only": np.inf}.get(printed)
                value = float(printed) if value is None else value
                assert word == f"**{verdict(int(wins) / int(total), [value], title)}**", line


def test_divergences_and_lowest_values_follow_from_the_runs():
    counts = Counter(
        (row["problem"], row["dataset"], row["method"])
        for row in ROWS
        if row["problem"] != "signs" and has_diverged(row)
    )
    printed = {
        (problem, dataset.lower(), NAMES[label]): int(count)
        for problem, dataset, label, count in tables("Runs that diverged, tuning included")
    }
    assert printed == dict(counts)
    for dataset, value, _ in tables("f*, the lowest known value"):
        assert value == f"{LOWEST[dataset.lower()]:.2f}"
        assert BEST_KNOWN[dataset.lower()]["value"] <= LOWEST[dataset.lower()] * (1 + 1e-15)


def test_the_verdicts_are_counted():
    for axis, column in (("per pass", 1), ("per second", 3)):
        words = Counter(line[column].strip("*") for lines in claims().values() for line in lines)
        (line,) = [line for line in tables("The verdicts") if line[0] == axis]
        assert line[1:] == [str(words[v]) for v in ("reproduced", "mixed", "not reproduced")]
    total = sum(int(cell) for line in tables("The verdicts") for cell in line[1:])
    for text in (PAGE, (FOLDER.parent / "reproducing.md").read_text(encoding="utf-8")):
        assert re.findall(r"changed 1 of (\d+) verdicts", text) == [str(total)]


@pytest.mark.parametrize("method", ["s-sci-pi", "f-sci-pi", "mu", "pgd"])
def test_a_published_run_can_be_run_again(method):
    """The objective at the same passes does not depend on the processor."""
    row = next(
        row
        for row in ROWS
        if (row["dataset"], row["method"], row["seed"]) == ("pois1", method, 0)
        and row["status"] == "stopped"
    )
    params = {k: tuple(v) if isinstance(v, list) else v for k, v in row["params"].items()}
    new = execute(PlannedRun("nmf", "pois1", method, tuple(sorted(params.items())), 0, 30.0, 600.0))
    common = len(new["passes"]) - 1  # the last evaluation is where the run ends
    assert common >= 3
    assert new["passes"][:common] == row["passes"][:common]
    np.testing.assert_allclose(new["objective"][:common], row["objective"][:common], rtol=1e-8)
