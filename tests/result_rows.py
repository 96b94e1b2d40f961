# SPDX-License-Identifier: BSD-3-Clause
"""Made-up rows of the table of results."""

import numpy as np

from sipower.experiments.budgets import Budget
from sipower.experiments.protocol import Protocol

BUDGET = Budget(1.0, replicates=5, other_replicates=2, finalists=2, starts=2)


def row(method, values, *, problem="nmf", dataset="kos", seed=0, seconds=None, **more):
    """A row whose evaluations are evenly spaced; limits as in BUDGET."""
    points = len(values)
    run = Protocol(BUDGET, [])._run(problem, dataset, method, (), seed)
    end = run.passes if points > 1 else 0.0
    return {
        "problem": problem, "dataset": dataset, "method": method, "params": {}, "seed": seed,
        "max_passes": run.passes, "max_seconds": run.seconds,
        "seconds": seconds or np.linspace(0, end / 100, points).tolist(),
        "passes": np.linspace(0, end, points).tolist(), "objective": values, "status": "stopped",
        "gap": 0.1, "threads": 1, "dtype": "float64", "rank": 20, "commit": "c", "cpu": "p",
        "versions": {"python": "3"},
    } | more  # fmt: skip


def finish(budget, experiment, objective, rows=()):
    """The rows of all runs of an experiment, each with the objective that a function gives."""
    rows = list(rows)
    while True:
        protocol = Protocol(budget, rows)
        missing = [run for run in protocol.plan(experiment) if run.key not in protocol.rows]
        if not missing:
            return rows
        rows += [
            row(run.method, [9.0, objective(run)], problem=run.problem, dataset=run.dataset)
            | {"params": dict(run.params), "seed": run.seed}
            | {"max_passes": run.passes, "max_seconds": run.seconds}
            | {"passes": [0.0, run.passes], "seconds": [0.0, run.passes / 100]}
            for run in missing
        ]
