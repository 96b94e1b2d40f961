# SPDX-License-Identifier: BSD-3-Clause
"""The published page: every row is computed again from the published table, by other code."""

import json
import re
import runpy
from collections import Counter
from importlib.resources import files
from pathlib import Path
from statistics import mean, median

import numpy as np
import pytest

from sipower.experiments import Run, execute
from sipower.experiments.methods import METHODS

PLACE = Path(__file__).parents[2] / "docs" / "reproduction"
MAKE = runpy.run_path(str(PLACE / "make.py"))
ROWS = MAKE["published_rows"]()
PAGE = (PLACE / "index.md").read_text(encoding="utf-8")
NAMES = {method.label: name for name, method in METHODS.items()}
KNOWN = json.loads((files("sipower.experiments") / "best_known.json").read_text("utf-8"))
SEEDS, FINALISTS, STARTS, SCREENING = 10, 6, 3, 0.15


def tables(title):
    """The cells of the rows of the tables under a heading."""
    (text,) = re.findall(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def claims():
    """The rows under every claim."""
    titles = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    return {title: tables(title) for title in titles if title != "Rules"}


# ---- the rules, transcribed ---------------------------------------------------------------------


def lowest(dataset):
    values = [v for r in ROWS if (r["problem"], r["dataset"]) == ("nmf", dataset)
              for v in r["objective"] if v is not None]  # fmt: skip
    return min(*values, KNOWN[dataset]["value"])


LOWEST = {name: lowest(name) for name in {row["dataset"] for row in ROWS}}
MINIMA = {(r["dataset"], r["seed"]): r["objective"][0] for r in ROWS if r["method"] == "exact"}


def diverged(row):
    last = row["objective"][-1]
    return row["status"] == "not_finite" or last is None or last > row["objective"][0]


def errors(row):
    f = np.array(row["objective"], float)
    best = LOWEST[row["dataset"]]
    if row["problem"] == "subproblem":
        best = MINIMA[row["dataset"], row["seed"]]
    return np.maximum(np.abs(f - best) / abs(f[0] - best), 1e-15)


def error(row, at, axis):
    if diverged(row):
        return np.inf
    return np.exp(np.interp(at, row[axis], np.log(errors(row))))


def speed(a, b, axis):
    """Rule 2, on a grid of 100,000 costs instead of by formula."""
    if diverged(a) or diverged(b):
        return 1.0 if diverged(a) and diverged(b) else 0.0 if diverged(a) else np.inf
    end = min(a[axis][-1], b[axis][-1])
    last = [error(row, end, axis) for row in (a, b)]
    goal = max(*last, 1e-8 if a["problem"] == "subproblem" else 0.0)
    costs = []
    for row, at_end in zip((a, b), last, strict=True):
        grid = np.unique(np.concatenate([np.linspace(0, end, 100_000), np.array(row[axis])]))
        grid = grid[grid <= end]
        above = grid[error(row, grid, axis) > goal * (1 + 1e-12)]
        costs.append(end if at_end >= goal else above.max(initial=0.0))
    return costs[1] / max(costs[0], 1e-9)


# ---- the runs behind a row ----------------------------------------------------------------------


def horizon(problem, dataset):
    rows = [
        r for r in ROWS if (r["problem"], r["dataset"], r["method"]) == (problem, dataset, "mu")
    ]
    return rows[0]["max_passes"]


def kept(dataset, problem, label, form="the paper's"):
    """The parameters that the page says were kept, for methods that are tuned."""
    for line in tables("Tuning, and what it cost"):
        if (line[0].lower(), line[1], line[2], line[3]) == (dataset, problem, label, form):
            return line[-1]
    return ""


def settings(row):
    p = row["params"]
    if "form" in p:
        return p["form"].upper()
    if "batch" not in p:
        return ""
    batch, epoch = (tuple(v) if isinstance(v, list) else v for v in (p["batch"], p["epoch"]))
    return f"s/n = {batch}, m = {epoch}, η = {p['step']}"


FORMS = {
    "the paper's": {("vectors", "long"), ("elements", "both")},
    "both sides": {("vectors", "both")},
    "elements, one side": {("elements", "long")},
    "vectors": {("vectors", "both")},
}


def runs(dataset, problem, label, form="the paper's", wanted=None):
    """The runs to the horizon by seed."""
    wanted = kept(dataset, problem, label, form) if wanted is None else wanted
    return {
        row["seed"]: row
        for row in ROWS
        if (row["problem"], row["dataset"], row["method"]) == (problem, dataset, NAMES[label])
        and row["max_passes"] == horizon(problem, dataset)
        and settings(row) == wanted
        and ("scheme" not in row["params"]
             or (row["params"]["scheme"], row["params"]["sides"]) in FORMS[form])
    }  # fmt: skip


def assert_comparison(line, a, b):
    """Both verdicts' numbers of a row: median speed, wins, seeds."""
    seeds = sorted(a.keys() & b.keys())
    for numbers, axis in ((line[2], "passes"), (line[4], "seconds")):
        speeds = [speed(a[s], b[s], axis) for s in seeds]
        shown, wins, total = re.match(r"(.*) \((\d+) of (\d+)", numbers).groups()
        assert int(total) == len(seeds)
        near = sum(abs(v - 1) < 1e-3 for v in speeds)
        assert abs(int(wins) - sum(v > 1 for v in speeds)) <= near
        number = {"never reached": 0.0, "reached by the former only": np.inf}.get(shown)
        assert median(speeds) == pytest.approx(float(shown) if number is None else number, rel=0.06)
        lost = sum(diverged(a[s]) for s in seeds)
        assert (f"{lost} diverged" in numbers) == (lost > 0)


# ---- the page -----------------------------------------------------------------------------------


def test_the_page_is_made_of_the_published_table():
    assert MAKE["text"]() == PAGE
    drawn = set(re.findall(r"\((\S+\.png)\)", PAGE))
    assert drawn == {picture.name for picture in PLACE.glob("*.png")}


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
    """Rules 3 to 5."""
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
                shown, wins, total = re.match(r"(.*) \((\d+) of (\d+)", numbers).groups()
                value = {"never reached": 0.0, "reached by the former only": np.inf}.get(shown)
                value = float(shown) if value is None else value
                assert word == f"**{verdict(int(wins) / int(total), [value], title)}**", line


def limits(dataset):
    full = runs(dataset, "nmf", "F-SCI-PI").values()
    passes = horizon("nmf", dataset)
    return passes, median(np.interp(passes, r["passes"], r["seconds"]) for r in full)


@pytest.mark.parametrize(
    "title",
    [
        "S-SCI-PI is robust to the batch and the length of an epoch",
        "S-SCI-PI improves remarkably over F-SCI-PI on WT",
    ],
)
def test_the_errors_of_the_boxplots_follow_from_the_runs(title):
    for line in tables(title):
        dataset = line[0].lower()
        ends = limits(dataset)
        for numbers, axis, end in ((line[2], "passes", ends[0]), (line[4], "seconds", ends[1])):
            settings_shown = re.findall(r"\(([\d.e-]+), (\d+), ([\d.]+)\) ([\d.e-]+)", numbers)
            assert len(settings_shown) == 9
            medians = []
            for batch, epoch, step, shown in settings_shown:
                wanted = f"s/n = {float(batch)}, m = {epoch}, η = {float(step)}"
                found = runs(dataset, "nmf", "S-SCI-PI", wanted=wanted)
                assert len(found) == SEEDS
                medians.append(median(error(row, end, axis) for row in found.values()))
                assert medians[-1] == pytest.approx(float(shown), rel=0.06)
            full = runs(dataset, "nmf", "F-SCI-PI").values()
            reference = median(error(row, end, axis) for row in full)
            (shown,) = re.findall(r"F-SCI-PI ([\d.e-]+) ", numbers)
            assert reference == pytest.approx(float(shown), rel=0.06)
            if "robust" in title:
                (shown,) = re.findall(r"largest over smallest ([\d.e+]+)", numbers)
                assert max(medians) / min(medians) == pytest.approx(float(shown), rel=0.06)
            else:
                number = sum(reference / value >= 1.5 for value in medians)
                assert f"for {number} of 9 pairs" in numbers


def test_the_spread_over_the_starts_follows_from_the_runs():
    lines = tables("S-SCI-PI is robust to the random start")
    assert len(lines) == 7
    for line in lines:
        dataset = line[0].lower()
        found, ends = runs(dataset, "nmf", "S-SCI-PI"), limits(dataset)
        for numbers, axis, end in ((line[2], "passes", ends[0]), (line[4], "seconds", ends[1])):
            low, high = np.quantile(
                [error(row, end, axis) for row in found.values()], (0.1, 0.9), method="nearest"
            )
            assert numbers == f"{high / low:.2g} ({SEEDS})"


def test_the_shares_of_negative_entries_follow_from_the_runs():
    lines = tables("Variance-reduced gradients have negative entries")
    assert {line[0].partition(":")[0] for line in lines} == {"WT", "NIPS", "KOS", "MITF"}
    for line in lines:
        dataset, _, wanted = line[0].partition(": ")
        shares = [
            row["objective"][-1]
            for row in ROWS
            if (row["problem"], row["dataset"]) == ("signs", dataset.lower())
            and f"s/n = {row['params']['batch']:g}, m = {row['params']['epoch']}, "
            f"η = {row['params']['step']:g}"
            == wanted
        ]
        text = f"{100 * min(shares):.2g} to {100 * max(shares):.2g} % ({len(shares)} seeds)"
        assert line[2] == text


def test_the_fits_of_a_linear_rate_follow_from_the_runs():
    for line in tables("S-SCI-PI converges linearly"):
        found = runs(line[0].lower(), "subproblem", "S-SCI-PI")
        for numbers, axis in ((line[2], "passes"), (line[4], "seconds")):
            fits = []
            for row in found.values():
                e, x = errors(row), np.array(row[axis])
                late = (e < 0.1) & (e > 1e-8) & (x > 0)
                if late.sum() >= 5 and e[late].max() >= 1e3 * e[late].min():
                    x, y = x[late], np.log(e[late])
                    residuals = [np.polyfit(u, y, 1, full=True)[1][0] for u in (x, np.log(x))]
                    fits.append([1 - r / ((y - y.mean()) ** 2).sum() for r in residuals])
            line_fit, power_fit = (median(fit[i] for fit in fits) for i in (0, 1))
            assert numbers == f"R² {line_fit:.3f} and {power_fit:.3f} ({len(fits)} seeds)"


def test_errors_and_costs_follow_from_the_runs():
    lines = tables("Errors and costs, medians over the seeds")
    assert len(lines) == 7 * 9
    for dataset, label, at_passes, at_seconds, cost, seeds in lines:
        found, ends = runs(dataset.lower(), "nmf", label), limits(dataset.lower())
        assert len(found) == int(seeds)
        for shown, axis, end in ((at_passes, "passes", ends[0]), (at_seconds, "seconds", ends[1])):
            value = median(error(row, end, axis) for row in found.values())
            assert value == pytest.approx(float(shown), rel=0.06)
        full = runs(dataset.lower(), "nmf", "F-SCI-PI")
        costs = [
            median(r["seconds"][-1] / r["passes"][-1] for r in g.values()) for g in (found, full)
        ]
        assert f"{costs[0] / costs[1]:.2f}" == cost


def cost_to(row, goal, axis):
    """Cost from which on the error is at most the goal, on a grid."""
    if diverged(row):
        return np.inf
    grid = np.linspace(0, row[axis][-1], 100_000)
    grid = np.unique(np.concatenate([grid, np.array(row[axis])]))
    above = grid[error(row, grid, axis) > goal * (1 + 1e-12)]
    return np.inf if above[-1] == grid[-1] else above[-1]


def test_speeds_at_several_errors_follow_from_the_runs():
    lines = tables("Speed relative to F-SCI-PI at several errors")
    assert len(lines) == 7 * 2 * 2
    for dataset, label, axis, *shown in lines:
        a, b = (runs(dataset.lower(), "nmf", name) for name in (label, "F-SCI-PI"))
        for text, goal in zip(shown, (0.5, 0.2, 0.1, 0.05, 0.02), strict=True):
            costs = [(cost_to(a[s], goal, axis), cost_to(b[s], goal, axis)) for s in sorted(a)]
            speeds = [
                0.0 if np.isinf(ours) else theirs / ours
                for ours, theirs in costs
                if np.isfinite([ours, theirs]).any()
            ]
            if not speeds:
                assert text == "never reached"
                continue
            number, total = re.match(r"(.*) \(\d+ of (\d+)", text).groups()
            assert int(total) == len(speeds)
            special = {"never reached": 0.0, "reached by the former only": np.inf}.get(number)
            expected = float(number) if special is None else special
            assert median(speeds) == pytest.approx(expected, rel=0.06)


def objective_at(row, passes):
    bad = row["status"] == "not_finite" or None in row["objective"]
    return np.inf if bad else np.interp(passes, row["passes"], row["objective"])


@pytest.mark.parametrize(
    "line", tables("Tuning, and what it cost"), ids=lambda line: " ".join(line[:4])
)
def test_what_was_kept_won_the_tuning(line):
    dataset, problem, label, form = line[0].lower(), line[1], line[2], line[3]
    end = horizon(problem, dataset)
    tried = [
        row
        for row in ROWS
        if (row["problem"], row["dataset"], row["method"]) == (problem, dataset, NAMES[label])
        and ("scheme" not in row["params"]
             or (row["params"]["scheme"], row["params"]["sides"]) in FORMS[form])
    ]  # fmt: skip
    short = {
        settings(row): objective_at(row, SCREENING * end)
        for row in tried
        if row["max_passes"] == pytest.approx(SCREENING * end)
    }
    finalists = sorted(short, key=short.get)[:FINALISTS] or sorted({settings(row) for row in tried})
    means = {
        point: mean(
            objective_at(row, end)
            for row in tried
            if settings(row) == point and row["max_passes"] == end and row["seed"] < STARTS
        )
        for point in finalists
    }
    assert min(means, key=means.get) == line[-1]
    assert int(line[4]) == len(short) + STARTS * len(finalists)
    assert len(runs(dataset, problem, label, form)) == SEEDS


def test_divergences_and_lowest_values_follow_from_the_runs():
    counts = Counter(
        (row["problem"], row["dataset"], row["method"])
        for row in ROWS
        if row["problem"] != "signs" and diverged(row)
    )
    shown = {
        (problem, dataset.lower(), NAMES[label]): int(count)
        for problem, dataset, label, count in tables(
            "Runs that diverged, those of the tuning included"
        )
    }
    assert shown == dict(counts)
    for dataset, value, _ in tables("f*, the lowest value known"):
        assert value == f"{LOWEST[dataset.lower()]:.2f}"
        assert KNOWN[dataset.lower()]["value"] <= LOWEST[dataset.lower()] * (1 + 1e-15)


def test_the_verdicts_are_counted():
    for axis, column in (("per pass", 1), ("per second", 3)):
        words = Counter(line[column].strip("*") for lines in claims().values() for line in lines)
        (line,) = [line for line in tables("The verdicts") if line[0] == axis]
        assert line[1:] == [str(words[v]) for v in ("reproduced", "mixed", "not reproduced")]


@pytest.mark.parametrize("method", ["s-sci-pi", "f-sci-pi", "mu", "pgd"])
def test_a_published_run_can_be_run_again(method):
    """The same objective at the same passes, on whatever processor this is."""
    row = next(
        row
        for row in ROWS
        if (row["dataset"], row["method"], row["seed"]) == ("pois1", method, 0)
        and row["status"] == "stopped"
    )
    params = {k: tuple(v) if isinstance(v, list) else v for k, v in row["params"].items()}
    again = execute(Run("nmf", "pois1", method, tuple(sorted(params.items())), 0, 30.0, 600.0))
    common = len(again["passes"]) - 1  # the last evaluation is where the run ends
    assert common >= 3
    assert again["passes"][:common] == row["passes"][:common]
    np.testing.assert_allclose(again["objective"][:common], row["objective"][:common], rtol=1e-8)
