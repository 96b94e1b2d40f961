# SPDX-License-Identifier: BSD-3-Clause
"""`SSciPiRule`: S-SCI-PI for KL-NMF, one epoch of Algorithm 1 on every item of a block.

A fused kernel computes for each item what `SSciPi` computes on a `KLBlock`; a test compares the
two. If the data do not give kernels access to single items, or if sparse data are sampled by
vectors, `SSciPi` itself runs.

Items with few nonzeros, and the factor that `sides` excludes, are not sampled: they take the full
step of F-SCI-PI, whatever η is.

Batch size s and epoch length m are chosen from the data unless they are given:

    dense, n entries per item    s = 0.7 K,  m = n/s but at most 100; sampled if m is at least 4
    sparse                       s/n = 1/20, m = 10; only items with at least 50 K nonzeros sampled

The batch size 0.7 K is for entries of equal size. If entries differ in size, the variance of a
batch grows by the factor `Matrix.unevenness`, and s is multiplied by that factor too.
An epoch costs 1 + 1.5 (m − 1) s/n passes, so its batches cost at most 1.5 full gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sipower import kernels
from sipower.data.row_blocks import RowBlocks
from sipower.data.sampling import Scheme
from sipower.kernels import Array, batch_size
from sipower.nmf.rule import HalfStep, Rule, default_scheme, floor_factor
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.kl import KLBlock
from sipower.solvers.s_sci_pi import SSciPi, check_epoch, check_threshold
from sipower.solvers.state import PointState, check_positive

__all__ = ["SSciPiRule"]

MIN_NONZEROS_PER_COMPONENT = 50  # sparse items with fewer than 50·K nonzeros are not sampled
BATCH_PER_COMPONENT = 0.7  # s/K on dense data; tuned on the data set WT
MIN_EPOCH, MAX_EPOCH = 4, 100  # limits of m on dense data; tuned on WT
SPARSE_BATCH, SPARSE_EPOCH = 0.05, 10  # s/n and m on sparse data; tuned on KOS and NIPS


class Plan(NamedTuple):
    """The settings of an epoch after all defaults are resolved."""

    batch: float
    epoch: int
    scheme: Scheme
    shortest: int

    @property
    def is_sampled(self) -> bool:
        """Whether stochastic inner steps follow the first step, which uses the full gradient."""
        return self.epoch > 1


@dataclass(frozen=True)
class SSciPiRule(Rule):
    """Variance-reduced stochastic power steps on one or both factors.

    Parameters
    ----------
    step
        Step size η of sampled items.
    batch, epoch
        Batch size s/n and epoch length m. Of a pair, the first value is for the factor whose
        gradient sums over more terms, the second for the other factor. None: chosen from the data.
    scheme
        How batches are drawn; None: "vectors" for dense data, "stratified" for sparse data.
    replace
        Whether batches are drawn with replacement.
    threshold
        Threshold θ: an inner step reduces no coordinate on the sphere to less than θ times its
        value before the step.
    shortest
        Items with fewer than `shortest` nonzeros take one full step; None: 50 K for sparse data.
    sides
        Which factors are sampled: "both", or "long" for only the factor whose gradient sums over
        more terms, as in the paper on dense data. The other factor then takes full steps.
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
        for name, value in (("batch", self.batch), ("epoch", self.epoch)):
            if isinstance(value, tuple) and len(value) != 2:
                raise ValueError(f"`{name}` must be a number or a pair, got {len(value)} values.")
        for batch, epoch in zip(_pair(self.batch), _pair(self.epoch), strict=True):
            check_epoch(
                1.0 if batch is None else batch,
                1 if epoch is None else epoch,
                self.scheme or "vectors",
            )
        check_positive("step", self.step)
        check_threshold(self.threshold)
        if self.sides not in ("both", "long"):
            raise ValueError(f"`sides` must be 'both' or 'long', got {self.sides!r}.")

    def update(self, block: KLBlock, h: Array, half_step: HalfStep) -> Array:
        """Return h after one epoch."""
        plan = self.plan(block.V, block.shape[1])
        if not plan.is_sampled:
            return SciPiRule().update(block, h, half_step._replace(step=self._full_step(half_step)))
        fused = block.V.has_items and (block.V.dense or plan.scheme != "vectors")
        return (self._run_kernel if fused else self._run_solver)(block, h, half_step, plan)

    def _run_kernel(self, block: KLBlock, h: Array, half_step: HalfStep, plan: Plan) -> Array:
        V, basis = block.V, block.basis
        if V.dense and plan.scheme != "vectors":
            V = V.sparse()
        epoch = kernels.EpochPlan(
            step=half_step.step,
            full_step=self._full_step(half_step),
            batch=plan.batch,
            length=plan.epoch,
            threshold=self.threshold,
            shortest=plan.shortest,
            scheme=plan.scheme,
            replace=self.replace,
            key=half_step.draw().key,
            at_round=half_step.round,
            side=half_step.side,
            indptr=V.indptr if plan.scheme == "elements" else None,
        )
        return V.for_items(kernels.epoch, basis, h, np.zeros_like(h), block.c, epoch)

    def _full_step(self, half_step: HalfStep) -> float:
        """Return η for items that are not sampled: 1, or less if a guard has reduced the step."""
        return min(half_step.step / self.step, 1.0)

    def _run_solver(self, block: KLBlock, h: Array, half_step: HalfStep, plan: Plan) -> Array:
        solver = SSciPi(
            half_step.step, plan.batch, plan.epoch, plan.scheme, self.replace, self.threshold
        )
        state = PointState(
            block.to_sphere(h),
            half_step.side,
            step=half_step.step,
            seed=half_step.seed,
            round=half_step.round,
        )
        y = solver.advance(block, state).x
        return floor_factor(block, block.from_sphere(y), h)

    # ---- defaults from the data --------------------------------------------------------------

    def plan(self, V: RowBlocks, rank: int) -> Plan:
        """Return the settings of an epoch for data V (items, n) and K = `rank` components."""
        scheme = self.scheme or default_scheme(V)
        n, side = V.shape[1], int(V.shape[0] > V.shape[1])
        batch, epoch = _pair(self.batch)[side], _pair(self.epoch)[side]
        if self.sides == "long" and side == 1:
            return Plan(1.0, 1, scheme, 0)
        if scheme == "vectors":
            batch = batch or min(BATCH_PER_COMPONENT * rank * V.unevenness / max(n, 1), 1.0)
            length = min(int(1 / batch), MAX_EPOCH)
            epoch = epoch or (length if length >= MIN_EPOCH else 1)
            return Plan(batch, epoch, scheme, 0)
        shortest = MIN_NONZEROS_PER_COMPONENT * rank if self.shortest is None else self.shortest
        epoch = epoch or (1 if self._are_all_short(V, shortest) else SPARSE_EPOCH)
        return Plan(batch or SPARSE_BATCH, epoch, scheme, shortest)

    def _are_all_short(self, V: RowBlocks, shortest: int) -> bool:
        if V.dense or not V.has_items:
            return V.shape[1] < shortest
        return bool(np.diff(V.indptr).max(initial=0) < shortest)

    def largest_step(self, V: RowBlocks) -> float:
        """Return the largest step size that a guard may use.

        Steps longer than 1 are too noisy.
        """
        return max(self.step, 1.0)

    def passes(self, block: KLBlock, half_step: HalfStep) -> float:
        """Return the cost in passes: 1 + 1.5 (m − 1) s/n; s = 0 for items that are not sampled."""
        V, plan = block.V, self.plan(block.V, block.shape[1])
        n = V.shape[1]
        drawn = batch_size(plan.batch, n) / max(n, 1)  # s/n after rounding s to an integer
        if plan.scheme != "vectors" and V.has_items and plan.is_sampled:
            nonzeros = np.diff(V.sparse().indptr)
            nonzeros = nonzeros[nonzeros >= plan.shortest]
            if plan.scheme != "elements":  # the batch of an item has at least one nonzero
                nonzeros = np.ceil(plan.batch * nonzeros) / plan.batch
            drawn = plan.batch * float(nonzeros.sum() / max(V.nnz, 1))
        return 1 + 1.5 * (plan.epoch - 1) * drawn


def _pair(setting: Any) -> tuple[Any, Any]:
    """Return a setting as a pair; a single value is used for both factors."""
    return setting if isinstance(setting, tuple) else (setting, setting)
