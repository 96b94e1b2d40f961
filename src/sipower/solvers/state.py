# SPDX-License-Identifier: BSD-3-Clause
"""`PointState`, the state of SCI-PI and S-SCI-PI, and `initial_state`, which creates it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from sipower.loop.protocols import Progress
from sipower.problems.base import Point, Problem


@dataclass(frozen=True)
class PointState(Progress):
    """The state of a solver for a problem on the unit sphere.

    `SSciPi` compares the residual and the objective at each anchor, the first point of an epoch,
    with those at the last anchor to adapt its step size.
    """

    x: Point
    side: int = 0  # part of the key of the random numbers: separates runs with the same seed
    residual: float = math.inf  # residual at the last anchor
    anchor_value: float = -math.inf  # objective at the last anchor


def initial_state(problem: Problem, x0: Point | None, seed: int, step: float) -> PointState:
    """Return the state at x0, or at a random start of the problem if x0 is None."""
    x = problem.start(seed) if x0 is None else np.asarray(x0)
    x = x.astype(np.float64) if x.dtype.kind != "f" else x
    if x.shape != problem.shape:
        raise ValueError(f"`x0` must have shape {problem.shape}, got {x.shape}.")
    if not np.isfinite(x).all() or not x.any():
        raise ValueError("`x0` must be finite and not all zero.")
    return PointState(x=problem.normalise(x), step=step, seed=seed)


def check_positive(name: str, number: float) -> None:
    """Check that a hyper-parameter is a positive finite number."""
    if not (isinstance(number, Real) and number > 0 and math.isfinite(number)):
        raise ValueError(f"`{name}` must be a positive number, got {number}.")
