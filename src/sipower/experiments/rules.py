# SPDX-License-Identifier: BSD-3-Clause
"""The rules of claims.toml as functions, and the verdicts that they give on a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sipower.experiments.compare import Comparison

__all__ = ["Claim", "Finding", "Judgement", "judge_all", "judge_faster", "judge_robust"]

MANY_SEEDS, FEW_SEEDS = 0.8, 0.2  # shares of the seeds
MUCH_FASTER, SIGNIFICANTLY_FASTER = 1.5, 1.1  # median speeds
ROBUST, FAIRLY_ROBUST = 2.0, 5.0  # ratios of errors


@dataclass(frozen=True)
class Judgement:
    """A verdict and the numbers behind it."""

    verdict: str
    numbers: str


@dataclass(frozen=True)
class Finding:
    """The judgements on a claim in one case, per pass and per second."""

    case: str
    passes: Judgement
    seconds: Judgement | None


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and the findings on it, one for each case.

    `quote` has the paper's words and `place` says where they are; `numbers` says what the numbers
    of the findings are, and which rule judges them.
    """

    title: str
    quote: str
    place: str
    numbers: str
    findings: list[Finding]


def judge_faster(result: Comparison) -> str:
    """Judge the claim that a method is faster than another (rule 3)."""
    if result.share >= MANY_SEEDS:
        return "reproduced"
    return "not reproduced" if result.share <= FEW_SEEDS else "mixed"


def judge_much_faster(result: Comparison) -> str:
    """Judge the claim that a method is much faster than another (rule 4)."""
    verdict = judge_faster(result)
    return "mixed" if verdict == "reproduced" and result.speed < MUCH_FASTER else verdict


def judge_not_faster(result: Comparison) -> str:
    """Judge the claim that a method is not significantly faster than another (rule 5)."""
    is_faster = result.share >= MANY_SEEDS and result.speed > SIGNIFICANTLY_FASTER
    return "not reproduced" if is_faster else "reproduced"


def judge_robust(ratio: float) -> str:
    """Judge a ratio of errors (rule 6); NaN, where every run diverged, is not reproduced."""
    if ratio <= ROBUST:
        return "reproduced"
    return "mixed" if ratio <= FAIRLY_ROBUST else "not reproduced"


def judge_all(flags: Iterable[bool]) -> str:
    """Judge a claim on several cases that must hold in each of them (rules 7 and 8)."""
    flags = list(flags)
    return "reproduced" if all(flags) else "mixed" if any(flags) else "not reproduced"


RULES_ON_SPEED: dict[int, Callable[[Comparison], str]] = {
    3: judge_faster,
    4: judge_much_faster,
    5: judge_not_faster,
}
