# SPDX-License-Identifier: BSD-3-Clause
"""What the rows say: f*, relative errors, their mean and quantiles over the seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower.experiments.table import Row

__all__ = [
    "Best",
    "Summary",
    "best",
    "comparable",
    "diverged",
    "error_at",
    "relative_errors",
    "select",
    "summary",
]

Float = NDArray[np.float64]
LEAST = 1e-12  # errors are drawn down to this


class Best(NamedTuple):
    """The lowest objective known, and who found it."""

    value: float
    found_by: str


class Summary(NamedTuple):
    """Relative errors of several seeds on a common axis."""

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


def comparable(rows: list[Row]) -> list[Row]:
    """Leave out runs on subproblems whose exact solution is not in the table yet."""
    solved = {(row["dataset"], row["seed"]) for row in select(rows, method="exact")}
    return [
        row
        for row in rows
        if row["experiment"] != "subproblem" or (row["dataset"], row["seed"]) in solved
    ]


@cache
def _known() -> dict[str, dict[str, Any]]:
    text = files("sipower.experiments").joinpath("best_known.json").read_text("utf-8")
    known: dict[str, dict[str, Any]] = json.loads(text)
    return known


def best(rows: list[Row], dataset: str, seed: int | None = None) -> Best:
    """f*: the lowest value of all rows and of the long runs shipped with the package.

    With a seed: that of its subproblem, which is convex and solved to a certificate.
    """
    if seed is not None:
        (exact,) = select(rows, experiment="subproblem", dataset=dataset, method="exact", seed=seed)
        return Best(exact["objective"][0], "every item solved to a gap of 1e-10")
    known = _known().get(dataset)
    lowest = Best(known["value"], known["found_by"]) if known else Best(np.inf, "")
    for row in select(rows, dataset=dataset):
        if row["experiment"].startswith("subproblem"):
            continue
        value = min(v for v in row["objective"] if v is not None)
        if value < lowest.value:
            who = f"{row['method']}, seed {row['seed']}, {row['passes'][-1]:.0f} passes"
            lowest = Best(value, f"{who}, commit {row['commit']}")
    return lowest


def diverged(row: Row) -> bool:
    """Whether a run left the finite numbers or ended above its start."""
    last = row["objective"][-1]
    return row["status"] == "not_finite" or last is None or last > row["objective"][0]


def relative_errors(row: Row, lowest: float) -> Float:
    """|f − f*| / |f₀ − f*|, the paper's error."""
    objective = np.array([np.inf if v is None else v for v in row["objective"]])
    errors = np.abs(objective - lowest) / abs(objective[0] - lowest)
    return np.asarray(np.maximum(errors, LEAST))


def error_at(row: Row, lowest: float, seconds: float) -> float:
    """Relative error of the last look within these seconds."""
    at = int(np.searchsorted(row["seconds"], seconds, side="right")) - 1
    return float(relative_errors(row, lowest)[max(at, 0)])


def summary(rows: list[Row], lowest: Callable[[Row], float], axis: str) -> Summary | None:
    """Errors of the seeds of one method, on a common axis of "seconds" or "passes"."""
    kept = [row for row in rows if not diverged(row)]
    if not kept:
        return None
    ends = [row[axis][-1] for row in kept]
    first = max(min(row[axis][1] for row in kept if len(row[axis]) > 1), 1e-4)
    x = np.geomspace(first, max(min(ends), first * 1.01), 60)
    errors = np.array([_on(x, np.array(r[axis]), relative_errors(r, lowest(r))) for r in kept])
    low, median, high = np.quantile(errors, (0.1, 0.5, 0.9), axis=0)
    return Summary(x, errors.mean(axis=0), median, low, high, len(rows), len(rows) - len(kept))


def _on(x: Float, at: Float, errors: Float) -> Float:
    """Errors as they were known at x: between two looks, the line between their logarithms."""
    return np.asarray(np.exp(np.interp(x, at, np.log(errors))))
