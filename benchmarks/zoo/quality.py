# SPDX-License-Identifier: BSD-3-Clause
"""Compare the divergence and the time of default fits with fits from random starts, on the zoo.

    python benchmarks/zoo/quality.py --half tuning --seeds 10 [--cap 30] [--threads 1]
    python benchmarks/zoo/quality.py --only kos nips mitf wt docstrings

For every problem KLNMF(K, random_state=seed) and KLNMF(K, init="random", random_state=seed) are
fitted in turns, float32, tol 1e-3. Printed are the median D of the default fits, the best and the
median D of the random ones, and the median wall time of the default fits over that of the others,
and whether

    (a)  the median default fit is at least as good as the best random one,
    (b)  its time is at most 1.3 times that of a random one,
    (c)  the median default fit is at least as good as the median random one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

sys.path.append(str(Path(__file__).parents[1]))

from zoo.problems import HALVES, ZooProblem, select_problems

from sipower import KLNMF

RESULTS = Path(__file__).parents[1] / "results"
STARTS: dict[str, dict[str, Any]] = {"default": {}, "random": {"init": "random"}}
MAX_TIME_RATIO = 1.3
ROUNDING = 1e-6  # relative differences of D below this do not count


def fit_all(
    entry: ZooProblem, seeds: range, cap: float, threads: int
) -> dict[str, list[dict[str, float]]]:
    """Return D, wall time and gap of the fits of every kind of start, fitted in turns.

    Parameters
    ----------
    entry
        Problem of the zoo.
    seeds
        Seeds of the fits.
    cap
        `max_time` of a fit in seconds.
    threads
        Number of threads.
    """
    V = entry.make().astype(np.float32)
    fits: dict[str, list[dict[str, float]]] = {name: [] for name in STARTS}
    for seed in seeds:
        for name, options in STARTS.items():
            model = KLNMF(
                entry.rank, tol=1e-3, max_time=cap, random_state=seed, n_jobs=threads, **options
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                before = time.perf_counter()
                model.fit(V)
                seconds = time.perf_counter() - before
            value, gap = float(model.kl_divergence_), float(model.kkt_residual_)
            fits[name].append({"value": value, "seconds": seconds, "gap": gap})
    return fits


def summarize(fits: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return the medians, the best random value, the ratio of times and the three answers."""
    middle = {name: median(fit["value"] for fit in runs) for name, runs in fits.items()}
    times = {name: median(fit["seconds"] for fit in runs) for name, runs in fits.items()}
    best = min(fit["value"] for fit in fits["random"])
    ratio, slack = times["default"] / times["random"], 1 + ROUNDING
    return {
        "default": middle["default"],
        "best": best,
        "random": middle["random"],
        "seconds": times["default"],
        "ratio": ratio,
        "a": middle["default"] <= best * slack,
        "b": ratio <= MAX_TIME_RATIO,
        "c": middle["default"] <= middle["random"] * slack,
    }


def format_row(name: str, row: dict[str, Any]) -> str:
    """Return a line of the table; differences are relative to the median default value."""
    best, random = (row[key] / row["default"] - 1 for key in ("best", "random"))
    answers = "".join(f"{'yes' if row[key] else 'no':>5}" for key in "abc")
    return (
        f"{name:20}{row['default']:14.7g}{best:+11.3%}{random:+11.3%}"
        f"{row['seconds']:9.2f} s{row['ratio']:8.2f}{answers}"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of problems")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--cap", type=float, default=30.0, help="max_time of a fit in seconds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--file", type=Path, default=RESULTS / "zoo-quality.jsonl")
    options = parser.parse_args(arguments)
    options.file.parent.mkdir(exist_ok=True)
    seeds = range(options.first, options.first + options.seeds)
    print(f"{'':20}{'median D':>14}{'best of':>11}{'median of':>11}{'time of':>11}{'time':>8}")
    print(
        f"{'problem':20}{'default':>14}{'random':>11}{'random':>11}{'default':>11}{'ratio':>8}"
        f"{'a':>5}{'b':>5}{'c':>5}"
    )
    rows = []
    for entry in select_problems(options.half, options.only):
        fits = fit_all(entry, seeds, options.cap, options.threads)
        rows.append(summarize(fits))
        print(format_row(entry.name, rows[-1]), flush=True)
        with options.file.open("a") as file:
            file.write(json.dumps({"problem": entry.name, "seeds": list(seeds)} | fits) + "\n")
    counts = ", ".join(f"({key}) {sum(row[key] for row in rows)}" for key in "abc")
    print(f"of {len(rows)} problems: {counts}")


if __name__ == "__main__":
    main()
