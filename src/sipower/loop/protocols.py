# SPDX-License-Identifier: BSD-3-Clause
"""What `solve` asks of a problem, of a solver and of its state."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

__all__ = ["Solvable", "Solver", "State"]


class State(Protocol):
    """What `solve` reads of a state; a solver's own dataclass has more."""

    @property
    def x(self) -> Any:
        """The point."""

    @property
    def round(self) -> int:
        """Rounds done."""

    @property
    def passes(self) -> float:
        """Passes over the data so far."""

    @property
    def step(self) -> float:
        """Step size in use."""

    @property
    def value(self) -> float:
        """Objective at x where the solver knows it, else NaN."""


P_contra = TypeVar("P_contra", bound="Solvable", contravariant=True)
S = TypeVar("S", bound=State)


class Solvable(Protocol):
    """What `solve` asks of a problem: an objective, an optimality residual and what they cost."""

    maximise: bool

    def value(self, x: Any) -> float:
        """Objective at x."""

    def residual(self, x: Any) -> float:
        """Distance from optimality, zero at a stationary point."""

    def is_finite(self, x: Any) -> bool:
        """Whether x holds neither NaN nor infinity."""

    @property
    def evaluation_passes(self) -> float:
        """Passes that one value and one residual cost."""


class Solver(Protocol[P_contra, S]):
    """An algorithm: how to begin and one round of it."""

    def init(self, problem: P_contra, x0: Any, seed: int) -> S:
        """State before the first round."""

    def advance(self, problem: P_contra, state: S) -> S:
        """State one round later; the given one stays as it is."""
