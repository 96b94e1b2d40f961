# SPDX-License-Identifier: BSD-3-Clause
"""The paper's protocol as lists of runs.

K = 20. All runs of a seed start from the same factors: random numbers from Uniform(0, 1) and then 5
multiplicative rounds. A run ends at the horizon of its data set, a number of passes over the data;
if the passes of a method are expensive, the run ends earlier, at a limit in seconds. Following the
paper, S-SCI-PI samples vectors of the longer dimension of dense data, and elements in both
dimensions of sparse data.

S-SCI-PI is tuned by successive halving on objectives at equal passes. A point of the paper's grid
consists of the share s/n of the data in a batch, the number m of steps in an epoch, and the step
size η. First, each point of the grid is run from the first start for the fraction `SCREENING` of
the horizon. Points for which a single round takes more passes than that are left out. Then the best
`finalists` are run from the first `starts` starts to the horizon, and the lowest mean objective
there determines the winner, which is run on all replicates. For each pair (s/n, m) of the boxplots,
η is chosen in the same way. CCD and SCD are one method in the paper: whichever is better at the
horizon, on the first starts, is used.

A plan depends only on the budget and on the rows of the results table. The runs of a stage are
known once the results of the stage before are in the table, so `sipower reproduce` continues where
it was interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from sipower.datasets.catalogue import is_present
from sipower.experiments import budgets
from sipower.experiments.budgets import COMPARED_VARIANTS, HORIZONS, SCREENING, VARIANTS, Budget
from sipower.experiments.methods import METHODS, Params
from sipower.experiments.table import PlannedRun, Row, row_key


class Case(NamedTuple):
    """A method on a problem and a data set, for which its parameters are tuned.

    `variant` is a key of VARIANTS, or None for the paper's choice. If `pair` is not None, s/n and m
    have these values, and only η is tuned.
    """

    problem: str
    dataset: str
    method: str
    variant: str | None = None
    pair: tuple[float, int] | None = None


class Protocol:
    """The runs that a budget requires.

    `rows` are the results so far, read from the results table. Rows of other budgets are ignored.
    """

    def __init__(self, budget: Budget, rows: Iterable[Row]) -> None:
        self.budget = budget
        self.rows = {row_key(row): row for row in rows}
        self._winners: dict[Case, Params | None] = {}

    def plan(self, experiment: str) -> list[PlannedRun]:
        """Return the runs of an experiment that are planned so far, including finished ones."""
        planners = {
            "nmf": self._plan_nmf,
            "synthetic": self._plan_synthetic,
            "subproblem": self._plan_subproblem,
            "robustness": self._plan_robustness,
            "sampling": self._plan_sampling,
            "signs": self._plan_signs,
        }
        return list(planners[experiment]()) if experiment in planners else []

    def real(self) -> list[str]:
        """Return the real data sets that are present, or else the docstring corpus."""
        names = [d for d in self.budget.datasets if d in budgets.REAL and is_present(d)]
        return names or ["docstrings"]

    # ---- the experiments -------------------------------------------------------------------------

    def _plan_nmf(self) -> Iterator[PlannedRun]:
        for dataset in self.real():
            yield from self._plan_all_methods(dataset)
            reference = self._run("nmf", dataset, "auto", (), 0)
            yield _scale_limits(reference, 4)  # determines f*, the lowest known value

    def _plan_synthetic(self) -> Iterator[PlannedRun]:
        for dataset in budgets.SYNTHETIC:
            if dataset in self.budget.datasets:
                yield from self._plan_all_methods(dataset)

    def _plan_all_methods(self, dataset: str) -> Iterator[PlannedRun]:
        for name, method in METHODS.items():
            if method.in_nmf:
                seeds = None if method.all_seeds else self.budget.other_replicates
                yield from self._plan_case(Case("nmf", dataset, name), seeds)

    def _plan_subproblem(self) -> Iterator[PlannedRun]:
        for dataset in self.real():
            for seed in range(self.budget.replicates):
                yield self._run("subproblem", dataset, "exact", (), seed)
            for name, method in METHODS.items():
                if method.rule is not None:
                    yield from self._plan_case(Case("subproblem", dataset, name))

    def _plan_robustness(self) -> Iterator[PlannedRun]:
        for dataset in (d for d in self.real() if d in budgets.BOXPLOTS):
            for name in ("f-sci-pi", "mu"):
                yield from self._plan_case(Case("nmf", dataset, name))
            for pair in self.pairs(dataset):
                yield from self._plan_case(Case("nmf", dataset, "s-sci-pi", pair=pair))

    def _plan_sampling(self) -> Iterator[PlannedRun]:
        for dataset in self.real():
            for variant in (None, *COMPARED_VARIANTS[dataset]):
                yield from self._plan_case(Case("nmf", dataset, "s-sci-pi", variant))

    def _plan_signs(self) -> Iterator[PlannedRun]:
        """Plan the runs that count negative entries of gradients, with tuned and tiny batches."""
        for dataset in self.real():
            case = Case("subproblem", dataset, "s-sci-pi")
            yield from self.tuning_runs(case)
            best = self.winner(case)
            if best is not None:
                tiny = dict(best) | {"batch": 1e-4, "epoch": 100}
                settings = best, _as_params(tiny), _as_params(tiny | {"step": 1.0})
                for params, seed in product(settings, range(self.budget.other_replicates)):
                    yield self._run("signs", dataset, "s-sci-pi", params, seed)

    def pairs(self, dataset: str) -> list[tuple[float, int]]:
        """Return the pairs (s/n, m) of the boxplots whose rounds are short enough for screening."""
        points = self._candidates(Case("nmf", dataset, "s-sci-pi"))
        feasible = {(dict(params)["batch"], dict(params)["epoch"]) for params in points}
        return [pair for pair in self.budget.pairs if pair in feasible]

    # ---- runs and their limits -------------------------------------------------------------------

    def _run(
        self, problem: str, dataset: str, method: str, params: Params, seed: int
    ) -> PlannedRun:
        horizon = HORIZONS[dataset]
        passes = horizon.nmf if problem == "nmf" else horizon.subproblem
        scale = self.budget.scale
        return PlannedRun(
            problem, dataset, method, params, seed, scale * passes, scale * horizon.seconds
        )

    def _runs(self, case: Case, params: Params, seeds: int) -> list[PlannedRun]:
        """Return the runs of a case to the horizon for the first `seeds` seeds."""
        return [self._run(*case[:3], params, seed) for seed in range(seeds)]

    def replicates(self, case: Case) -> dict[int, Row]:
        """Return, by seed, the finished runs of a case with its winning parameters."""
        best = self.winner(case)
        if best is None:
            return {}
        runs = self._runs(case, best, self.budget.replicates)
        return {run.seed: self.rows[run.key] for run in runs if run.key in self.rows}

    def _plan_case(self, case: Case, seeds: int | None = None) -> Iterator[PlannedRun]:
        yield from self.tuning_runs(case)
        best = self.winner(case)
        if best is not None:
            yield from self._runs(case, best, self.budget.replicates if seeds is None else seeds)

    # ---- successive halving ----------------------------------------------------------------------

    def winner(self, case: Case) -> Params | None:
        """Return the winning parameters; None until all runs that they depend on are finished."""
        if case not in self._winners:
            self._winners[case] = self._decide(case)
        return self._winners[case]

    def _decide(self, case: Case) -> Params | None:
        points = self._finalists(case)
        if points is None or len(points) < 2:
            return points[0] if points else None
        values = {params: self._mean_objective(self._starts(case, params)) for params in points}
        return _sort_by_objective(values)[0] if None not in values.values() else None

    def tuning_runs(self, case: Case) -> list[PlannedRun]:
        """Return the runs that determine the winning parameters, as far as they are planned."""
        runs = list(self._screening(case).values())
        points = self._finalists(case) or []
        if len(points) > 1:
            for params in points:
                runs += self._starts(case, params)
        return runs

    def _starts(self, case: Case, params: Params) -> list[PlannedRun]:
        return self._runs(case, params, min(self.budget.starts, self.budget.replicates))

    def _finalists(self, case: Case) -> list[Params] | None:
        """Return the grid points to run to the horizon; None while a screening run is missing."""
        screening = self._screening(case)
        if not screening:
            return self._candidates(case)
        values = {params: self._mean_objective([run]) for params, run in screening.items()}
        if None in values.values():
            return None
        number = budgets.STEPS_PER_PAIR if case.pair else self.budget.finalists
        return _sort_by_objective(values)[:number]

    def _screening(self, case: Case) -> dict[Params, PlannedRun]:
        """Return the short run of each grid point; empty if there are at most two points."""
        points = self._candidates(case)
        if self.budget.finalists is None or len(points) <= 2:
            return {}
        runs = {params: self._run(*case[:3], params, 0) for params in points}
        return {params: _scale_limits(run, SCREENING) for params, run in runs.items()}

    def _candidates(self, case: Case) -> list[Params]:
        """Return the parameter sets that the winner of a case is chosen from."""
        if case.method != "s-sci-pi":
            return METHODS[case.method].forms
        variant = case.variant or ("dense" if case.dataset in budgets.DENSE else "sparse")
        options = VARIANTS[variant]
        max_passes = SCREENING * self._run(*case[:3], (), 0).passes
        return [
            _as_params({"batch": batch, "epoch": epoch, "step": step, "shortest": 0, **options})
            for batch, epoch, step in self._points(variant)
            if (case.pair is None or (batch, epoch) == case.pair)
            and round_passes(case.problem, batch, epoch, options["sides"]) <= max_passes
        ]

    def _points(self, variant: str) -> Iterator[tuple[Any, Any, float]]:
        """Yield all combinations of s/n, m and η for a variant of S-SCI-PI."""
        batches, epochs, steps = self.budget.grid
        if variant == "both sides":
            for long, short, step in product(budgets.LONG_SIDE, budgets.SHORT_SIDE, steps[-2:]):
                yield (long[0], short[0]), (long[1], short[1]), step
        elif variant == "vectors":  # with sparse data, smaller batches of vectors are slow
            yield from product([b for b in batches if 0.01 <= b < 1], epochs[:2], steps)
        else:
            yield from product(batches, epochs, steps)

    def _mean_objective(self, runs: list[PlannedRun]) -> float | None:
        """Return the mean objective of runs at the horizon, or None while a run is missing."""
        rows = [self.rows[run.key] for run in runs if run.key in self.rows]
        if len(rows) < len(runs):
            return None
        return float(np.mean([objective_at(row, row["max_passes"]) for row in rows]))


def round_passes(problem: str, batch: Any, epoch: Any, sides: str) -> float:
    """Return the passes of one round of S-SCI-PI.

    A sampled side takes 1 + 1.5 (m − 1) s/n passes, a side that is not sampled one pass.
    """
    batches, epochs = (v if isinstance(v, tuple) else (v, v) for v in (batch, epoch))
    long, short = (1.0 + 1.5 * (m - 1) * b for b, m in zip(batches, epochs, strict=True))
    if problem != "nmf":
        return float(long)
    return float(long + (short if sides == "both" else 1.0))


def objective_at(row: Row, passes: float) -> float:
    """Return the objective after `passes` passes, or at the end of a shorter run."""
    values = row["objective"]
    if row["status"] == "not_finite" or None in values:
        return math.inf
    return float(np.interp(passes, row["passes"], values))


def _sort_by_objective(values: dict[Params, Any]) -> list[Params]:
    return sorted(values, key=values.__getitem__)


def _scale_limits(run: PlannedRun, factor: float) -> PlannedRun:
    """Return a copy of a run with its limits multiplied by a factor."""
    return replace(run, passes=run.passes * factor, seconds=run.seconds * factor)


def _as_params(params: dict[str, Any]) -> Params:
    return tuple(sorted(params.items()))
