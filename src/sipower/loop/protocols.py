# SPDX-License-Identifier: BSD-3-Clause
"""The contracts of the loop: what `solve` and each solver need of a problem, a solver, a state.

A solver names in `needs` the protocols that its problems must meet. `solve` checks them once, when
it starts.

================  ==================================================================
`Solvable`        `solve` itself
`Comparable`      `Guarded`, and with `Factorizable` `Extrapolated` and `Auto`
`ScaleInvariant`  `SciPi`, `SSciPi`
`Factorizable`    `Alternating`, `Extrapolated`, `Auto`
`Profilable`      `Profiled`, and `Auto` where only the rows are held
================  ==================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

__all__ = [
    "Comparable",
    "Factorizable",
    "Profilable",
    "Progress",
    "ScaleInvariant",
    "Solvable",
    "Solver",
    "State",
    "check_contract",
]

# ---- states ----------------------------------------------------------------------------------


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


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The part that all states share; each solver adds its iterates and whatever else it needs.

    A state is a flat dataclass of arrays and scalars that holds everything that influences the
    future of a run: a checkpoint is exactly its fields.
    """

    step: float
    seed: int
    round: int = 0
    passes: float = 0.0
    value: float = math.nan


# ---- problems --------------------------------------------------------------------------------


class Solvable(Protocol):
    """What `solve` needs of every problem."""

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


class Comparable(Solvable, Protocol):
    """An objective that a solver may compare after every round."""

    value_passes: float

    def quick_value(self, x: Any) -> float:
        """Objective at x to `rounding`, by the fastest way there is."""

    def rounding(self, value: float) -> float:
        """How far two equal objectives may differ by rounding alone."""


class ScaleInvariant(Solvable, Protocol):
    """A finite-sum scale invariant problem on the sphere; `sipower.problems.base` has the maths."""

    degree: float
    sequential: bool
    value_passes: float
    batch_passes: float
    shape: tuple[int, int]
    terms: int | None

    def gradient(self, x: Any, S: Any = None) -> Any:
        """∇f(x), or its estimate from a batch."""

    def item_gradient(self, x: Any, item: int) -> Any:
        """Row `item` of ∇f(x)."""

    def batch(self, sampling: Any, draw: Any) -> Any:
        """A batch S with E[∇f_S] = ∇f."""

    def anchored(self, x: Any, x0: Any, alpha: Any, S: Any) -> Any:
        """∇f_S(x) − α ∇f_S(x₀)."""

    def inner(self, x: Any, y: Any) -> Any:
        """x·y, item by item."""

    def scale(self, x: Any, g: Any) -> Any:
        """|x·∇f(x)| as a column."""

    def normalise(self, x: Any) -> Any:
        """x/‖x‖, item by item."""

    def retract(self, x_new: Any, x: Any, threshold: float) -> Any:
        """The feasible point of a step."""

    def start(self, seed: int) -> Any:
        """A random point."""


class Factorizable(Comparable, Protocol):
    """A factorisation whose halves are convex problems in one factor each."""

    V: Any
    rank: int

    def half(self, side: int, x: Any) -> Any:
        """The block of W given H (side 0) or of H given W (side 1)."""


class Profilable(Solvable, Protocol):
    """A factorisation whose rows can be solved exactly for a given H."""

    V: Any
    rank: int
    dtype: Any
    column_mass: Any

    def profile(self, H: Any) -> Any:
        """The exact rows for H and the sums over them that a step of H needs."""

    def rounding(self, value: float) -> float:
        """How far two equal objectives may differ by rounding alone."""


# ---- solvers ---------------------------------------------------------------------------------

P_contra = TypeVar("P_contra", bound=Solvable, contravariant=True)
S = TypeVar("S", bound=State)


class Solver(Protocol[P_contra, S]):
    """An algorithm: how it begins, and one round of it.

    It may list in a tuple `needs` the protocols that its problems must meet.
    """

    def init(self, problem: P_contra, x0: Any, seed: int) -> S:
        """State before the first round."""

    def advance(self, problem: P_contra, state: S) -> S:
        """State one round later; the given one stays as it is."""


def check_contract(problem: Any, solver: Any) -> None:
    """Refuse a problem that lacks something the solver needs."""
    for protocol in (Solvable, *getattr(solver, "needs", ())):
        for name in _members(protocol):
            if not (hasattr(type(problem), name) or name in vars(problem)):
                raise ValueError(
                    f"{type(solver).__name__} needs `{name}` of its problem, which "
                    f"{type(problem).__name__} does not have: `{protocol.__name__}` in "
                    "sipower.loop.protocols lists all that it needs."
                )


def _members(protocol: type) -> list[str]:
    """Return the attributes and methods that a protocol and those it extends declare."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    names = [name for base in bases for name in (*base.__annotations__, *vars(base))]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]
