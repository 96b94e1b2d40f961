# SPDX-License-Identifier: BSD-3-Clause
"""Every other table of the published page follows from its runs, by independent code."""

import re
from statistics import mean, median

import numpy as np
import pytest

from experiments.published import (
    FINALISTS,
    FORMS,
    NAMES,
    ROWS,
    SCREENING,
    SEEDS,
    STARTS,
    error,
    errors,
    has_diverged,
    horizon,
    runs,
    settings,
    tables,
)


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
            for batch, epoch, step, printed in settings_shown:
                expected = f"s/n = {float(batch)}, m = {epoch}, η = {float(step)}"
                rows = runs(dataset, "nmf", "S-SCI-PI", chosen=expected)
                assert len(rows) == SEEDS
                medians.append(median(error(row, end, axis) for row in rows.values()))
                assert medians[-1] == pytest.approx(float(printed), rel=0.06)
            full = runs(dataset, "nmf", "F-SCI-PI").values()
            reference = median(error(row, end, axis) for row in full)
            (printed,) = re.findall(r"F-SCI-PI ([\d.e-]+) ", numbers)
            assert reference == pytest.approx(float(printed), rel=0.06)
            if "robust" in title:
                (printed,) = re.findall(r"largest over smallest ([\d.e+]+)", numbers)
                assert max(medians) / min(medians) == pytest.approx(float(printed), rel=0.06)
            else:
                number = sum(reference / value >= 1.5 for value in medians)
                assert f"for {number} of 9 pairs" in numbers


def test_the_spread_over_the_starts_follows_from_the_runs():
    lines = tables("S-SCI-PI is robust to the random start")
    assert len(lines) == 7
    for line in lines:
        dataset = line[0].lower()
        rows, ends = runs(dataset, "nmf", "S-SCI-PI"), limits(dataset)
        for numbers, axis, end in ((line[2], "passes", ends[0]), (line[4], "seconds", ends[1])):
            low, high = np.quantile(
                [error(row, end, axis) for row in rows.values()], (0.1, 0.9), method="nearest"
            )
            assert numbers == f"{high / low:.2g} ({SEEDS} seeds)"


def test_the_shares_of_negative_entries_follow_from_the_runs():
    lines = tables("Variance-reduced gradients have negative entries")
    assert {line[0].partition(":")[0] for line in lines} == {"WT", "NIPS", "KOS", "MITF"}
    for line in lines:
        dataset, _, problem = line[0].partition(": ")
        shares = [
            row["objective"][-1]
            for row in ROWS
            if (row["problem"], row["dataset"]) == ("signs", dataset.lower())
            and f"s/n = {row['params']['batch']:g}, m = {row['params']['epoch']}, "
            f"η = {row['params']['step']:g}"
            == problem
        ]
        text = f"{100 * min(shares):.2g} to {100 * max(shares):.2g} % ({len(shares)} seeds)"
        assert line[2] == text


def test_the_fits_of_a_linear_rate_follow_from_the_runs():
    for line in tables("S-SCI-PI converges linearly"):
        rows = runs(line[0].lower(), "subproblem", "S-SCI-PI")
        for numbers, axis in ((line[2], "passes"), (line[4], "seconds")):
            fits = []
            for row in rows.values():
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
        rows, ends = runs(dataset.lower(), "nmf", label), limits(dataset.lower())
        assert len(rows) == int(seeds)
        for printed, axis, end in (
            (at_passes, "passes", ends[0]),
            (at_seconds, "seconds", ends[1]),
        ):
            value = median(error(row, end, axis) for row in rows.values())
            assert value == pytest.approx(float(printed), rel=0.06)
        full = runs(dataset.lower(), "nmf", "F-SCI-PI")
        costs = [
            median(r["seconds"][-1] / r["passes"][-1] for r in g.values()) for g in (rows, full)
        ]
        assert f"{costs[0] / costs[1]:.2f}" == cost


def cost_to(row, goal, axis):
    """Return the cost after which the error stays at most the goal, on a grid."""
    if has_diverged(row):
        return np.inf
    grid = np.linspace(0, row[axis][-1], 100_000)
    grid = np.unique(np.concatenate([grid, np.array(row[axis])]))
    above = grid[error(row, grid, axis) > goal * (1 + 1e-12)]
    return np.inf if above[-1] == grid[-1] else above[-1]


def test_speeds_at_several_errors_follow_from_the_runs():
    lines = tables("Speed relative to F-SCI-PI at several errors")
    assert len(lines) == 7 * 2 * 2
    for dataset, label, axis, *printed in lines:
        a, b = (runs(dataset.lower(), "nmf", name) for name in (label, "F-SCI-PI"))
        for text, goal in zip(printed, (0.5, 0.2, 0.1, 0.05, 0.02), strict=True):
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
            special = {"never reached": 0.0, "reached by the first only": np.inf}.get(number)
            expected = float(number) if special is None else special
            assert median(speeds) == pytest.approx(expected, rel=0.06)


def objective_at(row, passes):
    bad = row["status"] == "not_finite" or None in row["objective"]
    return np.inf if bad else np.interp(passes, row["passes"], row["objective"])


@pytest.mark.parametrize("line", tables("Tuning and its cost"), ids=lambda line: " ".join(line[:4]))
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
