# SPDX-License-Identifier: BSD-3-Clause
"""The range of entries that a fit in float32 or float64 can use, and the range of weighted data."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.kernels import Array


def smallest_distinguishable(largest: Any, working: np.dtype[Any]) -> float:
    """Return the smallest entry that a fit can tell from 0.

    The limit keeps quotients of entries within half of the exponent range of the working type.
    """
    return max(1.0, float(largest)) / float(np.sqrt(np.finfo(working).max))


class WeightedRange:
    """The smallest and the largest nonzero of weighted entries, which are added part by part."""

    def __init__(self) -> None:
        self._smallest, self.largest = np.inf, 0.0

    @property
    def smallest(self) -> float:
        """The smallest nonzero; 0 if there is none."""
        return float(self._smallest) if self.largest > 0 else 0.0

    def add(self, products: Array) -> None:
        """Add non-negative float64 numbers, not yet rounded to the working type."""
        self._smallest = products.min(where=products > 0, initial=self._smallest)
        self.largest = float(products.max(initial=self.largest))

    def check(self, working: np.dtype[Any]) -> None:
        """Check that the working type can hold the entries and tell them from 0."""
        fits = self.largest <= float(np.finfo(working).max)
        if not (fits and self._smallest >= smallest_distinguishable(self.largest, working)):
            raise ValueError(
                f"The nonzeros of the data times their weights are from {self.smallest:g} to "
                f"{self.largest:g}, out of range for {working}: rescale the weights, or set "
                "negligible ones to 0."
            )
