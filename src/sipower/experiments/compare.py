# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of two methods by seed, in passes or seconds, and the rules of claims.toml."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import NamedTuple

from sipower.experiments.curves import Curves, has_diverged
from sipower.experiments.table import Row

AXES = ("passes", "seconds")
SUBPROBLEM_TOLERANCE = 1e-8  # smaller errors on subproblems count as equal
MANY_SEEDS, FEW_SEEDS = 0.8, 0.2  # limits for the share of the seeds
MUCH_FASTER, SIGNIFICANTLY_FASTER = 1.5, 1.1  # limits for the median speed
ROBUST, FAIRLY_ROBUST = 2.0, 5.0  # limits for the ratio of two errors


class Comparison(NamedTuple):
    """The speeds of method A relative to method B on the seeds that both have."""

    speeds: list[float]  # one per seed; 0 if only B reached the error, ∞ if only A did
    diverged: int  # number of runs of A that diverged

    @property
    def speed(self) -> float:
        """The median speed of A relative to B."""
        return median(self.speeds)

    @property
    def wins(self) -> int:
        """The number of seeds on which A was faster."""
        return sum(speed > 1 for speed in self.speeds)

    @property
    def share(self) -> float:
        """The share of the seeds on which A was faster."""
        return self.wins / len(self.speeds)

    def __str__(self) -> str:
        texts = {0.0: "never reached", math.inf: "reached by the first only"}
        diverged = f", {self.diverged} diverged" if self.diverged else ""
        text = texts.get(self.speed, f"{self.speed:.2g}")
        return f"{text} ({self.wins} of {len(self.speeds)} seeds{diverged})"


def compare(
    curves: Curves, a: Mapping[int, Row], b: Mapping[int, Row], axis: str
) -> Comparison | None:
    """Compare methods A and B at the ends of their runs; return None if they share no seed.

    `a` and `b` map each seed to a run; `axis` is "passes" or "seconds".
    """
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        return None
    speeds = [_relative_speed(curves, a[seed], b[seed], axis) for seed in seeds]
    return Comparison(speeds, sum(has_diverged(a[seed]) for seed in seeds))


def _relative_speed(curves: Curves, a: Row, b: Row, axis: str) -> float:
    """Return the speed of run A relative to run B: the cost of B divided by the cost of A.

    These are the costs to reach the larger of the two errors at the end of the shorter run.
    """
    if has_diverged(a) or has_diverged(b):
        return 1.0 if has_diverged(a) and has_diverged(b) else 0.0 if has_diverged(a) else math.inf
    end = min(a[axis][-1], b[axis][-1])
    errors = [curves.error_at(row, end, axis) for row in (a, b)]
    goal = max(errors)
    if a["problem"] == "subproblem":
        goal = max(goal, SUBPROBLEM_TOLERANCE)
    # A run that ends with this error reaches it at its end, even if its error was lower before.
    cost_a, cost_b = (
        end if error >= goal else curves.cost_to(row, goal, axis, end)
        for row, error in zip((a, b), errors, strict=True)
    )
    return float(cost_b / cost_a)


def compare_at(
    curves: Curves, a: Mapping[int, Row], b: Mapping[int, Row], axis: str, goal: float
) -> Comparison | None:
    """Compare methods A and B at the error `goal`, on the seeds on which A or B reached it.

    The other arguments are those of `compare`. None is returned if there is no such seed.
    """
    costs = [
        (curves.cost_to(a[seed], goal, axis), curves.cost_to(b[seed], goal, axis))
        for seed in sorted(a.keys() & b.keys())
    ]
    speeds = [
        0.0 if math.isinf(cost_a) else cost_b / cost_a
        for cost_a, cost_b in costs
        if not (math.isinf(cost_a) and math.isinf(cost_b))
    ]
    return Comparison(speeds, 0) if speeds else None


# ---- the rules -------------------------------------------------------------------------------


def judge_faster(result: Comparison) -> str:
    """Judge the claim that one method is faster than another (rule 3)."""
    if result.share >= MANY_SEEDS:
        return "reproduced"
    return "not reproduced" if result.share <= FEW_SEEDS else "mixed"


def judge_much_faster(result: Comparison) -> str:
    """Judge the claim that one method is much faster than another (rule 4)."""
    verdict = judge_faster(result)
    return "mixed" if verdict == "reproduced" and result.speed < MUCH_FASTER else verdict


def judge_not_faster(result: Comparison) -> str:
    """Judge the claim that one method is not significantly faster than another (rule 5)."""
    is_faster = result.share >= MANY_SEEDS and result.speed > SIGNIFICANTLY_FASTER
    return "not reproduced" if is_faster else "reproduced"


def judge_robust(ratio: float) -> str:
    """Judge a ratio of errors (rule 6); NaN (all runs diverged) means "not reproduced"."""
    if ratio <= ROBUST:
        return "reproduced"
    return "mixed" if ratio <= FAIRLY_ROBUST else "not reproduced"


def judge_all(flags: Iterable[bool]) -> str:
    """Judge a claim that must hold in every one of several cases (rules 7 and 8)."""
    flags = list(flags)
    return "reproduced" if all(flags) else "mixed" if any(flags) else "not reproduced"


RULES_ON_SPEED: dict[int, Callable[[Comparison], str]] = {
    3: judge_faster,
    4: judge_much_faster,
    5: judge_not_faster,
}
