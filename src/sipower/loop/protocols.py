# SPDX-License-Identifier: BSD-3-Clause
"""Protocols of problems, solvers and states: the attributes that `solve` and the solvers use.

A solver lists in `needs` the protocols that its problems must implement. `solve` checks them once,
when it starts.

================  ==================================================================
protocol          required by
================  ==================================================================
`Solvable`        `solve` itself
`Comparable`      `Guarded`; also `Extrapolated` and `Auto`, through `Factorizable`
`ScaleInvariant`  `SciPi`, `SSciPi`
`Factorizable`    `Alternating`, `Extrapolated`, `Auto`
`RowSolvable`     `RowRounds`, and `Auto` where the data are available by row only
================  ==================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

# ---- states ----------------------------------------------------------------------------------


class State(Protocol):
    """The attributes of a state that `solve` reads; a solver's state may have more."""

    @property
    def x(self) -> Any:
        """The current point."""

    @property
    def round(self) -> int:
        """The number of rounds done."""

    @property
    def passes(self) -> float:
        """The number of passes over the data so far."""

    @property
    def step(self) -> float:
        """The step size in use."""

    @property
    def value(self) -> float:
        """The objective at x if the solver knows it, else NaN."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The fields that all states share; a solver adds its iterates and whatever else it needs.

    A state is a flat dataclass of arrays and scalars that holds everything that influences the
    future of a run. A checkpoint saves exactly these fields.
    """

    step: float
    seed: int
    round: int = 0
    passes: float = 0.0
    value: float = math.nan


# ---- problems --------------------------------------------------------------------------------


class Solvable(Protocol):
    """A problem with everything that `solve` requires."""

    maximise: bool

    def value(self, x: Any) -> float:
        """Return the objective at x."""

    def residual(self, x: Any) -> float:
        """Return the distance from optimality, zero at a stationary point."""

    def is_finite(self, x: Any) -> bool:
        """Return whether x holds neither NaN nor infinity."""

    @property
    def evaluation_passes(self) -> float:
        """The cost of one value and one residual, in passes."""


class Comparable(Solvable, Protocol):
    """A problem whose objective a solver can evaluate quickly and compare between rounds."""

    value_passes: float

    def quick_value(self, x: Any) -> float:
        """Return the objective at x, as fast as possible, with an error of at most `rounding`."""

    def rounding(self, value: float) -> float:
        """Return the rounding error that a difference of two objectives near `value` may have."""


class ScaleInvariant(Solvable, Protocol):
    """A finite-sum scale invariant problem on the sphere, as `sipower.problems.base` defines it."""

    degree: float
    sequential: bool
    value_passes: float
    batch_passes: float
    shape: tuple[int, int]
    terms: int | None

    def gradient(self, x: Any, S: Any = None) -> Any:
        """Return ∇f(x), or its estimate from a batch."""

    def item_gradient(self, x: Any, item: int) -> Any:
        """Return row `item` of ∇f(x)."""

    def batch(self, sampling: Any, draw: Any) -> Any:
        """Draw a batch S with E[∇f_S] = ∇f."""

    def anchored_difference(self, x: Any, x0: Any, alpha: Any, S: Any) -> Any:
        """Return ∇f_S(x) − α ∇f_S(x₀)."""

    def inner(self, x: Any, y: Any) -> Any:
        """Return x·y, item by item."""

    def scale(self, x: Any, g: Any) -> Any:
        """Return |x·∇f(x)| as a column."""

    def normalise(self, x: Any) -> Any:
        """Return x/‖x‖, item by item."""

    def retract(self, x_new: Any, x: Any, threshold: float) -> Any:
        """Map x_new, the result of a step from x, back to the feasible set."""

    def start(self, seed: int) -> Any:
        """Draw a random point."""


class Factorizable(Comparable, Protocol):
    """A factorisation problem that is convex in each factor while the other one is fixed."""

    V: Any
    rank: int
    terms: Any

    def start(self, seed: int) -> Any:
        """Draw a random start (W, H)."""

    def half(self, side: int, x: Any) -> Any:
        """Return the convex subproblem in W given H (side 0) or in H given W (side 1)."""

    def balancing_scale(self, x: Any) -> Any:
        """Return the numbers (K,) that balance the columns of W and H, or None."""


class RowSolvable(Solvable, Protocol):
    """A factorisation problem whose rows are updated in one place, which returns sums over them."""

    V: Any
    rank: int
    dtype: Any
    column_mass: Any
    terms: Any

    def start(self, seed: int) -> Any:
        """Draw a random start (W, H)."""

    def place_rows(self, W: Any, H: Any) -> Any:
        """Return W where its rows are; None: the uniform W for H."""

    def update_rows(self, W: Any, W_ahead: Any, H: Any, task: Any) -> Any:
        """Return W and its extrapolation after one round for H, with the sums over the rows."""

    def sum_rows(self, x: Any, *, curvatures: bool) -> Any:
        """Return the sums over the rows at x, and their cost in passes."""

    def rounding(self, value: float) -> float:
        """Return the rounding error that a difference of two objectives near `value` may have."""


# ---- solvers ---------------------------------------------------------------------------------

P_contra = TypeVar("P_contra", bound=Solvable, contravariant=True)
S = TypeVar("S", bound=State)


class Solver(Protocol[P_contra, S]):
    """An iterative algorithm, defined by its initial state and by one round.

    The optional tuple `needs` of a solver lists the protocols that its problems must implement.
    """

    def init(self, problem: P_contra, x0: Any, seed: int) -> S:
        """Return the state before the first round."""

    def advance(self, problem: P_contra, state: S) -> S:
        """Return the state one round later; the given state is not changed."""


def check_contract(problem: Any, solver: Any) -> None:
    """Check that a problem has every attribute that the solver needs."""
    for protocol in (Solvable, *getattr(solver, "needs", ())):
        for name in _members(protocol):
            if not (hasattr(type(problem), name) or name in vars(problem)):
                raise ValueError(
                    f"{type(solver).__name__} needs a problem with `{name}`, which "
                    f"{type(problem).__name__} does not have: define everything that "
                    f"`{protocol.__name__}` in sipower.loop.protocols lists."
                )


def _members(protocol: type) -> list[str]:
    """Return the names that a protocol declares or inherits from other protocols."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    names = [name for base in bases for name in (*base.__annotations__, *vars(base))]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]
