# SPDX-License-Identifier: BSD-3-Clause
"""What an update rule of KL-NMF is: one half-step on a `KLBlock`, in factor coordinates h.

A rule file says how h changes, given the multiplier G; the loop, the alternation, guards and
threads are elsewhere. Every rule is also a solver of its own for a single block (`OnBlock`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.data.sampling import Scheme
from sipower.kernels import FLOOR, Array, Draw, Stream
from sipower.loop.protocols import Progress
from sipower.problems.kl import Float, KLBlock

__all__ = ["BlockState", "Half", "OnBlock", "Rule", "Turn", "natural_scheme", "put"]


class Turn(NamedTuple):
    """Which half-step of a run this is, and the step size in force."""

    step: float
    seed: int
    round: int
    side: int  # 0: rows of V (W), 1: columns of V (H)

    def draw(self, inner: int = 0) -> Draw:
        """The random numbers of this half-step."""
        return Draw(self.seed, Stream.BATCH, self.round, self.side, inner)


class Rule(ABC):
    """One half-step; hyper-parameters are the fields of the subclass, a frozen dataclass."""

    step: float
    monotone: ClassVar[bool] = False  # never raises the divergence, so needs no guard
    needs_items: ClassVar[bool] = False  # sums over the other side do not suffice

    @abstractmethod
    def update(self, block: KLBlock, h: Array, turn: Turn) -> Array:
        """New h of the block's items."""

    def largest_step(self, V: RowBlocks) -> float:
        """A guard lets the step grow up to this."""
        return self.step

    def passes(self, block: KLBlock, turn: Turn) -> float:
        """Passes that an update costs."""
        return 1.0


def natural_scheme(V: RowBlocks) -> Scheme:
    """Shared vectors for dense data and where only rows are held, terms of every item otherwise."""
    return "vectors" if V.dense or not V.has_items else "stratified"


def put(block: KLBlock, fitted: Float, h: Array) -> Array:
    """Factor from mass-fitted values: floored where alive, unchanged where the basis is zero.

    An item without mass becomes zero.
    """
    alive, mass = block.d > 0, block.c[:, None]
    least = FLOOR * np.divide(mass, block.d, out=np.zeros(fitted.shape), where=alive)
    kept = np.where(alive, np.maximum(fitted, least), h)
    return np.where(mass > 0, kept, 0).astype(h.dtype)


@dataclass(frozen=True)
class BlockState(Progress):
    """The state of a rule on a single block."""

    x: Array
    side: int = 0


class Half:
    """A block as a problem in h: its divergence and its certified gap."""

    maximise = False
    evaluation_passes = 1.5

    def __init__(self, block: KLBlock) -> None:
        self.block = block

    def value(self, h: Array) -> float:
        """D(V ‖ h Bᵀ)."""
        return self.block.divergence(h)

    def residual(self, h: Array) -> float:
        """Certified gap of all items, relative to ΣV."""
        return float(self.block.gaps(h).sum()) / max(self.block.V.total, 1e-300)

    def is_finite(self, h: Array) -> bool:
        """Whether h holds neither NaN nor infinity."""
        return bool(np.isfinite(h).all())


@dataclass(frozen=True)
class OnBlock:
    """A rule as a solver of a single block, for `solve`."""

    rule: Rule
    side: int = 0
    first_round: int = 0
    step: float | None = None  # None: the rule's own

    def init(self, problem: Half, x0: Any, seed: int) -> BlockState:
        """State at x0."""
        step = self.rule.step if self.step is None else self.step
        return BlockState(x0, self.side, step=step, seed=seed, round=self.first_round)

    def advance(self, problem: Half, state: BlockState) -> BlockState:
        """One update of all items."""
        turn = Turn(state.step, state.seed, state.round, state.side)
        x = self.rule.update(problem.block, state.x, turn)
        passes = state.passes + self.rule.passes(problem.block, turn)
        return replace(state, x=x, round=state.round + 1, passes=passes, value=math.nan)
