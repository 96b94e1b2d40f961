# SPDX-License-Identifier: BSD-3-Clause
"""Race `auto` against our other solvers and scikit-learn's MU on the problems of the zoo.

    python benchmarks/zoo/race.py --half tuning --seeds 3            # seconds, in u
    python benchmarks/zoo/race.py --half tuning --passes             # counted passes: no noise
    python benchmarks/zoo/race.py --passes --only text kos --solvers auto   # after a change of auto
    python benchmarks/zoo/race.py --half tuning --passes --report    # the table alone

One thread, float32, the same start for all (5 multiplicative rounds from Uniform(0, 1)), solvers
interleaved. Seconds are those of the processor, so that other processes do not count. u is one
multiplicative-update iteration of scikit-learn, the median over the same run; with --passes it is 2
passes, and our own `mu` replaces scikit-learn. A run ends at the cap, or when the second half of
its cost reduced D by less than a ten-thousandth of the decrease. Curves in u are appended to a file
in benchmarks/results; the table takes the last one of each solver.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1]))

from common import common_start, record_curves, run_solver, thin
from contestants import iterate_scikit_learn_mu
from zoo.problems import HALVES, ZooProblem, select_problems
from zoo.solvers import FAST_TOPICS, SCIKIT_LEARN, SOLVERS
from zoo.table import format_table

from sipower import as_matrix
from sipower.nmf import Factorization, Factors

RESULTS = Path(__file__).parents[1] / "results"
CLOCKS = {"seconds": process_time, "passes": None}
PASSES_PER_U = 2.0  # gradients of both factors
# In u: an iteration of scikit-learn takes as long as about 4 passes on dense data, 50 on sparse.
CAPS = {("seconds", True): 400.0, ("seconds", False): 60.0}
CAPS |= {("passes", True): 800.0, ("passes", False): 1500.0}
MIN_CAP_SECONDS = 0.5
MIN_GAIN = 1e-4
MIN_TIMED_SECONDS = 0.01  # shorter differences are noise


class ScikitLearn:
    """A run of scikit-learn's MU that measures u on its way.

    The cost of its curve is the number of iterations, so that neither the overhead of its calls nor
    its evaluations of D count, which one long call would spend only once.

    Parameters
    ----------
    V
        Data.
    start
        Factors (n, K), (m, K).
    timed
        Whether u is measured.
    """

    def __init__(self, V: Any, start: tuple[Any, Any], timed: bool = True) -> None:
        self.V, self.start, self.timed = V.astype(np.float32), start, timed
        self.seconds: list[float] = []  # per iteration
        self.timed_iterations = 2

    @property
    def u(self) -> float:
        """The median seconds of one iteration."""
        return median(self.seconds)

    def warm_up(self) -> None:
        """Measure u before the race, and how many iterations take long enough to be measured."""
        W, H = self._first_factors()
        while True:
            self.measure(W, H)
            if self.u * self.timed_iterations > MIN_TIMED_SECONDS:
                break
            self.timed_iterations *= 2
            self.seconds.clear()
        self.measure(W, H)
        self.measure(W, H)

    def measure(self, W: Any, H: Any) -> None:
        """Time some iterations from (W, H): a long call minus a short one, without overhead."""

        def seconds(iterations: int) -> float:
            run = iterate_scikit_learn_mu(self.V, W.copy(), H.copy(), iterations, process_time)
            return run[0]

        seconds(1)  # fills the caches
        difference = seconds(1 + self.timed_iterations) - seconds(1)
        self.seconds.append(max(difference / self.timed_iterations, 1e-7))

    def run(self) -> Iterator[tuple[float, Any]]:
        """Yield the number of iterations and (W, H), first those of the start, then every 8."""
        W, H = self._first_factors()
        for turn in count():
            yield 8 * turn, Factors(W, np.ascontiguousarray(H.T))
            _, W, H = iterate_scikit_learn_mu(self.V, W, H, 8)
            if self.timed and turn.bit_count() == 1:  # 1, 2, 4, 8, ...: seldom, it takes time
                self.measure(W, H)

    def _first_factors(self) -> tuple[Any, Any]:
        W, H = self.start
        return np.array(W, np.float32, order="C"), np.array(H.T, np.float32, order="C")


def race(
    entry: ZooProblem, seed: int, solvers: list[str], clock: str, cap: float | None = None
) -> list[dict[str, Any]]:
    """Run the solvers on one problem from one start; return a row with the curve in u of each.

    Parameters
    ----------
    entry
        Problem of the zoo.
    seed
        Seed of the start and of the solvers.
    solvers
        Names of contestants: `SOLVERS` or "scikit-learn MU".
    clock
        "seconds" or "passes".
    cap
        Largest cost in u, None for the default.
    """
    V = entry.make()
    problem = Factorization(as_matrix(V, dtype=np.float32, n_jobs=1), entry.rank)
    start = common_start(V, seed, entry.rank)
    scikit_learn = ScikitLearn(V, start, clock == "seconds")
    u = PASSES_PER_U
    if clock == "seconds":
        scikit_learn.warm_up()
        u = scikit_learn.u
    limit = cap or CAPS[clock, problem.V.dense]
    if clock == "seconds":
        limit = max(limit, MIN_CAP_SECONDS / u)
    runs = {
        name: scikit_learn.run()
        if name == SCIKIT_LEARN
        else run_solver(problem, SOLVERS[name], start, seed, CLOCKS[clock])
        for name in solvers
    }
    caps = {name: limit if name == SCIKIT_LEARN else limit * u for name in solvers}
    curves = record_curves(runs, problem.value, caps, MIN_GAIN)
    if clock == "seconds":
        u = scikit_learn.u  # with the measurements of the race
    rows = []
    for name, curve in curves.items():
        unit = 1.0 if name == SCIKIT_LEARN else u
        points = [(float(f"{cost / unit:.4g}"), float(f"{D:.9g}")) for cost, D in thin(curve)]
        row = {"problem": entry.name, "seed": seed, "solver": name, "clock": clock, "u": u}
        rows.append(row | {"dense": not sp.issparse(V), "rank": entry.rank, "curve": points})
    return rows


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the last row of every problem, seed and solver in a file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = map(json.loads, lines)
    return list({(r["problem"], r["seed"], r["solver"]): r for r in rows}.values())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of problems")
    parser.add_argument("--solvers", nargs="+", choices=[*SOLVERS, SCIKIT_LEARN], metavar="SOLVER")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--cap", type=float, help="largest cost of a run, in u")
    parser.add_argument("--passes", action="store_true", help="count passes instead of seconds")
    parser.add_argument("--report", action="store_true", help="print the table without a race")
    parser.add_argument("--file", type=Path, help="file of the curves")
    options = parser.parse_args(arguments)
    clock = "passes" if options.passes else "seconds"
    path = options.file or RESULTS / f"zoo-{clock}.jsonl"
    path.parent.mkdir(exist_ok=True)
    entries = select_problems(options.half, options.only)
    seeds = range(options.first, options.first + options.seeds)
    omitted = {FAST_TOPICS} | ({SCIKIT_LEARN} if options.passes else set())
    solvers = options.solvers or [s for s in (*SOLVERS, SCIKIT_LEARN) if s not in omitted]
    for entry in [] if options.report else entries:
        for seed in seeds:
            with threadpool_limits(1):
                rows = race(entry, seed, solvers, clock, options.cap)
            with path.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        print(f"{entry.name}: done", file=sys.stderr, flush=True)
    names = {entry.name for entry in entries}
    rows = [r for r in read_rows(path) if r["problem"] in names and r["seed"] in seeds]
    print(format_table(rows))


if __name__ == "__main__":
    main()
