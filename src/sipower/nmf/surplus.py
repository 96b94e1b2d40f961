# SPDX-License-Identifier: BSD-3-Clause
"""Initial factors from a fit with surplus components, which are merged down to K (`merging`).

From a random start, two components often fit the same pattern, and another pattern is missed.
With 1.5 K components few patterns are missed, and components that fit the same one are merged.
"""

from __future__ import annotations

import math

from sipower.data.row_blocks import RowBlocks
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.init import initial_factors
from sipower.nmf.merging import merge_components
from sipower.nmf.power_search import take_power_steps

__all__ = ["surplus_start"]

SURPLUS = 1.5  # the first fit has this many times K components
ROUNDS = 8  # rounds of power steps before the components are merged


def surplus_start(V: RowBlocks, rank: int, seed: int) -> tuple[Factors, float]:
    """Fit surplus components and merge them down to `rank`; return factors and cost in passes."""
    wide = Factors(*initial_factors(V, math.ceil(SURPLUS * rank), seed))
    problem = Factorization(V, wide.H.shape[1])
    x, passes = take_power_steps(problem, wide, ROUNDS)
    merged = merge_components(*x, rank)
    return Factors(*(factor.astype(V.dtype) for factor in merged)), SURPLUS * passes
