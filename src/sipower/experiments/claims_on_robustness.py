# SPDX-License-Identifier: BSD-3-Clause
"""The paper's claims on robustness, on the signs of the gradients and on the rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

import numpy as np

from sipower.experiments.budgets import BOXPLOTS, TITLES
from sipower.experiments.compare import AXES, CERTIFIED
from sipower.experiments.curves import Curves, diverged, select
from sipower.experiments.rules import MUCH_FASTER, Claim, Finding, Judgement, in_every_case, robust
from sipower.experiments.table import Row

__all__ = ["CLAIMS_ON_RATES", "CLAIMS_ON_ROBUSTNESS", "error_limits"]

ROBUSTNESS = "Section 5, “Robustness of S-SCI-PI”"


def error_limits(curves: Curves, dataset: str) -> dict[str, float]:
    """Return the horizon in passes, and the median seconds that F-SCI-PI takes to it."""
    full = curves.runs("nmf", dataset, "f-sci-pi").values()
    passes = max(row["max_passes"] for row in full)
    seconds = median(float(np.interp(passes, row["passes"], row["seconds"])) for row in full)
    return {"passes": passes, "seconds": seconds}


def _pairs(curves: Curves, dataset: str) -> dict[tuple[float, int], list[Row]]:
    if not curves.runs("nmf", dataset, "f-sci-pi"):
        return {}
    runs = {
        pair: list(curves.runs("nmf", dataset, "s-sci-pi", pair=pair).values())
        for pair in curves.protocol.pairs(dataset)
    }
    return {pair: rows for pair, rows in runs.items() if rows}


def _median_error(curves: Curves, rows: Iterable[Row], axis: str, limit: float) -> float:
    return median(curves.error_at(row, limit, axis) for row in rows)


def _boxplot(
    curves: Curves,
    dataset: str,
    judge: Callable[[list[float], float], tuple[str, str]],
) -> list[Finding]:
    pairs = _pairs(curves, dataset)
    if not pairs:
        return []
    judged = []
    full = curves.runs("nmf", dataset, "f-sci-pi").values()
    lost = sum(diverged(row) for rows in pairs.values() for row in rows)
    seeds = max(map(len, pairs.values()))
    for axis, limit in error_limits(curves, dataset).items():
        errors = {
            (*pair, rows[0]["params"]["step"]): _median_error(curves, rows, axis, limit)
            for pair, rows in pairs.items()
        }
        reference = _median_error(curves, full, axis, limit)
        verdict, numbers = judge(list(errors.values()), reference)
        listed = ", ".join(
            f"({batch:g}, {epoch}, {step:g}) {error:.2g}"
            for (batch, epoch, step), error in errors.items()
        )
        unit = "passes" if axis == "passes" else "s"
        text = f"{numbers}; median errors at {limit:.3g} {unit}: {listed}; F-SCI-PI {reference:.2g}"
        judged.append(Judgement(verdict, f"{text} ({seeds} seeds, {lost} runs diverged)"))
    return [Finding(TITLES[dataset], *judged)]


def _parameters(curves: Curves) -> Claim:
    def judge(errors: list[float], _: float) -> tuple[str, str]:
        ratio = max(errors) / min(errors)
        return robust(ratio), f"largest over smallest {ratio:.2g}"

    return Claim(
        "S-SCI-PI is robust to the batch and the length of an epoch",
        "The boxplots show that the performance of S-SCI-PI is robust to batch proportion s/n and "
        "epoch length m given that step size η is appropriately selected.",
        ROBUSTNESS,
        "Ratio of the median errors over the pairs (s/n, m), each with its best η (rule 6). "
        "Settings are (s/n, m, η).",
        [f for d in BOXPLOTS for f in _boxplot(curves, d, judge)],
    )


def _remarkable(curves: Curves) -> Claim:
    def judge(errors: list[float], reference: float) -> tuple[str, str]:
        gains = [reference / error for error in errors]
        number = sum(gain >= MUCH_FASTER for gain in gains)
        verdict = in_every_case(gain >= MUCH_FASTER for gain in gains)
        return verdict, f"the error is lower by 1.5 or more for {number} of {len(gains)} pairs"

    return Claim(
        "S-SCI-PI improves remarkably over F-SCI-PI on WT",
        "Again, we emphasize that S-SCI-PI has a remarkable improvement over the full gradient "
        "approach (F-SCI-PI) for the dense WT data set.",
        ROBUSTNESS,
        "Error of F-SCI-PI over that of each pair (s/n, m) with its best η (rule 7). Settings are "
        "(s/n, m, η).",
        _boxplot(curves, "wt", judge),
    )


def _starts(curves: Curves) -> Claim:
    findings = []
    for d in (*curves.real, *curves.synthetic):
        rows = curves.runs("nmf", d, "s-sci-pi")
        if len(rows) > 1 and curves.runs("nmf", d, "f-sci-pi"):
            judged = []
            for axis, limit in error_limits(curves, d).items():
                errors = [curves.error_at(row, limit, axis) for row in rows.values()]
                low, high = np.quantile(errors, (0.1, 0.9), method="nearest").tolist()
                judged.append(Judgement(robust(high / low), f"{high / low:.2g} ({len(rows)})"))
            findings.append(Finding(TITLES[d], *judged))
    return Claim(
        "S-SCI-PI is robust to the random start",
        "but also produces robust solutions under random initialization",
        "Section 1",
        "90 % over 10 % quantile of the errors, and the number of seeds (rule 6).",
        findings,
    )


def _signs(curves: Curves) -> Claim:
    findings = []
    for d in curves.real:
        settings: dict[tuple[float, int, float], list[float]] = {}
        for row in select(curves.rows, problem="signs", dataset=d):
            p = row["params"]
            setting = p["batch"], p["epoch"], p["step"]
            settings.setdefault(setting, []).append(row["objective"][-1])
        for (batch, epoch, step), shares in settings.items():
            text = f"{100 * min(shares):.2g} to {100 * max(shares):.2g} % ({len(shares)} seeds)"
            verdict = in_every_case(share > 0 for share in shares)
            case = f"{TITLES[d]}: s/n = {batch:g}, m = {epoch}, η = {step:g}"
            findings.append(Finding(case, Judgement(verdict, text), None))
    return Claim(
        "Variance-reduced gradients have negative entries",
        "if stochastic samples have many zero entries, stochastic variance-reduced gradients can "
        "have some negative elements, which may lead to numerical errors",
        "Section 4, “Practical Considerations”",
        "Share of negative entries before the threshold, over all inner steps on the subproblem "
        "(rule 8): with what was tuned, and with s/n = 0.0001 and the tuned or the full step.",
        findings,
    )


def _linear_rate(curves: Curves) -> Claim:
    findings = []
    for d in curves.real:
        judged = []
        for axis in AXES:
            fits = [
                fit
                for row in curves.runs("subproblem", d, "s-sci-pi").values()
                if (fit := _fits(curves, row, axis))
            ]
            if fits:
                line, power = (median(fit[i] for fit in fits) for i in (0, 1))
                verdict = "reproduced" if line >= 0.95 and line > power else "not reproduced"
                judged.append(
                    Judgement(verdict, f"R² {line:.3f} and {power:.3f} ({len(fits)} seeds)")
                )
        if len(judged) == len(AXES):
            findings.append(Finding(TITLES[d], *judged))
    return Claim(
        "S-SCI-PI converges linearly",
        "we show the expectation of the optimality gap decreases at a linear rate under some "
        "conditions on the step size, epoch length, batch size and initial iterate",
        "Abstract; the theorem of Section 3",
        "R² of the logarithm of the error on the subproblem against the cost, and against its "
        "logarithm (rule 9). Seeds that fall by less than three decades are left out.",
        findings,
    )


def _fits(curves: Curves, row: Row, axis: str) -> tuple[float, float] | None:
    """R² of a line and of a power law, over three decades at least."""
    errors, at = curves.errors(row), np.array(row[axis])
    late = (errors < 0.1) & (errors > CERTIFIED) & (at > 0)
    if late.sum() < 5 or errors[late].max() < 1e3 * errors[late].min():
        return None
    x, y = at[late], np.log(errors[late])
    line, power = (float(np.corrcoef(axis, y)[0, 1] ** 2) for axis in (x, np.log(x)))
    return line, power


CLAIMS_ON_ROBUSTNESS = (_parameters, _remarkable, _starts)
CLAIMS_ON_RATES = (_signs, _linear_rate)
