# SPDX-License-Identifier: BSD-3-Clause
"""Initial factors for dense data, fitted first to a sample of the items of the longer side.

If V has far more rows than components, a few hundred of them determine H nearly as well as all rows
do, at a small share of the cost, unless a few rows have most of the mass. The sample is fitted from
the given factors, first by power steps and then by extrapolated Newton steps with a shared Hessian.
One power step and two Newton steps then fit all rows to the new H; rows that were not drawn start
at the uniform point. If V has more columns than rows, columns are drawn instead.
"""

from __future__ import annotations

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Draw, Stream
from sipower.nmf.extrapolated import Extrapolated
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors, lift_zeros
from sipower.nmf.power_search import PowerSearch, take_power_steps
from sipower.nmf.rule import HalfStep
from sipower.nmf.shared_newton import SharedNewton
from sipower.problems.kl import KLBlock

__all__ = ["can_sample_items", "effective_items", "fit_sampled_items"]

# Tuned on WT, MITF, digits, image patches, spectra, heavy-tailed counts and 30,000 x 40 counts.
ITEMS_PER_COMPONENT = 20  # the sample has this many times K items
MIN_RATIO = 4  # the data must have at least this many times the items of the sample
POWER_ROUNDS = 2  # rounds of power steps on the sample
MAX_ROUNDS = 20  # rounds of Newton steps on the sample; fewer if it is a large share of the data


def can_sample_items(V: RowBlocks, rank: int) -> bool:
    """Return whether V is dense and long enough for a sample to pay off.

    Sparse data are not sampled because most features would be too rare in the sample.
    """
    if not (V.dense and V.has_columns):
        return False
    return effective_items(_long_side(V)) >= MIN_RATIO * ITEMS_PER_COMPONENT * rank


def effective_items(V: RowBlocks) -> float:
    """Return (Σ c)²/Σ c² for the masses c of the items: how many there are if they weigh alike.

    If a few items have most of the mass, a random sample misses most of them.
    """
    shares = V.mass / max(float(V.mass.max()), np.finfo(float).tiny)  # squares do not overflow
    return float(shares.sum() ** 2 / max(float(shares @ shares), 1.0))


def _long_side(V: RowBlocks) -> RowBlocks:
    return V.columns if V.shape[1] > V.shape[0] else V


def fit_sampled_items(problem: Factorization, x: Factors, seed: int) -> tuple[Factors, float]:
    """Fit a sample of the longer side from x, then all items; return factors and cost in passes."""
    side = int(problem.V.shape[1] > problem.V.shape[0])  # 1: columns are drawn
    V = _long_side(problem.V)
    items, size = V.shape[0], ITEMS_PER_COMPONENT * problem.rank
    drawn = np.sort(Draw(seed, Stream.SAMPLE).batch(items, size)).astype(np.int64)
    start = Factors(x[side][drawn], x[1 - side])
    rounds = min(MAX_ROUNDS, int(effective_items(V) / (2 * size)))  # at most half a full round
    sample, passes = _fit(V.with_data(V.take(drawn)), start, rounds)
    passes *= size / items
    # A feature that is zero in all drawn items must not keep zeros in H: D would be infinite.
    lift_zeros(sample.H, sample.W.sum(axis=0, dtype=np.float64), V.columns.mass)
    block = KLBlock(V, sample.H)
    h = np.zeros((items, problem.rank), V.dtype)  # kernels replace a zero item by the uniform point
    h[drawn] = sample.W
    for step, rule in enumerate((PowerSearch(), SharedNewton(), SharedNewton())):
        half_step = HalfStep(rule.step, seed, step, side)
        h = rule.update(block, h, half_step)
        passes += rule.passes(block, half_step)
    return (Factors(sample.H, h) if side else Factors(h, sample.H)), passes


def _fit(V: RowBlocks, start: Factors, rounds: int) -> tuple[Factors, float]:
    """Fit V from `start`: power steps, then `rounds` extrapolated rounds of Newton steps."""
    problem, newton = Factorization(V, start.H.shape[1]), Extrapolated(SharedNewton())
    power = take_power_steps(problem, start, POWER_ROUNDS)
    state = newton.init(problem, power.x, 0)
    for _ in range(rounds):
        state = newton.advance(problem, state)
    return state.x, power.passes + state.passes
