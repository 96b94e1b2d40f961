# SPDX-License-Identifier: BSD-3-Clause
"""`Rule`: the base class of the update rules of KL-NMF, which take one half-step on a `KLBlock`.

A rule defines how the factor h of a block changes. The loop, the alternation, guards and threads
are elsewhere. `OnBlock` turns any rule into a solver for a single block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from sipower import kernels
from sipower.data.row_blocks import RowBlocks
from sipower.data.sampling import Scheme
from sipower.kernels import FLOOR, Array, Draw, Kernel, Stream
from sipower.loop.protocols import Progress
from sipower.nmf.terms import ModelTerms
from sipower.problems.item_problem import Float
from sipower.problems.kl import KLBlock

__all__ = [
    "BlockState",
    "Half",
    "HalfStep",
    "MeasuredKernel",
    "OnBlock",
    "Rule",
    "check_terms",
    "default_scheme",
    "floor_factor",
]


class HalfStep(NamedTuple):
    """The step size of a half-step, and the key that identifies the half-step within a run.

    Rules with `measures_divergence` fill `divergences`, if given, with the divergence of every item
    after the update.
    """

    step: float
    seed: int
    round: int
    side: int  # 0: rows of V (W), 1: columns of V (H)
    divergences: Array | None = None

    def draw(self, inner: int = 0) -> Draw:
        """Return the key of the random numbers of this half-step, or of one of its inner steps."""
        return Draw(self.seed, Stream.BATCH, self.round, self.side, inner)

    def with_divergences(self, kernel: Kernel) -> Kernel:
        """Return the kernel of an update, followed by that of `divergences` if these are given."""
        return kernel if self.divergences is None else MeasuredKernel(kernel, self.divergences)


@dataclass(frozen=True)
class MeasuredKernel:
    """The kernel of an update, followed by that of the divergences of the updated items.

    Both work on a block while it is in memory, so that data on disk are read once, and data on
    workers need one task for both.
    """

    kernel: Kernel
    divergences: Array

    def __call__(
        self, data: Any, basis: Any, h: Array, begin: int, end: int, out: Array, *extra: Any
    ) -> None:
        """Update the items, then measure their divergences."""
        self.kernel(data, basis, h, begin, end, out, *extra)
        kernels.divergence(data, basis, out, begin, end, self.divergences)


class Rule(ABC):
    """An update rule for one factor given the other one.

    A subclass is a frozen dataclass whose fields are the hyper-parameters, `step` among them.
    """

    step: float
    monotone: ClassVar[bool] = False  # whether the rule never raises D and so needs no guard
    needs_items: ClassVar[bool] = False  # whether the rule needs entries of items, not only sums
    measures_divergence: ClassVar[bool] = False  # whether `HalfStep.divergences` are filled
    # Terms that the rule takes: d ("linear"), also prior counts ("prior"), or all of them.
    terms: ClassVar[Literal["linear", "prior", "all"]] = "linear"

    @abstractmethod
    def update(self, block: KLBlock, h: Array, half_step: HalfStep) -> Array:
        """Return the factor of the block after one update of h, (items, K)."""

    def largest_step(self, V: RowBlocks) -> float:
        """Return the largest step size that a guard may use."""
        return self.step

    def passes(self, block: KLBlock, half_step: HalfStep) -> float:
        """Return the cost of an update in passes."""
        return 1.0


def check_terms(rule: Rule, terms: ModelTerms) -> None:
    """Check that a rule takes the terms of a model."""
    has_others = terms.fixed is not None or terms.has_ridge
    if terms.is_linear or rule.terms == "all" or (rule.terms == "prior" and not has_others):
        return
    what = "fixed components or penalties" if has_others else "prior counts"
    raise ValueError(
        f"{type(rule).__name__} does not take {what}: use solver='auto', 'ccd', 'scd', 'newton', "
        "'mu' or 'rows'."
    )


def default_scheme(V: RowBlocks) -> Scheme:
    """Return the default scheme for drawing batches from V.

    The scheme draws whole vectors if the data are dense or available by row only. Otherwise it
    draws nonzeros of every item.
    """
    return "vectors" if V.dense or not V.has_items else "stratified"


def floor_factor(block: KLBlock, new: Float, h: Array) -> Array:
    """Return the new values of a factor, raised to a floor and converted to the dtype of h.

    Each component keeps at least the share FLOOR of the mass of its item. Where the basis column is
    zero, and in fixed components, h is unchanged; an item without mass becomes zero.
    """
    alive, mass = block.d > 0, block.mass[:, None]
    floor = FLOOR * np.divide(mass, block.d, out=np.zeros(new.shape), where=alive)
    floored = np.where(mass > 0, np.where(alive, np.maximum(new, floor), h), 0)
    fixed = block.item_terms.fixed
    return (floored if fixed is None else np.where(fixed, h, floored)).astype(h.dtype)


@dataclass(frozen=True)
class BlockState(Progress):
    """The state of `OnBlock`: the factor of one side."""

    x: Array
    side: int = 0


class Half:
    """The minimisation problem of one block in h, with its objective and its certified gap.

    Parameters
    ----------
    block
        The convex subproblem of KL-NMF in one factor.
    """

    maximise = False
    evaluation_passes = 1.5

    def __init__(self, block: KLBlock) -> None:
        self.block = block

    def value(self, h: Array) -> float:
        """Return D(V ‖ h Bᵀ) and the penalties."""
        return self.block.divergence(h) + self.block.item_terms.penalty(h)

    def residual(self, h: Array) -> float:
        """Return the certified gap of all items, relative to ΣV."""
        return float(self.block.gaps(h).sum()) / max(self.block.V.total, 1e-300)

    def is_finite(self, h: Array) -> bool:
        """Return whether h contains neither NaN nor infinity."""
        return bool(np.isfinite(h).all())


@dataclass(frozen=True)
class OnBlock:
    """A solver for use with `solve` that applies a rule to a single block.

    Parameters
    ----------
    rule
        The update rule.
    side
        0 for rows of V, 1 for columns. It is part of the key of the random numbers.
    first_round
        Number of the first round, which is also part of that key.
    step
        Step size; None: the step size of the rule.
    """

    rule: Rule
    side: int = 0
    first_round: int = 0
    step: float | None = None

    def init(self, problem: Half, x0: Any, seed: int) -> BlockState:
        """Return the state at x0."""
        step = self.rule.step if self.step is None else self.step
        return BlockState(x0, self.side, step=step, seed=seed, round=self.first_round)

    def advance(self, problem: Half, state: BlockState) -> BlockState:
        """Update all items once."""
        half_step = HalfStep(state.step, state.seed, state.round, state.side)
        x = self.rule.update(problem.block, state.x, half_step)
        passes = state.passes + self.rule.passes(problem.block, half_step)
        return replace(state, x=x, round=state.round + 1, passes=passes, value=math.nan)
