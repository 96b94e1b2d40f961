# SPDX-License-Identifier: BSD-3-Clause
"""S-SCI-PI for KL-NMF: one epoch of Algorithm 1 on every item of a block.

The fused kernel is `SSciPi` on `KLBlock` item by item (a test holds them equal); where a block has
no items form, or a sparse one is sampled by vectors, that very solver runs instead.

What is not sampled takes the full step of F-SCI-PI, whatever η: the side that `sides` leaves out,
and items with few terms.

Batch and epoch length that are not given come from the data:

    dense, n terms an item    s = 0.7 K,  m = n/s but at most 100; sampled where m is at least 4
    sparse                    s/n = 1/20, m = 10; sampled are items of at least 50 K terms

0.7 K is for terms of equal size; s grows by `Matrix.unevenness`, as the variance of a batch does.
An epoch costs 1 + 1.5 (m − 1) s/n passes, so its batches at most as much as 1.5 full gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sipower import kernels
from sipower.data.row_blocks import RowBlocks
from sipower.data.sampling import Scheme
from sipower.kernels import Array, batch_size
from sipower.nmf.rule import Rule, Turn, natural_scheme, put
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.kl import KLBlock
from sipower.solvers.s_sci_pi import SSciPi, check_epoch, check_threshold
from sipower.solvers.state import PointState, check_positive

__all__ = ["SSciPiRule"]

TERMS_PER_COMPONENT = 50  # a sparse item with fewer terms than this times K is not sampled
DRAWS_PER_COMPONENT = 0.7  # batch of dense data, times K; tuned on WT, as is the next
SHORTEST_EPOCH, LONGEST_EPOCH = 4, 100  # inner steps on dense data
SPARSE_BATCH, SPARSE_EPOCH = 0.05, 10  # s/n and m on sparse data; tuned on KOS and NIPS


class Plan(NamedTuple):
    """An epoch with everything decided."""

    batch: float
    epoch: int
    scheme: Scheme
    shortest: int

    @property
    def samples(self) -> bool:
        """Whether any inner step beyond the first, full one is taken."""
        return self.epoch > 1


@dataclass(frozen=True)
class SSciPiRule(Rule):
    """Variance-reduced stochastic power steps on either or both factors.

    Parameters
    ----------
    step
        η of sampled items.
    batch, epoch
        s/n and m, a number each, or a pair: for the side with the longer sums and for the other.
        None: from the data.
    scheme
        How batches are drawn; None: "vectors" for dense data, "stratified" for sparse data.
    replace
        Draw with replacement.
    threshold
        θ: no component falls below θ times its value in one inner step (in y).
    shortest
        Items with fewer terms take one full step; None: 50 K for sparse data.
    sides
        Which factors are sampled: "both", or only that with the longer sums, "long", as the
        paper does on dense data. The other takes full steps.
    """

    step: float = 1.0
    batch: float | tuple[float, float] | None = None
    epoch: int | tuple[int, int] | None = None
    scheme: Scheme | None = None
    replace: bool = False
    threshold: float = 0.01
    shortest: int | None = None
    sides: Literal["both", "long"] = "both"

    def __post_init__(self) -> None:
        for name, given in (("batch", self.batch), ("epoch", self.epoch)):
            if isinstance(given, tuple) and len(given) != 2:
                raise ValueError(f"{name} has {len(given)} values, expected one or a pair.")
        for batch, epoch in zip(_pair(self.batch), _pair(self.epoch), strict=True):
            check_epoch(
                1.0 if batch is None else batch,
                1 if epoch is None else epoch,
                self.scheme or "vectors",
            )
        check_positive("step", self.step)
        check_threshold(self.threshold)
        if self.sides not in ("both", "long"):
            raise ValueError(f"sides is {self.sides!r}, expected 'both' or 'long'.")

    def update(self, block: KLBlock, h: Array, turn: Turn) -> Array:
        """One epoch."""
        plan = self.plan(block.V, block.shape[1])
        if not plan.samples:
            return SciPiRule().update(block, h, turn._replace(step=self._full_step(turn)))
        fused = block.V.has_items and (block.V.dense or plan.scheme != "vectors")
        return (self._fused if fused else self._generic)(block, h, turn, plan)

    def _fused(self, block: KLBlock, h: Array, turn: Turn, plan: Plan) -> Array:
        V, basis = block.V, block.basis
        if V.dense and plan.scheme != "vectors":
            V = V.sparse()
        epoch = kernels.EpochPlan(
            step=turn.step,
            full_step=self._full_step(turn),
            batch=plan.batch,
            length=plan.epoch,
            threshold=self.threshold,
            shortest=plan.shortest,
            scheme=plan.scheme,
            replace=self.replace,
            key=turn.draw().key,
            at_round=turn.round,
            side=turn.side,
            indptr=V.indptr if plan.scheme == "elements" else None,
        )
        return V.for_items(kernels.epoch, basis, h, np.zeros_like(h), block.c, epoch)

    def _full_step(self, turn: Turn) -> float:
        """η of what is not sampled: 1, or as much less as a guard has shortened the step."""
        return min(turn.step / self.step, 1.0)

    def _generic(self, block: KLBlock, h: Array, turn: Turn, plan: Plan) -> Array:
        solver = SSciPi(
            turn.step, plan.batch, plan.epoch, plan.scheme, self.replace, self.threshold
        )
        state = PointState(
            block.to_sphere(h), turn.side, step=turn.step, seed=turn.seed, round=turn.round
        )
        y = solver.advance(block, state).x
        return put(block, block.from_sphere(y), h)

    # ---- what is decided from the data -------------------------------------------------------

    def plan(self, V: RowBlocks, rank: int) -> Plan:
        """Batch, epoch length and scheme for one side."""
        scheme = self.scheme or natural_scheme(V)
        n, side = V.shape[1], int(V.shape[0] > V.shape[1])
        batch, epoch = _pair(self.batch)[side], _pair(self.epoch)[side]
        if self.sides == "long" and side == 1:
            return Plan(1.0, 1, scheme, 0)
        if scheme == "vectors":
            batch = batch or min(DRAWS_PER_COMPONENT * rank * V.unevenness / max(n, 1), 1.0)
            length = min(int(1 / batch), LONGEST_EPOCH)
            epoch = epoch or (length if length >= SHORTEST_EPOCH else 1)
            return Plan(batch, epoch, scheme, 0)
        shortest = TERMS_PER_COMPONENT * rank if self.shortest is None else self.shortest
        epoch = epoch or (1 if self._all_short(V, shortest) else SPARSE_EPOCH)
        return Plan(batch or SPARSE_BATCH, epoch, scheme, shortest)

    def _all_short(self, V: RowBlocks, shortest: int) -> bool:
        if V.dense or not V.has_items:
            return V.shape[1] < shortest
        return bool(np.diff(V.indptr).max(initial=0) < shortest)

    def largest_step(self, V: RowBlocks) -> float:
        """A guard lets a shortened step grow back to 1: longer ones are too noisy."""
        return max(self.step, 1.0)

    def passes(self, block: KLBlock, turn: Turn) -> float:
        """1 + 1.5 (m − 1) s/n, items that are too short left out."""
        V, plan = block.V, self.plan(block.V, block.shape[1])
        n = V.shape[1]
        drawn = batch_size(plan.batch, n) / max(n, 1)  # s is a whole number
        if plan.scheme != "vectors" and V.has_items and plan.samples:
            terms = np.diff(V.sparse().indptr)
            terms = terms[terms >= plan.shortest]
            if plan.scheme != "elements":  # at least one term of every item
                terms = np.ceil(plan.batch * terms) / plan.batch
            drawn = plan.batch * float(terms.sum() / max(V.nnz, 1))
        return 1 + 1.5 * (plan.epoch - 1) * drawn


def _pair(given: Any) -> tuple[Any, Any]:
    """A setting of the long and of the short side."""
    return given if isinstance(given, tuple) else (given, given)
