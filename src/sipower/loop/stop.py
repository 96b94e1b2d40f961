# SPDX-License-Identifier: BSD-3-Clause
"""`Stop`, the stopping rules of a run, and `Status`, the reason why it stopped."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Protocol


class Status(enum.Enum):
    """The reason why `solve` or a fit stopped."""

    CONVERGED = "converged"
    MAX_ROUNDS = "max_rounds"
    MAX_PASSES = "max_passes"
    MAX_SECONDS = "max_seconds"
    STOPPED = "stopped"  # a callback returned true
    INTERRUPTED = "interrupted"
    NOT_FINITE = "not_finite"
    STALLED = "stalled"  # the objective no longer falls although the gap is open
    WORKING_PRECISION = "working_precision"  # as before, in a working type other than float64
    NOT_VERIFIED = "not_verified"  # the verifier contradicts the certificate of the solver

    def __str__(self) -> str:
        return self.value


class Work(Protocol):
    """An object that counts rounds and passes: a state or a record of the trace."""

    @property
    def round(self) -> int:
        """The number of rounds done."""

    @property
    def passes(self) -> float:
        """The number of passes over the data."""


@dataclass(frozen=True)
class Stop:
    """The stopping rules of a run.

    Parameters
    ----------
    tol
        The run has converged when its residual is at most `tol`.
    rounds, passes, seconds
        Limits on rounds, passes over the data and wall time; None: no limit.
    rounding
        Function that returns the rounding error of the objective of a record. With it, a run also
        stops when it has stalled (`sipower.loop.stall`). None: it goes on.
    """

    tol: float = 1e-6
    rounds: int | None = 1000
    passes: float | None = None
    seconds: float | None = None
    rounding: Callable[[Any], float] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("tol", "rounds", "passes", "seconds"):
            limit = getattr(self, name)
            number = isinstance(limit, Real) and float(limit) >= 0
            if not number and (limit is not None or name == "tol"):
                raise ValueError(f"`{name}` must be a non-negative number, got {limit}.")

    def reached_limit(self, done: Work, elapsed: float) -> Status | None:
        """Return the status for the limit that is reached, or None if no limit is reached."""
        if self.rounds is not None and done.round >= self.rounds:
            return Status.MAX_ROUNDS
        if self.passes is not None and done.passes >= self.passes:
            return Status.MAX_PASSES
        if self.seconds is not None and elapsed >= self.seconds:
            return Status.MAX_SECONDS
        return None

    def remaining(self, done: Work, elapsed: float) -> Stop:
        """Return stopping rules whose limits are reduced by the work already done."""
        return replace(
            self,
            rounds=None if self.rounds is None else max(self.rounds - done.round, 0),
            passes=None if self.passes is None else max(self.passes - done.passes, 0.0),
            seconds=None if self.seconds is None else max(self.seconds - elapsed, 0.0),
        )
