# SPDX-License-Identifier: BSD-3-Clause
"""Local rates of MU and SCI-PI on KL: the eigenvalues b of M in ∇²f(y) = diag(G) − 2M.

M = diag(y) A diag(y) (see `KLBlock.item_curvature`) satisfies M y = G∘y. At a solution y is
therefore an eigenvector with the trivial eigenvalue 1; the other eigenvalues satisfy 0 ≤ b ≤ 1.
Where x_k = 0 at the solution, a round multiplies x_k by G_k^γ instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sipower.problems.base import Point
from sipower.problems.kl import KLBlock

MIN_SUPPORT = 1e-6  # components with a smaller x_k do not belong to the support of a solution

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KLSpectrum:
    """The smallest and largest eigenvalue, b_min and b₂, of M orthogonal to y for each item.

    Near the solution the update x ← x∘G^γ multiplies the error along an eigenvector with eigenvalue
    b by 1 − γb; γ is 1 for MU, 2 for SCI-PI and 2η for SCI-PI with step η.

    M is restricted to the support of the solution. Items without mass, or with one component only,
    have no such eigenvalues and are left out: `items` holds the numbers of the other items.
    """

    items: NDArray[np.intp]
    smallest: Array
    largest: Array

    @property
    def stable_step(self) -> Array:
        """The bound 1/b₂, below which every step size η converges locally."""
        return 1 / np.maximum(self.largest, 1e-300)

    @property
    def best_exponent(self) -> Array:
        """The exponent γ = 2/(b₂ + b_min) with the best local rate."""
        return 2 / np.maximum(self.largest + self.smallest, 1e-300)


def kl_spectrum(block: KLBlock, y: Point) -> KLSpectrum:
    """Return b_min and b₂ of all items at a solution y (items, K)."""
    y = block.normalise(np.asarray(y, np.float64))
    ends = []
    for j in range(block.shape[0]):
        support = y[j] ** 2 > MIN_SUPPORT
        if not block.c[j] > 0 or support.sum() < 2:
            continue
        M = block.item_curvature(y, j)[np.ix_(support, support)]
        # The vector y has the trivial eigenvalue 1, so only its complement is of interest.
        basis = np.linalg.svd(y[j : j + 1, support])[2][1:]
        b = np.linalg.eigvalsh(basis @ M @ basis.T)
        ends.append((j, max(b[0], 0.0), b[-1]))
    numbers, smallest, largest = np.array(ends, np.float64).reshape(-1, 3).T
    return KLSpectrum(numbers.astype(np.intp), smallest, largest)
