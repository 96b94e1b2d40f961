# SPDX-License-Identifier: BSD-3-Clause
"""The objective of the benchmark: generalised KL divergence and certified gap, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.curves import EnoughTime
from benchmark_utils.starts import common_start
from benchopt import BaseObjective

from sipower import as_matrix
from sipower.nmf import Factorization, Factors


class Objective(BaseObjective):
    """KL-NMF: find W, H ≥ 0 that minimise D(V ‖ W H).

    One function computes the divergence of the factors that any solver returns. It is off the
    clock. All solvers get the same start, the same number of threads and data in float32.
    """

    name = "KL-NMF"
    min_benchopt_version = "1.10"
    requirements = ["pip::sipower"]
    sampling_strategy = "callback"
    stopping_criterion = EnoughTime(strategy="callback")
    test_dataset_name = "zoo"
    test_config = {"dataset": {"problem": "tiny"}, "objective": {"max_time": 0.2}}

    # max_time: seconds of each solver; seed: of the start and of random choices.
    parameters = {"max_time": [4.0], "threads": [1], "seed": [0]}

    def skip(self, V: Any, **_data: Any) -> tuple[bool, str | None]:
        """Skip a data set that is not on this machine."""
        if V is None:
            return True, "the data are absent: set SIPOWER_DATA to the folder that contains them"
        return False, None

    def set_data(self, V: Any, rank: int, lowest: float = np.nan) -> None:
        """Store the data, the number of components and the lowest D known, NaN if unknown."""
        self.V, self.rank, self.lowest = V, rank, lowest
        self.problem = Factorization(as_matrix(V, dtype=np.float64), rank)
        self.start = common_start(self.problem, self.seed)

    def get_objective(self) -> dict[str, Any]:
        """Return what every solver gets: data, start, threads, seed and seconds."""
        W, H = self.start
        return {
            "V": self.V.astype(np.float32),
            "W": W.astype(np.float32),
            "H": H.astype(np.float32),
            "threads": self.threads,
            "seed": self.seed,
            "max_time": self.max_time,
        }

    def evaluate_result(
        self,
        W: np.ndarray,
        H: np.ndarray,
        rounds: int = 0,
        passes: float = np.nan,
        cpu_seconds: float = np.nan,
    ) -> dict[str, float]:
        """Return divergence and gap of W (n, K) and H (K, m), and what the solver counted.

        Parameters
        ----------
        W, H
            Factors.
        rounds
            Rounds, or iterations, so far.
        passes
            Passes over the data so far, NaN if the solver does not count them.
        cpu_seconds
            Processor time so far.
        """
        x = Factors(*(np.ascontiguousarray(f, np.float64) for f in (W, H.T)))
        return {
            "value": self.problem.value(x),
            "gap": self.problem.residual(x),
            "lowest": self.lowest,
            "dense": self.problem.V.dense,
            "rounds": rounds,
            "passes": passes,
            "cpu_seconds": cpu_seconds,
        }

    def get_one_result(self) -> dict[str, Any]:
        """Return the start, as `benchopt test` needs some result."""
        W, H = self.start
        return {"W": W, "H": H}
