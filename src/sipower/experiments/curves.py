# SPDX-License-Identifier: BSD-3-Clause
"""Relative errors of the runs: at a number of passes or seconds, and when a level was reached.

The error is the paper's, |f − f*| / |f₀ − f*|. f* is the lowest value known, on a subproblem its
certified minimum. Between two evaluations the logarithm of the error is taken to be a straight
line in passes or seconds. A run that diverged has the error ∞.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower.experiments.budgets import REAL, SYNTHETIC, Budget
from sipower.experiments.protocol import Case, Protocol
from sipower.experiments.table import Row

__all__ = ["Best", "Curves", "Summary", "diverged", "select"]

Float = NDArray[np.float64]
TINY = 1e-300


class Best(NamedTuple):
    """The lowest objective known, and the run that attained it."""

    value: float
    run: str


class Summary(NamedTuple):
    """Relative errors of several seeds on a common axis, without the runs that diverged."""

    x: Float
    median: Float
    low: Float
    high: Float


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Return the rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def diverged(row: Row) -> bool:
    """Return whether a run left the finite numbers or ended above its start."""
    last = row["objective"][-1]
    return row["status"] == "not_finite" or last is None or last > row["objective"][0]


@cache
def _best_known() -> dict[str, dict[str, Any]]:
    text = files("sipower.experiments").joinpath("best_known.json").read_text("utf-8")
    values: dict[str, dict[str, Any]] = json.loads(text)
    return values


class Curves:
    """The errors of the runs of one table.

    Parameters
    ----------
    rows
        Rows of the table.
    budget
        The budget of the runs, which decides what won the tuning.
    """

    def __init__(self, rows: list[Row], budget: Budget) -> None:
        self.rows = rows
        self.protocol = Protocol(budget, rows)
        present = {row["dataset"] for row in rows}
        self.real = [name for name in (*REAL, "docstrings") if name in present]
        self.synthetic = [name for name in SYNTHETIC if name in present]
        self.minima: dict[tuple[str, int], float] = {
            (row["dataset"], row["seed"]): row["objective"][0]
            for row in select(rows, problem="subproblem", method="exact")
        }
        self.best: dict[str, Best] = {
            name: Best(known["value"], known["run"]) for name, known in _best_known().items()
        }
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
        """Return the runs of a method by seed; a tuned method with the parameters that won.

        Runs on a subproblem whose certified minimum is not in the table are left out.
        """
        rows = self.protocol.replicates(Case(problem, dataset, method, variant, pair))
        if problem != "subproblem":
            return rows
        return {seed: row for seed, row in rows.items() if (dataset, seed) in self.minima}

    def errors(self, row: Row) -> Float:
        """Return |f − f*| / |f₀ − f*| at the evaluations, ∞ everywhere if the run diverged."""
        if diverged(row):
            return np.full(len(row["objective"]), np.inf)
        convex = row["problem"] == "subproblem"
        lowest = (
            self.minima[row["dataset"], row["seed"]] if convex else self.best[row["dataset"]].value
        )
        objective = np.array([np.inf if v is None else v for v in row["objective"]])
        drop = max(abs(objective[0] - lowest), TINY)
        return np.asarray(np.maximum(np.abs(objective - lowest) / drop, 1e-15))

    def error_at(self, row: Row, at: float, axis: str) -> float:
        """Return the error after so many passes or seconds, at most those that the run had."""
        errors = self.errors(row)
        if not np.isfinite(errors).all():
            return math.inf
        return float(np.exp(np.interp(at, row[axis], np.log(errors))))

    def cost_to(self, row: Row, goal: float, axis: str, end: float = math.inf) -> float:
        """Return the passes or seconds from which on the error is at most the goal, ∞ if never.

        What happened after `end` is not looked at.
        """
        errors, at = self.errors(row), np.array(row[axis])
        if end < at[-1]:
            errors = np.append(errors[at < end], self.error_at(row, end, axis))
            at = np.append(at[at < end], end)
        above = np.flatnonzero(errors > goal * (1 + 1e-12))
        if len(above) == 0:
            return float(max(at[min(1, len(at) - 1)], 1e-6))
        i = above[-1]
        if i + 1 == len(errors):
            return math.inf
        high, low = np.log(errors[i]), np.log(errors[i + 1])
        share = (high - np.log(goal)) / (high - low)
        return float(max(at[i] + share * (at[i + 1] - at[i]), 1e-6))

    def summary(self, rows: Iterable[Row], axis: str) -> Summary | None:
        """Return median and 10 to 90 % quantiles over the seeds; None where all diverged."""
        finite = [row for row in rows if not diverged(row) and len(row[axis]) > 1]
        if not finite:
            return None
        first = max(min(row[axis][1] for row in finite), 1e-4)
        x = np.geomspace(first, max(min(row[axis][-1] for row in finite), first * 1.01), 60)
        errors = np.array([[self.error_at(row, at, axis) for at in x] for row in finite])
        low, median, high = np.quantile(errors, (0.1, 0.5, 0.9), axis=0)
        return Summary(x, median, low, high)
