# SPDX-License-Identifier: BSD-3-Clause
"""Count the passes that power methods need to reach the objective of MU on the paper's data.

Run: SIPOWER_DATA=... python benchmarks/passes.py       (counted, not timed; float32; 3 seeds)
"""

from __future__ import annotations

import numpy as np
from common import RANK, common_start, paper_data

from sipower import Guarded, Stop, as_matrix, solve
from sipower.nmf import MU, Alternating, Factorization, SciPiRule, SSciPiRule

ROUNDS = 100
SOLVERS = {
    "sci-pi": Alternating(SciPiRule()),
    "s-sci-pi, long dimension only (the paper)": Alternating(SSciPiRule(sides="long")),
    "s-sci-pi (default)": Alternating(SSciPiRule()),
    "s-sci-pi, guarded": Guarded(Alternating(SSciPiRule())),
    "s-sci-pi, step 2": Alternating(SSciPiRule(step=2.0)),
}


def main() -> None:
    for name in ("kos", "nips", "mitf", "wt"):
        V = paper_data(name)
        problem = Factorization(as_matrix(V, dtype=np.float32), RANK)
        ratios: dict[str, list[float]] = {label: [] for label in SOLVERS}
        for seed in range(3):
            x0 = common_start(V, seed)
            mu = solve(problem, Alternating(MU()), x0, stop=Stop(0, rounds=ROUNDS))
            for label, solver in SOLVERS.items():
                run = solve(problem, solver, x0, stop=Stop(0, passes=mu.passes), trace="every")
                reached = [r.passes for r in run.trace if r.objective <= mu.value]
                ratios[label].append(mu.passes / reached[0] if reached else float("nan"))
        for label, values in ratios.items():
            text = ", ".join(f"{ratio:5.1f}" for ratio in values)
            print(f"{name:5} passes of MU / passes of {label:42} {text}")


if __name__ == "__main__":
    main()
