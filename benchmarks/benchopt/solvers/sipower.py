# SPDX-License-Identifier: BSD-3-Clause
"""The solvers of sipower."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from benchmark_utils.curves import CurveSolver, Round

from sipower import as_matrix
from sipower.nmf import CCD, Extrapolated, Factorization, Factors, make_solver


class Solver(CurveSolver):
    """The loop of sipower with one of its solvers; `fastTopics-like` imitates that package.

    fastTopics (Carbonetto et al., 2021) alternates four sweeps of coordinate descent over each
    factor and extrapolates after Ang and Gillis (2019).
    """

    name = "sipower"
    parameters = {
        "solver": ["auto", "s-sci-pi", "sci-pi", "mu", "ccd", "ccd-extrapolated"],
    }

    def prepare(self) -> None:
        """Convert the data to blocks of rows."""
        V = as_matrix(self.V, dtype=np.float32, n_jobs=self.threads)
        self.nmf = Factorization(V, self.W.shape[1])

    def iterate_rounds(self) -> Iterator[Round]:
        """Yield the factors of every round."""
        imitations = {"ccd-extrapolated": CCD(), "fastTopics-like": CCD(4)}
        if self.solver in imitations:
            solver = Extrapolated(imitations[self.solver])
        else:
            solver = make_solver(self.solver)
        start = Factors(self.W.copy(), np.array(self.H.T, order="C"))
        state = solver.init(self.nmf, start, self.seed)
        for rounds in count():
            yield Round(state.x.W, state.x.H.T, rounds, state.passes)
            state = solver.advance(self.nmf, state)
