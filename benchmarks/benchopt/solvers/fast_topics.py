# SPDX-License-Identifier: BSD-3-Clause
"""Poisson NMF of the R package fastTopics, called through rpy2."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from benchmark_utils.curves import CurveSolver, Round

UPDATES = 4
# V ≈ L Fᵀ: F has a row for each feature and L a row for each sample. A fit continues another one
# by `fit0`, with the momentum of its extrapolation.
CODE = """
function(X, F, L, method, threads) {
  fit <- fastTopics::init_poisson_nmf(X, F = F, L = L, verbose = "none")
  control <- list(numiter = 4, nc = threads, extrapolate = TRUE)
  update <- function(n) {
    fit <<- fastTopics::fit_poisson_nmf(X, fit0 = fit, numiter = n, method = method,
                                        control = control, verbose = "none")
    list(F = fit$F, L = fit$L)
  }
  update
}
"""


class Solver(CurveSolver):
    """fastTopics::fit_poisson_nmf with extrapolation, four updates of both factors per round.

    Written from the documentation of fastTopics. The package was not available where this file was
    written: only the conversion of data to R was run, with rpy2 3.5 and R 4.2, not the fit.
    """

    name = "fastTopics"
    requirements = ["pip::rpy2"]
    parameters = {"method": ["scd", "ccd"]}

    def skip(self, **_objective: Any) -> tuple[bool, str | None]:
        """Skip the solver if rpy2 or the R package is missing."""
        if not find_spec("rpy2"):
            return True, "rpy2 is not installed: pip install rpy2 (it needs R)"
        try:
            from rpy2.robjects.packages import isinstalled  # noqa: PLC0415 - optional
        except Exception as problem:  # its versions fit some versions of R only
            return True, f"rpy2 cannot be loaded: {problem}"
        if not isinstalled("fastTopics"):
            return True, 'the R package is not installed: install.packages("fastTopics") in R'
        return False, None

    def prepare(self) -> None:
        """Convert data and start to matrices of R, which are float64 and column by column."""
        self.updates = make_updates(self.V, self.W, self.H, self.method, self.threads)

    def iterate_rounds(self) -> Iterator[Round]:
        """Yield the start, and the factors every four updates."""
        yield Round(self.W, self.H, 0)
        for rounds in count(1):
            F, L = self.updates(UPDATES)
            yield Round(np.asarray(L), np.asarray(F).T, rounds * UPDATES)


def make_updates(V: Any, W: np.ndarray, H: np.ndarray, method: str, threads: int) -> Any:
    """Return the R function that updates a fit some times and returns F and L."""
    from rpy2 import robjects as ro  # noqa: PLC0415 - optional

    factors = (to_r_matrix(H.T), to_r_matrix(W))
    return ro.r(CODE)(to_r_data(V), *factors, method, threads)


def to_r_matrix(array: np.ndarray) -> Any:
    """Convert an array to a matrix of R."""
    from rpy2 import robjects as ro  # noqa: PLC0415 - optional

    values = ro.FloatVector(np.asarray(array, np.float64).ravel(order="F"))
    return ro.r.matrix(values, nrow=array.shape[0])


def to_r_data(V: Any) -> Any:
    """Convert an array to a matrix of R, and sparse data to a dgCMatrix of the package Matrix."""
    from rpy2 import robjects as ro  # noqa: PLC0415 - optional
    from rpy2.robjects.packages import importr  # noqa: PLC0415

    if not sp.issparse(V):
        return to_r_matrix(V)
    csc = sp.csc_array(V)
    return importr("Matrix").sparseMatrix(
        i=ro.IntVector(csc.indices + 1),
        p=ro.IntVector(csc.indptr),
        x=ro.FloatVector(csc.data.astype(np.float64)),
        dims=ro.IntVector(csc.shape),
    )
