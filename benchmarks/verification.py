# SPDX-License-Identifier: BSD-3-Clause
"""Measure what the verification of a fit costs.

    python benchmarks/verification.py

KOS and WT (the folder is in the variable SIPOWER_DATA) and counts of 20,000 x 5,000, K = 20, one
thread. Fits with and without verification take turns; the share is that of the medians.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from common import paper_data

import sipower
from sipower.datasets import poisson_topics

REPEATS, RANK = 3, 20


def fit_seconds(V: object, verify: bool) -> tuple[float, float]:
    """Return the seconds of a fit and its number of passes."""
    model = sipower.KLNMF(RANK, random_state=0, n_jobs=1, verify=verify)
    started = time.process_time()
    model.fit(V)
    return time.process_time() - started, model.trace_[-1].passes


def main() -> None:
    warnings.simplefilter("ignore")
    data = {
        "KOS": lambda: paper_data("kos"),
        "WT": lambda: paper_data("wt"),
        "20,000 x 5,000": lambda: poisson_topics(20_000, 5_000, RANK, length=150, seed=0),
    }
    for name, make in data.items():
        V = make()
        with_it, without = [], []
        for _ in range(REPEATS):
            without.append(fit_seconds(V, verify=False))
            with_it.append(fit_seconds(V, verify=True))
        a, b = (float(np.median([s for s, _ in runs])) for runs in (with_it, without))
        print(
            f"{name}: {b:.2f} s and {without[0][1]:.0f} passes without, {a:.2f} s with "
            f"verification: {a / b - 1:+.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
