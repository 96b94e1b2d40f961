# SPDX-License-Identifier: BSD-3-Clause
"""Mini-batch multiplicative updates of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from benchmark_utils.curves import CurveSolver, Round
from sklearn.decomposition import MiniBatchNMF

BATCH = 512


class Solver(CurveSolver):
    """scikit-learn's MiniBatchNMF, one epoch per round.

    W of all rows is solved for the final H when D is evaluated; this is off the clock, in favour of
    the package.
    """

    name = "scikit-learn MiniBatchNMF"
    requirements = ["scikit-learn"]

    def iterate_rounds(self) -> Iterator[Round]:
        """Yield the start, and a placeholder for W after each epoch."""
        self.model = MiniBatchNMF(
            len(self.H), init="custom", beta_loss="kullback-leibler",
            random_state=self.seed, batch_size=BATCH,
        )  # fmt: skip
        yield Round(self.W, self.H, 0)
        first: dict[str, Any] = {"W": self.W[:BATCH].copy(), "H": self.H.copy()}
        for rounds in count(1):
            for at in range(0, self.V.shape[0], BATCH):
                self.model.partial_fit(self.V[at : at + BATCH], **first)
                first = {}
            yield Round(self.W, self.model.components_, rounds)

    def get_result(self) -> dict[str, Any]:
        """Return factors and counters, with W solved for H after the first epoch."""
        result = super().get_result()
        return result | ({"W": self.model.transform(self.V)} if self.last.rounds else {})
