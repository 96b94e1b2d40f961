# SPDX-License-Identifier: BSD-3-Clause
"""Compare estimates of the time of a fit, before and while it runs, with the time it takes.

    python benchmarks/estimates.py [--half test] [--threads 1] [--min-time 0.2] [names]

Before: `sipower.estimate`, its range and the geometric mean of the range. While it runs: the total
time that the progress display of `sipower fit` implies after each evaluated round. Then the
estimate of `rank_selection`, and that of `sipower consensus` for 4 starts. All are ratios of the
estimated to the measured total time. Sets whose fit takes less than `min-time` are left out.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from typing import Any

import numpy as np
from zoo.problems import select_problems

from sipower import KLNMF, consensus, estimate, rank_selection
from sipower.cli.console import Console
from sipower.cli.progress import FitProgress
from sipower.loop.solve import Record
from sipower.selection import estimated_seconds

RANK_SETS, STARTS, MAX_TIME = 4, 4, 60.0


class Totals(FitProgress):
    """A progress display that keeps the total time that it would show, instead of showing it."""

    def __init__(self, model: KLNMF) -> None:
        super().__init__(Console(as_json=True), model)
        self.console.event = lambda *_, **__: None  # type: ignore[method-assign]
        self.totals: list[float] = []

    def __call__(self, record: Record) -> None:
        """Keep the time so far and the time left."""
        if math.isnan(record.gap):
            return
        self.records.append(record)
        spent = time.monotonic() - self.started
        left, words = self.time_left(record, spent)
        if left is not None and words.startswith("about") and record.gap > self.tol:
            self.totals.append(spent + left)


def measure_fit(V: Any, rank: int, threads: int) -> dict[str, Any]:
    """Return the estimates of one fit and the time it took."""
    model = KLNMF(rank, random_state=0, n_jobs=threads, max_time=MAX_TIME)
    before = estimate(V, model)
    progress = Totals(model)
    started = time.monotonic()
    model.set_params(on_round=progress).fit(V)
    return {"before": before, "totals": progress.totals, "seconds": time.monotonic() - started}


def measure_rank(V: Any, rank: int, threads: int) -> float:
    """Return the estimated over the measured time of a rank selection."""
    ranks, model = (
        range(max(rank // 2, 1), rank + 1),
        KLNMF(init="random", tol=1e-2, n_jobs=threads),
    )
    model.set_params(random_state=0)
    expected = estimated_seconds(V, ranks, model, replicates=2)
    started = time.monotonic()
    rank_selection(V, ranks, model, replicates=2)
    return expected / (time.monotonic() - started)


def measure_consensus(V: Any, rank: int, threads: int) -> float:
    """Return the estimated over the measured time of a consensus."""
    model = KLNMF(rank, random_state=0, n_jobs=threads)
    one = estimate(V, KLNMF(rank, random_state=0, n_jobs=1)).expected_seconds
    started = time.monotonic()
    consensus(V, model, replicates=STARTS)
    return one * math.ceil(STARTS / threads) / (time.monotonic() - started)


def describe(ratios: list[float]) -> str:
    """Return the share of ratios within a factor of two, the median and the extremes."""
    if not ratios:
        return "none"
    within = np.mean([0.5 <= ratio <= 2 for ratio in ratios])
    low, median, high = np.quantile(ratios, [0.1, 0.5, 0.9])
    spread = f"median {median:.2f}, 10 to 90 % {low:.2f} to {high:.2f}"
    return f"{within:4.0%} within a factor of 2, {spread} ({len(ratios)} estimates)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", help="problems of the zoo")
    parser.add_argument("--half", default="test", choices=("tuning", "test"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--min-time", type=float, default=0.2, help="seconds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    before, inside, during, ranks, starts = [], [], [], [], []
    for problem in select_problems(options.half, options.names or None):
        V = problem.make()
        fit = measure_fit(V, problem.rank, options.threads)
        seconds, cost = fit["seconds"], fit["before"]
        if seconds < options.min_time:
            continue
        own = [total / seconds for total in fit["totals"]]
        before.append(cost.expected_seconds / seconds)
        inside.append(cost.seconds[0] <= seconds <= cost.seconds[1])
        during += own
        low, high = cost.seconds
        print(f"{problem.name:20} {seconds:6.2f} s, estimated {low:6.2f} to {high:6.2f} s; during "
              f"the fit {' '.join(f'{ratio:.2f}' for ratio in own)}", flush=True)  # fmt: skip
        if len(ranks) < RANK_SETS and 4 <= problem.rank <= 20:
            ranks.append(measure_rank(V, problem.rank, options.threads))
            starts.append(measure_consensus(V, problem.rank, options.threads))
    print(f"before the fit  {describe(before)}; {np.mean(inside):.0%} within the range")
    print(f"during the fit  {describe(during)}")
    print(f"rank selection  {describe(ranks)}: {' '.join(f'{r:.2f}' for r in ranks)}")
    print(f"consensus       {describe(starts)}: {' '.join(f'{r:.2f}' for r in starts)}")


if __name__ == "__main__":
    main()
