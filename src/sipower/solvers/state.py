# SPDX-License-Identifier: BSD-3-Clause
"""The state that SCI-PI and S-SCI-PI carry from round to round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from sipower.loop.protocols import Progress
from sipower.problems.base import Point, Problem

__all__ = ["PointState", "check_positive", "start"]


@dataclass(frozen=True)
class PointState(Progress):
    """The state of a run on one problem of the sphere."""

    x: Point
    side: int = 0  # which of several runs with one seed: each has its own random numbers
    residual: float = math.inf  # at the last anchor, with the objective there: for a step
    anchor_value: float = -math.inf  # that adapts


def start(problem: Problem, x0: Point | None, seed: int, step: float) -> PointState:
    """Return the state at x0, or at the problem's own random start."""
    x = problem.start(seed) if x0 is None else np.asarray(x0)
    x = x.astype(np.float64) if x.dtype.kind != "f" else x
    if x.shape != problem.shape:
        raise ValueError(f"x0 has shape {x.shape}, expected {problem.shape}.")
    if not np.isfinite(x).all() or not x.any():
        raise ValueError("x0 must be finite and not zero everywhere.")
    return PointState(x=problem.normalise(x), step=step, seed=seed)


def check_positive(name: str, number: float) -> None:
    """Refuse a hyper-parameter that is not a positive finite number."""
    if not (isinstance(number, Real) and number > 0 and math.isfinite(number)):
        raise ValueError(f"{name} is {number}, expected a positive number.")
