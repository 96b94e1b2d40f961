# SPDX-License-Identifier: BSD-3-Clause
"""Compare `auto` with coordinate descent with extrapolation in time to a small error.

    python benchmarks/auto.py [kos nips mitf wt] [--seeds 5] [--cap 60]

One thread, float32, the same start for both, solvers interleaved. The level of a run is
(D − Dinf)/(D0 − Dinf), where Dinf is its own last value. A run ends after `cap` seconds, or when
the second half of its time has reduced D by less than a hundred-thousandth of the drop. Only the
solver's time counts. Curves are appended to benchmarks/results/late.jsonl, and the ratios are those
of the whole file, so that several processes may share the work. Comparisons with all solvers on
many kinds of data, and of the final values, are in benchmarks/zoo.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
from common import common_start, paper_data, record_curves, run_solver, thin, time_to

from sipower import as_matrix
from sipower.nmf import CCD, Auto, Extrapolated, Factorization

FILE = Path(__file__).parent / "results" / "late.jsonl"
RIVAL = "ccd extrapolated"
SOLVERS = {"auto": Auto(), RIVAL: Extrapolated(CCD())}
LEVELS = (1e-2, 1e-3)
MIN_GAIN = 1e-5


def race(name: str, seed: int, cap: float) -> None:
    """Append the curves of both solvers from one start to the file."""
    V = paper_data(name)
    problem = Factorization(as_matrix(V, dtype=np.float32, n_jobs=1), 20)
    start = common_start(V, seed)
    runs = {s: run_solver(problem, solver, start, seed) for s, solver in SOLVERS.items()}
    curves = record_curves(runs, problem.value, dict.fromkeys(SOLVERS, cap), MIN_GAIN)
    with FILE.open("a") as table:
        for solver, curve in curves.items():
            row = {"set": name, "seed": seed, "solver": solver, "curve": thin(curve)}
            table.write(json.dumps(row) + "\n")


def print_ratios(rows: list[dict[str, Any]]) -> None:
    """Print the time of `auto` over that of its rival, by data set and level."""
    ratios = []
    for name in dict.fromkeys(r["set"] for r in rows):
        runs = {
            s: [r["curve"] for r in rows if (r["set"], r["solver"]) == (name, s)] for s in SOLVERS
        }
        cells = []
        for level in LEVELS:
            times = {s: median(time_to(curve, level) for curve in runs[s]) for s in SOLVERS}
            ratios.append(times["auto"] / times[RIVAL])
            cells.append(f"{level:g}: {ratios[-1]:5.2f} ({times['auto']:7.3f} s)")
        ends = {s: f"{median(curve[-1][1] for curve in runs[s]):.6g}" for s in SOLVERS}
        print(f"{name:6}", "   ".join(cells), "  final values", ends)
    print(f"geometric mean {geometric_mean(ratios):.3f}, largest {max(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("sets", nargs="*", default=["kos", "nips", "mitf", "wt"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--cap", type=float, default=60.0, help="seconds")
    options = parser.parse_args()
    FILE.parent.mkdir(exist_ok=True)
    for name in options.sets:
        for seed in range(options.first, options.first + options.seeds):
            race(name, seed, options.cap)
    rows = [json.loads(line) for line in FILE.read_text().splitlines()]
    print_ratios(list({(r["set"], r["seed"], r["solver"]): r for r in rows}.values()))


if __name__ == "__main__":
    main()
