# SPDX-License-Identifier: BSD-3-Clause
"""The rules by which the table decides on the paper's claims.

Every claim is judged twice, per pass and per second.

1. Error: |f − f*| / |f₀ − f*|, as in the paper. f* is the lowest value known, on a subproblem its
   certified minimum.
2. Speed: two methods are compared seed by seed from the same start, at the worse of their two
   errors after the passes (or seconds) that both had; on a subproblem at 1e-8 at the least. The
   speed of A relative to B is the cost of B to that error divided by the cost of A. A run that
   left the finite numbers, or ended above its start, never reached it.
3. "A is faster than B" is reproduced if A is faster on at least four seeds of five, not reproduced
   if on at most one of five, and mixed otherwise.
4. "Much faster", "much slower", "remarkable" ask for a median speed of at least 1.5 besides;
   faster on four seeds of five but by less is mixed.
5. "Does not outperform (significantly)" is reproduced unless A is faster on at least four seeds of
   five and by more than 1.1 in the median.
6. "Robust" asks for a ratio of errors of at most 2; up to 5 is mixed. The ratio is that of the
   largest to the smallest median error over the pairs (s/n, m), or that of the 90 % to the 10 %
   quantile over the seeds; at the horizon, or at the seconds that F-SCI-PI takes to the horizon.
7. Boxplots: the remarkable improvement is asked of every pair (s/n, m), by rule 4; it is mixed if
   some pairs have it.
8. Negative entries of the gradients are reproduced where there are any.
9. Convergence is linear if over at least three decades below 0.1 the logarithm of the error fits
   a line in the passes (or seconds) with R² of at least 0.95, and better than one in their
   logarithm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sipower.experiments.compare import Comparison

__all__ = [
    "MUCH_FASTER",
    "Claim",
    "Finding",
    "Judgement",
    "faster",
    "in_every_case",
    "much_faster",
    "not_better",
    "robust",
]

MOST_SEEDS, FEW_SEEDS = 0.8, 0.2
MUCH_FASTER = 1.5
SIGNIFICANTLY_FASTER = 1.1
ROBUST, FAIRLY_ROBUST = 2.0, 5.0


@dataclass(frozen=True)
class Judgement:
    """A verdict and the numbers behind it."""

    verdict: str
    numbers: str


@dataclass(frozen=True)
class Finding:
    """What became of a claim in one case, per pass and per second."""

    case: str
    passes: Judgement
    seconds: Judgement | None


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: the quotation, its place, and what was found.

    Parameters
    ----------
    title
        What is compared.
    quote, place
        The paper's words, and where they are.
    numbers
        What the numbers of the findings are, with the rule that judges them.
    findings
        One per case.
    """

    title: str
    quote: str
    place: str
    numbers: str
    findings: list[Finding]


def faster(result: Comparison) -> str:
    """Rule 3."""
    if result.share >= MOST_SEEDS:
        return "reproduced"
    return "not reproduced" if result.share <= FEW_SEEDS else "mixed"


def much_faster(result: Comparison) -> str:
    """Rule 4."""
    verdict = faster(result)
    return "mixed" if verdict == "reproduced" and result.speed < MUCH_FASTER else verdict


def not_better(result: Comparison) -> str:
    """Rule 5."""
    better = result.share >= MOST_SEEDS and result.speed > SIGNIFICANTLY_FASTER
    return "not reproduced" if better else "reproduced"


def robust(ratio: float) -> str:
    """Rule 6; NaN, where everything diverged, is not reproduced."""
    if ratio <= ROBUST:
        return "reproduced"
    return "mixed" if ratio <= FAIRLY_ROBUST else "not reproduced"


def in_every_case(flags: Iterable[bool]) -> str:
    """Rule 7."""
    flags = list(flags)
    return "reproduced" if all(flags) else "mixed" if any(flags) else "not reproduced"
