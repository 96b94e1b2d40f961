# SPDX-License-Identifier: BSD-3-Clause
"""Relative errors of runs after given passes or seconds, and the costs to reach given errors.

The error is defined as in the paper, |f − f*| / |f₀ − f*|. f* is the lowest known value or, for a
subproblem, the certified minimum. Between evaluations, the logarithm of the error is interpolated
linearly in passes or seconds. A run that diverged has the error ∞.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from importlib.resources import files
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower.experiments.budgets import REAL, SYNTHETIC, Budget
from sipower.experiments.protocol import Case, Protocol
from sipower.experiments.table import Row

Float = NDArray[np.float64]
SMALLEST_DROP, SMALLEST_ERROR, SMALLEST_COST = 1e-300, 1e-15, 1e-6  # avoid 1/0 and log 0


class Best(NamedTuple):
    """The lowest known objective, and the run that attained it."""

    value: float
    run: str


def select(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Return the rows whose named fields have these values."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def has_diverged(row: Row) -> bool:
    """Return whether a run became non-finite or ended above its starting value."""
    last = row["objective"][-1]
    return row["status"] == "not_finite" or last is None or last > row["objective"][0]


class Curves:
    """The errors of the runs in one results table.

    Parameters
    ----------
    rows
        Rows of the table.
    budget
        The budget of the runs, which determines the parameters that won the tuning.
    """

    def __init__(self, rows: list[Row], budget: Budget) -> None:
        self.rows = rows
        self.protocol = Protocol(budget, rows)
        present = {row["dataset"] for row in rows}
        self.real = [name for name in (*REAL, "docstrings") if name in present]
        self.synthetic = [name for name in SYNTHETIC if name in present]
        self.datasets = [*self.real, *self.synthetic]
        self.minima: dict[tuple[str, int], float] = {
            (row["dataset"], row["seed"]): row["objective"][0]
            for row in select(rows, problem="subproblem", method="exact")
        }
        text = files("sipower.experiments").joinpath("best_known.json").read_text("utf-8")
        self.best = {name: Best(**entry) for name, entry in json.loads(text).items()}
        for row in select(rows, problem="nmf"):
            value = min(v for v in row["objective"] if v is not None)
            if value < self.best.get(row["dataset"], Best(math.inf, "")).value:
                run = f"{row['method']}, seed {row['seed']}, {row['passes'][-1]:.0f} passes"
                self.best[row["dataset"]] = Best(value, f"{run}, commit {row['commit']}")

    def runs(
        self,
        problem: str,
        dataset: str,
        method: str,
        variant: str | None = None,
        pair: tuple[float, int] | None = None,
    ) -> dict[int, Row]:
        """Return, by seed, the runs of a method with the parameters that won its tuning.

        Runs on a subproblem whose certified minimum is not in the table are left out.
        """
        rows = self.protocol.replicates(Case(problem, dataset, method, variant, pair))
        if problem != "subproblem":
            return rows
        return {seed: row for seed, row in rows.items() if (dataset, seed) in self.minima}

    def runs_by_pair(self, dataset: str) -> dict[tuple[float, int], list[Row]]:
        """Return the runs of S-SCI-PI by pair (s/n, m); empty if F-SCI-PI has no runs."""
        if not self.runs("nmf", dataset, "f-sci-pi"):
            return {}
        runs = {
            pair: list(self.runs("nmf", dataset, "s-sci-pi", pair=pair).values())
            for pair in self.protocol.pairs(dataset)
        }
        return {pair: rows for pair, rows in runs.items() if rows}

    def error_limits(self, dataset: str) -> dict[str, float]:
        """Return the horizon in passes, and the median seconds in which F-SCI-PI reaches it."""
        full = self.runs("nmf", dataset, "f-sci-pi").values()
        passes = max(row["max_passes"] for row in full)
        seconds = median(float(np.interp(passes, row["passes"], row["seconds"])) for row in full)
        return {"passes": passes, "seconds": seconds}

    def errors(self, row: Row) -> Float:
        """Return |f − f*| / |f₀ − f*| at each evaluation; all are ∞ if the run diverged."""
        if has_diverged(row):
            return np.full(len(row["objective"]), np.inf)
        if row["problem"] == "subproblem":
            lowest = self.minima[row["dataset"], row["seed"]]
        else:
            lowest = self.best[row["dataset"]].value
        objective = np.array([np.inf if v is None else v for v in row["objective"]])
        drop = max(abs(objective[0] - lowest), SMALLEST_DROP)
        return np.asarray(np.maximum(np.abs(objective - lowest) / drop, SMALLEST_ERROR))

    def error_at(self, row: Row, cost: float, axis: str) -> float:
        """Return the error of a run after `cost` passes or seconds, as `axis` says.

        If the run ended earlier, its last error is returned.
        """
        errors = self.errors(row)
        if not np.isfinite(errors).all():
            return math.inf
        return float(np.exp(np.interp(cost, row[axis], np.log(errors))))

    def median_error(self, rows: Iterable[Row], cost: float, axis: str) -> float:
        """Return the median error of several runs after a number of passes or seconds."""
        return median(self.error_at(row, cost, axis) for row in rows)

    def cost_to(self, row: Row, goal: float, axis: str, end: float = math.inf) -> float:
        """Return the passes or seconds after which the error never exceeds `goal` again.

        The result is ∞ if the last error exceeds `goal`. What follows after `end` passes or seconds
        is ignored.
        """
        errors, cost = self.errors(row), np.array(row[axis])
        if end < cost[-1]:
            errors = np.append(errors[cost < end], self.error_at(row, end, axis))
            cost = np.append(cost[cost < end], end)
        above = np.flatnonzero(errors > goal * (1 + 1e-12))
        if len(above) == 0:
            return float(max(cost[min(1, len(cost) - 1)], SMALLEST_COST))
        i = above[-1]
        if i + 1 == len(errors):
            return math.inf
        high, low = np.log(errors[i]), np.log(errors[i + 1])
        share = (high - np.log(goal)) / (high - low)
        return float(max(cost[i] + share * (cost[i + 1] - cost[i]), SMALLEST_COST))

    def quantiles(self, rows: Iterable[Row], axis: str) -> list[list[float]]:
        """Return costs, and the median, 10 % and 90 % quantiles of the errors at these costs.

        Runs that diverged are left out; the list is empty if all runs diverged.
        """
        finite = [row for row in rows if not has_diverged(row) and len(row[axis]) > 1]
        if not finite:
            return []
        first = max(min(row[axis][1] for row in finite), 1e-4)
        costs = np.geomspace(first, max(min(row[axis][-1] for row in finite), first * 1.01), 60)
        errors = np.array([[self.error_at(row, cost, axis) for cost in costs] for row in finite])
        return [costs.tolist(), *np.quantile(errors, (0.5, 0.1, 0.9), axis=0).tolist()]
