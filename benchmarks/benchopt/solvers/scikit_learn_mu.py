# SPDX-License-Identifier: BSD-3-Clause
"""Multiplicative updates of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from benchmark_utils.curves import CurveSolver, Round
from sklearn.decomposition import non_negative_factorization
from sklearn.exceptions import ConvergenceWarning


class Solver(CurveSolver):
    """scikit-learn's NMF with solver="mu" and the KL divergence.

    It has no callback, so it is called again and again, each time for 8 iterations and an eighth of
    those done so far, and starts from the factors of the last call. A call evaluates D once, which
    costs about one iteration.
    """

    name = "scikit-learn MU"
    requirements = ["scikit-learn"]

    def iterate_rounds(self) -> Iterator[Round]:
        """Yield the factors after each call."""
        W, H, rounds = self.W.copy(), self.H.copy(), 0
        while True:
            yield Round(W, H, rounds)
            iterations = 8 + rounds // 8
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                W, H, _ = non_negative_factorization(
                    self.V, W, H, n_components=len(H), init="custom", solver="mu",
                    beta_loss="kullback-leibler", tol=0, max_iter=iterations,
                )  # fmt: skip
            rounds += iterations
