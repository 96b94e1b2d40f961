# SPDX-License-Identifier: BSD-3-Clause
"""What the rows say: f*, relative errors, and when a run reached one.

Objectives are known at looks only; between two looks the logarithm of the error is a straight line
in the seconds or passes. A run that diverged has the error ∞.
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

from sipower.experiments.table import Row

__all__ = ["Best", "Curves", "Summary", "diverged", "select"]

Float = NDArray[np.float64]
WHOLE = ("grid", "nmf", "robustness", "sampling", "synthetic")  # their objective is that of KL-NMF
TINY = 1e-300


class Best(NamedTuple):
    """The lowest objective known, and who found it."""

    value: float
    found_by: str


class Summary(NamedTuple):
    """Relative errors of several seeds on a common axis; those that diverged are left out."""

    x: Float
    mean: Float
    median: Float
    low: Float
    high: Float
    runs: int
    diverged: int


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def diverged(row: Row) -> bool:
    """Whether a run left the finite numbers or ended above its start."""
    last = row["objective"][-1]
    return row["status"] == "not_finite" or last is None or last > row["objective"][0]


@cache
def _known() -> dict[str, dict[str, Any]]:
    text = files("sipower.experiments").joinpath("best_known.json").read_text("utf-8")
    known: dict[str, dict[str, Any]] = json.loads(text)
    return known


class Curves:
    """The rows of one table, with the lowest values known.

    Runs on subproblems whose certified solution is not in the table yet are left out.
    """

    def __init__(self, rows: list[Row]) -> None:
        exact = {(r["dataset"], r["seed"]): r["objective"][0] for r in select(rows, method="exact")}
        self.exact: dict[tuple[str, int], float] = exact
        self.rows = [
            row
            for row in rows
            if row["experiment"] != "subproblem" or (row["dataset"], row["seed"]) in exact
        ]
        self.best: dict[str, Best] = {
            name: Best(known["value"], known["found_by"]) for name, known in _known().items()
        }
        for row in self.rows:
            if row["experiment"] in WHOLE:
                value = min(v for v in row["objective"] if v is not None)
                if value < self.best.get(row["dataset"], Best(math.inf, "")).value:
                    who = f"{row['method']}, seed {row['seed']}, {row['passes'][-1]:.0f} passes"
                    self.best[row["dataset"]] = Best(value, f"{who}, commit {row['commit']}")

    def runs(self, experiment: str, dataset: str, method: str) -> dict[int, Row]:
        """The rows of a method by seed."""
        found = select(self.rows, experiment=experiment, dataset=dataset, method=method)
        return {row["seed"]: row for row in found}

    def errors(self, row: Row) -> Float:
        """|f − f*| / |f₀ − f*| at the looks, the paper's error; ∞ if the run diverged."""
        if diverged(row):
            return np.full(len(row["objective"]), np.inf)
        convex = row["experiment"] == "subproblem"
        lowest = (
            self.exact[row["dataset"], row["seed"]] if convex else self.best[row["dataset"]].value
        )
        objective = np.array([np.inf if v is None else v for v in row["objective"]])
        drop = max(abs(objective[0] - lowest), TINY)
        return np.asarray(np.maximum(np.abs(objective - lowest) / drop, 1e-15))

    def error_at(self, row: Row, at: float, axis: str = "seconds") -> float:
        """Relative error after so many seconds or passes."""
        errors = self.errors(row)
        if not np.isfinite(errors).all():
            return math.inf
        return float(np.exp(np.interp(at, row[axis], np.log(errors))))

    def time_to(self, row: Row, goal: float, axis: str = "seconds") -> float:
        """Seconds or passes after which the error stays at the goal; ∞ if it does not get there."""
        errors, at = self.errors(row), np.array(row[axis])
        above = np.flatnonzero(errors > goal * (1 + 1e-12))
        if len(above) == 0:
            return float(max(at[min(1, len(at) - 1)], 1e-6))
        i = above[-1]
        if i + 1 == len(errors):
            return math.inf
        high, low = np.log(errors[i]), np.log(errors[i + 1])
        share = (high - np.log(goal)) / (high - low)
        return float(max(at[i] + share * (at[i + 1] - at[i]), 1e-6))

    def summary(self, rows: list[Row], axis: str) -> Summary | None:
        """Errors of the seeds of one method on a common axis; None where all diverged."""
        kept = [row for row in rows if not diverged(row) and len(row[axis]) > 1]
        if not kept:
            return None
        first = max(min(row[axis][1] for row in kept), 1e-4)
        x = np.geomspace(first, max(min(row[axis][-1] for row in kept), first * 1.01), 60)
        errors = np.array([[self.error_at(row, at, axis) for at in x] for row in kept])
        low, median, high = np.quantile(errors, (0.1, 0.5, 0.9), axis=0)
        return Summary(x, errors.mean(axis=0), median, low, high, len(rows), len(rows) - len(kept))
