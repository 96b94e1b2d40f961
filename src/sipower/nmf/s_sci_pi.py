# SPDX-License-Identifier: BSD-3-Clause
"""S-SCI-PI for KL-NMF: one epoch of Algorithm 1 on every item of a block.

The fused kernel is `SSciPi` on `KLBlock` item by item (a test holds them equal); where a block has
no items form, or a sparse one is sampled by vectors, that very solver runs instead.

What is not given comes from the data. Sampling pays only where an item has many terms: n ≥ 50 K
(sparse), and s ≥ 3 K. Items with fewer terms take one full step.

    dense, n terms an item    s/n = max(1/50, 3K/n), sampled if that is at most 1/2;
                              m = 20 where n ≥ 1,000, else 10
    sparse                    s/n = 1/10,  m = 10

An epoch costs 1 + 1.5 (m − 1) s/n passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from sipower import kernels
from sipower.kernels import Array
from sipower.matrix import Columns, Matrix, Scheme
from sipower.nmf.rule import Rule, Turn, natural_scheme, put
from sipower.nmf.sci_pi import SciPiRule
from sipower.problems.kl import KLBlock
from sipower.solvers.s_sci_pi import SSciPi, check_epoch, check_threshold
from sipower.solvers.state import PointState, check_positive

__all__ = ["SSciPiRule"]

TERMS_PER_COMPONENT = 50  # a sparse item with fewer terms than this times K is not sampled
DRAWS_PER_COMPONENT = 3  # least batch of dense data, times K


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
        η of sampled items; those that are not sampled take at most SCI-PI's own step, η = 1.
    batch, epoch, scheme
        s/n, m and how batches are drawn; None: from the data.
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
    batch: float | None = None
    epoch: int | None = None
    scheme: Scheme | None = None
    replace: bool = False
    threshold: float = 0.01
    shortest: int | None = None
    sides: Literal["both", "long"] = "both"

    def __post_init__(self) -> None:
        epoch = 1 if self.epoch is None else self.epoch
        check_epoch(1.0 if self.batch is None else self.batch, epoch, self.scheme or "vectors")
        check_positive("step", self.step)
        check_threshold(self.threshold)
        if self.sides not in ("both", "long"):
            raise ValueError(f"sides is {self.sides!r}, expected 'both' or 'long'.")

    def update(self, block: KLBlock, h: Array, turn: Turn) -> Array:
        """One epoch."""
        plan = self.plan(block.V, block.shape[1])
        if not plan.samples:
            return SciPiRule().update(block, h, turn._replace(step=min(turn.step, 1.0)))
        fused = isinstance(block.V, Matrix) and (block.V.dense or plan.scheme != "vectors")
        return (self._fused if fused else self._generic)(block, h, turn, plan)

    def _fused(self, block: KLBlock, h: Array, turn: Turn, plan: Plan) -> Array:
        assert isinstance(block.V, Matrix)
        V, basis = block.V, block.basis
        if V.dense and plan.scheme != "vectors":
            V = V.sparse()
        epoch = kernels.EpochPlan(
            step=turn.step,
            full_step=min(turn.step, 1.0),
            batch=plan.batch,
            length=plan.epoch,
            threshold=self.threshold,
            shortest=plan.shortest,
            scheme=plan.scheme,
            replace=self.replace,
            key=turn.draw().key,
            at_round=turn.round,
            side=turn.side,
            elements=self._elements(V, turn, plan),
        )
        return V.for_items(kernels.epoch, basis, h, np.zeros_like(h), block.c, epoch)

    def _elements(self, V: Matrix, turn: Turn, plan: Plan) -> Array:
        """Positions of the inner steps' elements, drawn from all nonzeros at once."""
        if plan.scheme != "elements":
            return np.zeros((1, 0), np.int64)
        draws = (turn.draw(inner=t) for t in range(1, plan.epoch))
        drawn = [V.draw_elements(plan.batch, draw, self.replace) for draw in draws]
        return np.stack([drawn[0], *drawn])  # row t for inner step t; step 0 needs no batch

    def _generic(self, block: KLBlock, h: Array, turn: Turn, plan: Plan) -> Array:
        solver = SSciPi(
            turn.step, plan.batch, plan.epoch, plan.scheme, self.replace, self.threshold
        )
        state = PointState(block.to_sphere(h), turn.step, turn.seed, turn.side, turn.round)
        y = solver.advance(block, state).x
        return put(block, block.from_sphere(y), h)

    # ---- what is decided from the data -------------------------------------------------------

    def plan(self, V: Matrix | Columns, rank: int) -> Plan:
        """Batch, epoch length and scheme for one side."""
        scheme = self.scheme or natural_scheme(V)
        n = V.shape[1]
        if self.sides == "long" and V.shape[0] > n:
            return Plan(1.0, 1, scheme, 0)
        if scheme == "vectors":
            least = DRAWS_PER_COMPONENT * rank / n
            batch = self.batch or max(0.02, least)
            epoch = self.epoch or (1 if least > 0.5 else 20 if n >= 1000 else 10)
            return Plan(min(batch, 1.0), epoch, scheme, 0)
        shortest = TERMS_PER_COMPONENT * rank if self.shortest is None else self.shortest
        epoch = self.epoch or (1 if self._all_short(V, shortest) else 10)
        return Plan(self.batch or 0.1, epoch, scheme, shortest)

    def _all_short(self, V: Matrix | Columns, shortest: int) -> bool:
        if V.dense or isinstance(V, Columns):
            return V.shape[1] < shortest
        return bool(np.diff(V.indptr).max(initial=0) < shortest)

    def largest_step(self, V: Matrix | Columns) -> float:
        """A guard lets η grow beyond 1 on dense data; on sparse data such steps mostly fail."""
        return max(self.step, 4.0 if V.dense else 1.0)

    def passes(self, block: KLBlock, turn: Turn) -> float:
        """1 + 1.5 (m − 1) s/n, items that are too short left out."""
        V, plan = block.V, self.plan(block.V, block.shape[1])
        drawn = plan.batch
        if plan.scheme != "vectors" and isinstance(V, Matrix) and plan.samples:
            terms = np.diff(V.sparse().indptr)
            terms = terms[terms >= plan.shortest]
            if plan.scheme != "elements":  # at least one term of every item
                terms = np.ceil(plan.batch * terms) / plan.batch
            drawn *= float(terms.sum() / max(V.nnz, 1))
        return 1 + 1.5 * (plan.epoch - 1) * drawn
