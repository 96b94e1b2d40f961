# SPDX-License-Identifier: BSD-3-Clause
"""The paper's protocol as lists of runs, for several budgets of time.

A plan is a function of the budget and of the rows that are there. Runs with the winner of a grid
are `PENDING` until all of the grid is in the table. So an interrupted session goes on where it
stopped.

K = 20; all runs of a seed start from the same factors, 5 multiplicative rounds from Uniform(0, 1).
On dense data S-SCI-PI samples vectors of the longer dimension, on sparse data elements in both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from sipower.datasets.catalogue import is_present
from sipower.experiments.methods import METHODS
from sipower.experiments.table import Row, Run, key_of

__all__ = ["BUDGETS", "EXPERIMENTS", "PENDING", "REAL", "Budget", "Grid", "plan"]

EXPERIMENTS = ("table1", "nmf", "subproblem", "robustness", "sampling", "synthetic")
REAL, DRAWN = ("wt", "nips", "kos", "mitf"), ("pois1", "pois2", "pois3")
DENSE = ("wt", "mitf", "pois1")
IN_SUBPROBLEMS = ("s-sci-pi", "f-sci-pi", "mu", "ccd", "scd", "pgd", "newton")
Params = tuple[tuple[str, Any], ...]
PENDING: Params = (("winner", "pending"),)
SCHEMES = ("vectors", "stratified", "weighted", "elements")


@dataclass(frozen=True)
class Budget:
    """How much is run.

    Parameters
    ----------
    replicates, others
        Seeds of the paper's methods, and of those it does not have.
    seconds
        Of a run on NIPS and WT, and of one on the other sets.
    grid
        Values of s/n, m and η, and the largest m s/n that is tried.
    grid_seconds, grid_replicates
        Of a run of the grid, and its seeds.
    pairs
        (s/n, m) of the boxplots.
    box_seconds
        After which they are drawn.
    side_seconds, side_replicates
        Of a run on a subproblem or on drawn data, and its seeds.
    """

    replicates: int
    others: int
    seconds: tuple[float, float]
    grid: tuple[tuple[float, ...], tuple[int, ...], tuple[float, ...], float]
    grid_seconds: float
    grid_replicates: int = 1
    pairs: tuple[tuple[float, int], ...] = ()
    box_seconds: float = 30.0
    side_seconds: float = 5.0
    side_replicates: int = 5
    datasets: tuple[str, ...] = field(default=REAL + DRAWN)

    def points(self) -> list[tuple[float, int, float]]:
        """All (s/n, m, η) of the grid."""
        batches, epochs, steps, most = self.grid
        return [p for p in product(batches, epochs, steps) if p[0] * p[1] <= most]


PAIRS = ((0.001, 100), (0.001, 1000), (0.01, 10), (0.01, 100), (0.1, 10), (0.1, 100))
BUDGETS = {
    "quick": Budget(
        2, 1, (4, 2), ((0.01, 0.1), (10, 100), (0.1, 1.0), 5), 1.5, 1, PAIRS[2:5], 4, 1.5, 1
    ),
    "standard": Budget(
        10, 4, (30, 15), ((1e-4, 1e-3, 0.01, 0.1), (10, 100, 1000), (0.01, 0.1, 1.0), 20),
        10, 1, PAIRS, 30, 4, 4,
    ),
    "full": Budget(
        10, 10, (60, 60), ((1e-4, 1e-3, 0.01, 0.1, 1), (10, 100, 1000), (0.01, 0.1, 1.0), 100),
        30, 10, PAIRS, 30, 30, 10,
    ),
}  # fmt: skip


def plan(experiment: str, budget: Budget, rows: list[Row]) -> list[Run]:
    """The runs of an experiment that are known so far, finished ones included."""
    makers = {
        "nmf": _nmf,
        "subproblem": _subproblem,
        "robustness": _robustness,
        "sampling": _sampling,
        "synthetic": _synthetic,
    }
    grid = Grid(budget, rows)
    return list(makers[experiment](budget, grid)) if experiment in makers else []


def _nmf(budget: Budget, grid: Grid) -> Iterator[Run]:
    for dataset in _real(budget):
        yield from _grid("grid", dataset, budget)
    for seed, dataset in product(range(budget.replicates), _real(budget)):
        yield from _compared("nmf", dataset, seed, budget, grid)
    for dataset in _real(budget):
        yield Run("nmf", dataset, "reference", seconds=4 * _seconds(dataset, budget))


def _synthetic(budget: Budget, grid: Grid) -> Iterator[Run]:
    drawn = [name for name in budget.datasets if name in DRAWN]
    for dataset in drawn:
        yield from _grid("grid", dataset, budget)
    for seed, dataset in product(range(budget.side_replicates), drawn):
        yield from _compared("synthetic", dataset, seed, budget, grid)


def _compared(
    experiment: str, dataset: str, seed: int, budget: Budget, grid: Grid
) -> Iterator[Run]:
    """All methods on one set from one start."""
    seconds = _seconds(dataset, budget)
    for name, method in METHODS.items():
        if not method.whole or (not method.of_paper and seed >= budget.others):
            continue
        params = grid.winner("grid", dataset) if name == "s-sci-pi" else ()
        yield Run(experiment, dataset, name, params, seed, seconds)


def _subproblem(budget: Budget, grid: Grid) -> Iterator[Run]:
    for dataset in _real(budget):
        yield from _grid("subproblem grid", dataset, budget)
    for seed, dataset in product(range(budget.side_replicates), _real(budget)):
        yield Run("subproblem", dataset, "exact", (), seed, 0.0)
        for name in IN_SUBPROBLEMS:
            best = grid.winner("subproblem grid", dataset) if name == "s-sci-pi" else ()
            yield Run("subproblem", dataset, name, best, seed, budget.side_seconds)


def _robustness(budget: Budget, grid: Grid) -> Iterator[Run]:
    """Boxplots on NIPS and WT: for each pair the best η of the grid."""
    wanted = [name for name in _real(budget) if name in ("wt", "nips", "docstrings")]
    for dataset in wanted:
        yield from _grid("grid", dataset, budget)
    for seed, dataset, pair in product(range(budget.replicates), wanted, budget.pairs):
        best = grid.winner("grid", dataset, pair)
        yield Run("robustness", dataset, "s-sci-pi", best, seed, budget.box_seconds)
    for seed, dataset in product(range(budget.replicates), wanted):
        for name in ("f-sci-pi", "mu"):
            yield Run("nmf", dataset, name, (), seed, _seconds(dataset, budget))


def _sampling(budget: Budget, grid: Grid) -> Iterator[Run]:
    """Four schemes, one or both dimensions, no variance reduction; and the gradients' signs."""
    wanted = [name for name in _real(budget) if name in ("wt", "kos", "docstrings")]
    for dataset in wanted:
        yield from _grid("grid", dataset, budget)
    for seed, dataset in product(range(budget.others // 2 + 1), wanted):
        best = grid.winner("grid", dataset)
        run = seed, budget.grid_seconds
        tuned = dict(best)
        yield Run("gradients", dataset, "s-sci-pi", best, seed, 0.0)
        for scheme, sides in product(SCHEMES, ("both", "long")):
            params = tuned | {"scheme": scheme, "sides": sides}
            yield Run("sampling", dataset, "s-sci-pi", _sorted(params), *run)
        plain = {name: value for name, value in tuned.items() if name not in ("shortest", "sides")}
        yield Run("sampling", dataset, "vanilla", _sorted(plain), *run)


def _grid(experiment: str, dataset: str, budget: Budget) -> Iterator[Run]:
    seconds = _grid_seconds(experiment, dataset, budget)
    for seed, point in product(range(budget.grid_replicates), budget.points()):
        yield Run(experiment, dataset, "s-sci-pi", _s_sci_pi(dataset, *point), seed, seconds)


def _s_sci_pi(dataset: str, batch: float, epoch: int, step: float) -> Params:
    """The paper's S-SCI-PI: no item is too short to be sampled."""
    dense = dataset in DENSE
    how = {"scheme": "vectors" if dense else "elements", "sides": "long" if dense else "both"}
    return _sorted({"batch": batch, "epoch": epoch, "step": step, "shortest": 0, **how})


class Grid:
    """The runs of the grid that are in the table, and who won."""

    def __init__(self, budget: Budget, rows: list[Row]) -> None:
        self.budget = budget
        self.rows = {key_of(row): row for row in rows if row["experiment"].endswith("grid")}
        self.found: dict[Any, Params] = {}

    def winner(
        self, experiment: str, dataset: str, pair: tuple[float, int] | None = None
    ) -> Params:
        """The parameters of lowest objective (of one pair, if given); `PENDING` without all runs.

        Objectives are compared after the same seconds: a last round may have taken long.
        """
        asked = experiment, dataset, pair
        if asked not in self.found:
            self.found[asked] = self._winner(*asked)
        return self.found[asked]

    def _winner(self, experiment: str, dataset: str, pair: tuple[float, int] | None) -> Params:
        sums: dict[Params, float] = {}
        budget, seconds = self.budget, _grid_seconds(experiment, dataset, self.budget)
        for run in _grid(experiment, dataset, budget):
            params = dict(run.params)
            if pair is None or (params["batch"], params["epoch"]) == pair:
                row = self.rows.get(run.key)
                if row is None:  # with the pair, which tells the runs that wait apart
                    return PENDING if pair is None else (*PENDING, ("pair", pair))
                sums[run.params] = sums.get(run.params, 0.0) + _objective_at(row, seconds)
        return min(sums, key=lambda params: sums[params]) if sums else PENDING


def _grid_seconds(experiment: str, dataset: str, budget: Budget) -> float:
    small = experiment != "grid" or dataset in DRAWN
    return budget.side_seconds / 2 if small else budget.grid_seconds


def _objective_at(row: Row, seconds: float) -> float:
    values = row["objective"]
    if row["status"] == "not_finite" or None in values:
        return math.inf
    return float(np.interp(seconds, row["seconds"], values))


def _real(budget: Budget) -> list[str]:
    """The real sets that are here; the corpus that is everywhere where none is."""
    return [n for n in budget.datasets if n in REAL and is_present(n)] or ["docstrings"]


def _seconds(dataset: str, budget: Budget) -> float:
    if dataset in DRAWN:
        return budget.side_seconds
    return budget.seconds[0 if dataset in ("wt", "nips") else 1]


def _sorted(params: dict[str, Any]) -> Params:
    return tuple(sorted(params.items()))
