# SPDX-License-Identifier: BSD-3-Clause
"""Two methods from the same starts: who is sooner, how much, and on how many seeds.

They are compared at the worse of their two errors after the time that both had, on the convex
subproblem at 1e-8 at the least, where certificates end: A is sooner by the ratio of the seconds
that the two needed to that error. A run that diverged has lost.
"""

from __future__ import annotations

import math
from statistics import median
from typing import NamedTuple

from sipower.experiments.curves import Curves, diverged
from sipower.experiments.protocol import REAL
from sipower.experiments.table import Row

__all__ = ["CERTIFIED", "Duel", "duel", "duels"]

CERTIFIED = 1e-8  # errors of subproblems below this are not told apart


class Duel(NamedTuple):
    """A against B over the seeds that both have."""

    share: float  # of the seeds, on which A was sooner
    sooner: float  # times, median
    seeds: int
    lost: int  # runs of A that diverged

    def __str__(self) -> str:
        seeds = f"{self.share * self.seeds:.0f} of {self.seeds} seeds"
        lost = f", {self.lost} diverged" if self.lost else ""
        return f"sooner on {seeds}, {self.sooner:.2g}x as soon{lost}"


def duel(curves: Curves, ours: dict[int, Row], theirs: dict[int, Row], axis: str) -> Duel | None:
    """Compare two methods, given by seed; None where they share no seed."""
    seeds = sorted(ours.keys() & theirs.keys())
    sooner = [_sooner(curves, ours[seed], theirs[seed], axis) for seed in seeds]
    if not seeds:
        return None
    lost = sum(diverged(ours[seed]) for seed in seeds)
    share = sum(ratio > 1 for ratio in sooner) / len(seeds)
    return Duel(share, median(sooner), len(seeds), lost)


def _sooner(curves: Curves, a: Row, b: Row, axis: str) -> float:
    """Time of B over that of A to the worse of their errors at the end of the shorter run."""
    if diverged(a) or diverged(b):
        return 1.0 if diverged(a) and diverged(b) else 0.0 if diverged(a) else math.inf
    end = min(a[axis][-1], b[axis][-1])
    if axis == "seconds":
        end = min(end, a["seconds_allowed"])
    goal = max(curves.error_at(row, end, axis) for row in (a, b))
    if a["experiment"] == "subproblem":
        goal = max(goal, CERTIFIED)
    # Both are at the goal at that end, also one that rises again after it.
    ours, theirs = (min(curves.time_to(row, goal, axis), end) for row in (a, b))
    return float(theirs / ours)


def duels(
    curves: Curves, a: str, rivals: tuple[str, ...], experiment: str = "nmf"
) -> dict[tuple[str, str], Duel]:
    """A method against others, by set and rival, where the table has both."""
    found = {}
    for d in REAL:
        for b in rivals:
            ours, theirs = (curves.runs(experiment, d, name) for name in (a, b))
            made = duel(curves, ours, theirs, "seconds")
            if made is not None:
                found[d, b] = made
    return found
