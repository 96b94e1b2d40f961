# SPDX-License-Identifier: BSD-3-Clause
"""The paper's claims from claims.toml, judged by the results of the runs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from typing import Any

import numpy as np

from sipower.experiments.budgets import BOXPLOTS, COMPARED_VARIANTS, TITLES
from sipower.experiments.compare import (
    AXES,
    MUCH_FASTER,
    RULES_ON_SPEED,
    SUBPROBLEM_TOLERANCE,
    compare,
    judge_all,
    judge_robust,
)
from sipower.experiments.curves import Curves, has_diverged, select
from sipower.experiments.methods import METHODS
from sipower.experiments.table import Row

SPEED = (
    "Speed of the first relative to the second, and in parentheses the number of seeds on which "
    "the first was faster"
)
SAMPLING_CASES = {  # what is compared, for each alternative to the paper's variant
    "both sides": "the longer dimension against both, each with its share",
    "elements, one side": "elements in both dimensions against the longer one only",
    "vectors": "elements against vectors, both dimensions",
}


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

    `quote` is the text of the paper and `place` its location; `numbers` explains the numbers of the
    findings and the rule that judges them.
    """

    title: str
    quote: str
    place: str
    numbers: str
    findings: list[Finding]


def judge_claims(curves: Curves) -> list[Claim]:
    """Return every claim for which `curves` has runs, with its findings."""
    claims = []
    for entry in _read_claims()["claims"]:
        findings = MEASURES[entry["measure"]](curves, entry)
        numbers = f"{entry.get('numbers', SPEED)} (rule {entry['rule']}). {entry.get('note', '')}"
        claim = Claim(entry["title"], entry["quote"], entry["place"], numbers.rstrip(), findings)
        claims.append(claim)
    return [claim for claim in claims if claim.findings]


def rules_text() -> str:
    """Return the rules by which the claims are judged."""
    return str(_read_claims()["rules"])


def _read_claims() -> dict[str, Any]:
    return tomllib.loads(files("sipower.experiments").joinpath("claims.toml").read_text("utf-8"))


# ---- speed ---------------------------------------------------------------------------------------


def _compare_methods(curves: Curves, entry: dict[str, Any]) -> list[Finding]:
    problem = entry["problem"]
    cases = {
        f"{TITLES[d]}: {METHODS[a].label} against {METHODS[b].label}": (
            curves.runs(problem, d, a),
            curves.runs(problem, d, b),
        )
        for d in entry["datasets"]
        for a, b in entry["pairs"]
    }
    return _compare_cases(curves, cases, entry["rule"])


def _compare_variants(curves: Curves, entry: dict[str, Any]) -> list[Finding]:
    """Compare the paper's variant of sampling with the alternatives run on each data set."""
    cases = {
        f"{TITLES[d]}: {SAMPLING_CASES[variant]}": (
            curves.runs("nmf", d, "s-sci-pi"),
            curves.runs("nmf", d, "s-sci-pi", variant),
        )
        for d in curves.real
        for variant in COMPARED_VARIANTS[d]
        if variant in entry["variants"]
    }
    return _compare_cases(curves, cases, rule=3)


def _compare_cases(
    curves: Curves, cases: dict[str, tuple[dict[int, Row], dict[int, Row]]], rule: int
) -> list[Finding]:
    """Return a finding for each case (runs of A, runs of B) that has seeds in common."""
    findings = []
    for case, (a, b) in cases.items():
        results = [compare(curves, a, b, axis) for axis in AXES]
        judge = RULES_ON_SPEED[rule]
        judgements = [Judgement(judge(result), str(result)) for result in results if result]
        if judgements:
            findings.append(Finding(case, *judgements))
    return findings


def compare_beyond_paper(curves: Curves) -> list[Finding]:
    """Return comparisons that the paper does not make, judged by the rule for "faster"."""
    return _compare_methods(curves, _read_claims()["beyond_the_paper"])


# ---- robustness ----------------------------------------------------------------------------------


def _judge_boxplots(
    curves: Curves,
    datasets: Iterable[str],
    judge: Callable[[list[float], float], tuple[str, str]],
) -> list[Finding]:
    """Judge the median errors of S-SCI-PI, one for each pair (s/n, m), and that of F-SCI-PI.

    judge(errors of the pairs, error of F-SCI-PI) returns the verdict and the numbers behind it.
    """
    findings = []
    for d in datasets:
        pairs = curves.runs_by_pair(d)
        if not pairs:
            continue
        judgements = []
        full = curves.runs("nmf", d, "f-sci-pi").values()
        n_diverged = sum(has_diverged(row) for rows in pairs.values() for row in rows)
        seeds = max(map(len, pairs.values()))
        for axis, limit in curves.error_limits(d).items():
            errors = {
                f"({batch:g}, {epoch}, {rows[0]['params']['step']:g})": curves.median_error(
                    rows, limit, axis
                )
                for (batch, epoch), rows in pairs.items()
            }
            reference = curves.median_error(full, limit, axis)
            verdict, numbers = judge(list(errors.values()), reference)
            medians = ", ".join(f"{setting} {error:.2g}" for setting, error in errors.items())
            judgements.append(
                Judgement(
                    verdict,
                    f"{numbers}; median errors at {limit:.3g} {'s' if axis == 'seconds' else axis}:"
                    f" {medians}; F-SCI-PI {reference:.2g} ({seeds} seeds, {n_diverged} runs "
                    "diverged)",
                )
            )
        findings.append(Finding(TITLES[d], *judgements))
    return findings


def _compare_batches(curves: Curves, _: dict[str, Any]) -> list[Finding]:
    def judge(errors: list[float], _: float) -> tuple[str, str]:
        ratio = max(errors) / min(errors)
        return judge_robust(ratio), f"largest over smallest {ratio:.2g}"

    return _judge_boxplots(curves, BOXPLOTS, judge)


def _compare_batches_with_full(curves: Curves, _: dict[str, Any]) -> list[Finding]:
    def judge(errors: list[float], reference: float) -> tuple[str, str]:
        improved = [reference / error >= MUCH_FASTER for error in errors]
        text = f"the error is lower by 1.5 or more for {sum(improved)} of {len(improved)} pairs"
        return judge_all(improved), text

    return _judge_boxplots(curves, ["wt"], judge)


def _compare_starts(curves: Curves, _: dict[str, Any]) -> list[Finding]:
    findings = []
    for d in curves.datasets:
        rows = curves.runs("nmf", d, "s-sci-pi")
        if len(rows) > 1 and curves.runs("nmf", d, "f-sci-pi"):
            judgements = []
            for axis, limit in curves.error_limits(d).items():
                errors = [curves.error_at(row, limit, axis) for row in rows.values()]
                low, high = np.quantile(errors, (0.1, 0.9), method="nearest").tolist()
                text = f"{high / low:.2g} ({len(rows)} seeds)"
                judgements.append(Judgement(judge_robust(high / low), text))
            findings.append(Finding(TITLES[d], *judgements))
    return findings


# ---- signs and rates -----------------------------------------------------------------------------


def _count_negative_entries(curves: Curves, _: dict[str, Any]) -> list[Finding]:
    findings = []
    for d in curves.real:
        shares: dict[str, list[float]] = {}
        for row in select(curves.rows, problem="signs", dataset=d):
            p = row["params"]
            case = f"{TITLES[d]}: s/n = {p['batch']:g}, m = {p['epoch']}, η = {p['step']:g}"
            shares.setdefault(case, []).append(row["objective"][-1])
        for case, values in shares.items():
            text = f"{100 * min(values):.2g} to {100 * max(values):.2g} % ({len(values)} seeds)"
            verdict = judge_all(value > 0 for value in values)
            findings.append(Finding(case, Judgement(verdict, text), None))
    return findings


def _fit_rates(curves: Curves, _: dict[str, Any]) -> list[Finding]:
    findings = []
    for d in curves.real:
        judgements = []
        for axis in AXES:
            rows = curves.runs("subproblem", d, "s-sci-pi").values()
            fits = [fit for row in rows if (fit := _fit_line_and_power(curves, row, axis))]
            if fits:
                line, power = (median(values) for values in zip(*fits, strict=True))
                verdict = "reproduced" if line >= 0.95 and line > power else "not reproduced"
                text = f"R² {line:.3f} and {power:.3f} ({len(fits)} seeds)"
                judgements.append(Judgement(verdict, text))
        if len(judgements) == len(AXES):
            findings.append(Finding(TITLES[d], *judgements))
    return findings


def _fit_line_and_power(curves: Curves, row: Row, axis: str) -> tuple[float, float] | None:
    """Return R² of a linear rate and of a power law, both fitted to the errors of a run.

    None is returned if the errors below 0.1 span less than three decades or 5 evaluations.
    """
    errors, cost = curves.errors(row), np.array(row[axis])
    late = (errors < 0.1) & (errors > SUBPROBLEM_TOLERANCE) & (cost > 0)
    if late.sum() < 5 or errors[late].max() < 1e3 * errors[late].min():
        return None
    x, y = cost[late], np.log(errors[late])
    line, power = (float(np.corrcoef(t, y)[0, 1] ** 2) for t in (x, np.log(x)))
    return line, power


MEASURES: dict[str, Callable[[Curves, dict[str, Any]], list[Finding]]] = {
    "speed": _compare_methods,
    "sampling": _compare_variants,
    "robustness to batches": _compare_batches,
    "improvement by batches": _compare_batches_with_full,
    "robustness to starts": _compare_starts,
    "negative entries": _count_negative_entries,
    "linear rate": _fit_rates,
}
