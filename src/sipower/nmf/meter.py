# SPDX-License-Identifier: BSD-3-Clause
"""`Meter`: the objective after an update of W, computed while the update has the rows in memory."""

from __future__ import annotations

import numpy as np

from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.rule import Rule


class Meter:
    """The quick value of a problem, measured by the rule that updates W where that is possible.

    The value has the same bits as `Factorization.quick_value`, whether it was measured by the rule
    or not. Measuring spares data on disk one read per round.

    Parameters
    ----------
    problem
        The problem. Those with terms besides V, W and H are not measured.
    rule
        The rule that updates W.
    """

    def __init__(self, problem: Factorization, rule: Rule) -> None:
        self._problem = problem
        can_measure = rule.measures_divergence and problem.V.combines_kernels
        is_possible = can_measure and problem.terms.is_plain
        # Pass it to the rule as `HalfStep.divergences`.
        self.divergences = np.empty(problem.V.shape[0]) if is_possible else None

    def value(self, x: Factors) -> float:
        """Return the quick value at x, whose W the rule has just returned, up to a power of two."""
        if self.divergences is None:
            return self._problem.quick_value(x)
        return max(float(self.divergences.sum()), 0.0)
