# SPDX-License-Identifier: BSD-3-Clause
"""Initial factors from a fit with surplus components, which are merged down to K (`merging`).

From a random start, two components often fit the same pattern, and another pattern is missed.
With 1.5 K components few patterns are missed, and components that fit the same one are merged.
"""

from __future__ import annotations

import math

from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.merging import merge_components
from sipower.nmf.power_search import take_power_steps

__all__ = ["surplus_start"]

SURPLUS = 1.5  # the first fit has this many times K components
ROUNDS = 8  # rounds of power steps before the components are merged


def surplus_start(problem: Factorization, seed: int) -> tuple[Factors, float]:
    """Fit surplus components and merge them down to K; return factors and cost in passes."""
    rank = math.ceil(SURPLUS * problem.rank)
    wide = Factorization(problem.V, rank, problem.terms)
    state = take_power_steps(wide, wide.start(seed), ROUNDS)
    merged = merge_components(*state.x, problem.rank)
    return Factors(*(factor.astype(problem.dtype) for factor in merged)), SURPLUS * state.passes
