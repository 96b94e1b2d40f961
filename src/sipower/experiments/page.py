# SPDX-License-Identifier: BSD-3-Clause
"""The page of verdicts, made of the table alone, and the paper's Table 1 beside the facts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from sipower._files import atomic_write
from sipower.datasets import CATALOGUE
from sipower.experiments import rules
from sipower.experiments.budgets import RIVALS, TITLES, Budget
from sipower.experiments.claims import judge_claims
from sipower.experiments.claims_on_robustness import error_limits
from sipower.experiments.claims_on_speed import comparisons_beyond_the_paper
from sipower.experiments.compare import AXES, compare_at
from sipower.experiments.curves import Curves, diverged
from sipower.experiments.draw import draw_html, draw_png
from sipower.experiments.figures import Figure, figures
from sipower.experiments.methods import METHODS
from sipower.experiments.protocol import Case
from sipower.experiments.rules import Claim, Finding
from sipower.experiments.table import Row

__all__ = ["page", "table1", "write"]

VERDICTS = ("reproduced", "mixed", "not reproduced")
LEVELS = (0.5, 0.2, 0.1, 0.05, 0.02)


def write(rows: list[Row], budget: Budget, out: Path) -> list[Path]:
    """Write every figure as PNG and HTML, and the page; return the files."""
    out.mkdir(parents=True, exist_ok=True)
    curves, written = Curves(rows, budget), []
    drawn = figures(curves)
    for figure in drawn:
        for draw, ending in ((draw_png, "png"), (draw_html, "html")):
            written.append(out / f"{figure.name}.{ending}")
            draw(figure, written[-1])
    written.append(out / "index.md")
    with atomic_write(written[-1]) as file:
        file.write(page(curves, drawn).encode())
    return written


def table1() -> str:
    """Return the paper's Table 1 beside the facts."""
    heads = [
        "set", "what", "rows x columns", "nonzeros", "zeros",
        "the paper: samples x features, nonzeros, sparsity", "remark",
    ]  # fmt: skip
    cells = [
        (TITLES[name], entry.what, *entry.facts(), entry.remark)
        for name, entry in CATALOGUE.items()
    ]
    return _table(heads, cells)


def page(curves: Curves, drawn: list[Figure], preface: str = "", *, links: bool = True) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    curves, drawn
        The errors of the runs, and the figures made of them.
    preface
        Text that goes before the verdicts.
    links
        Whether pictures link to the interactive figures beside them.
    """
    claims = judge_claims(curves)
    parts = ["# The paper's experiments, run again\n", _provenance(curves.rows), preface]
    if claims:
        parts += [_counts(claims), "### Rules\n", _rules(), *map(_claim, claims)]
    for figure in drawn:
        picture = f"![{figure.title}]({figure.name}.png)"
        if links:
            picture = f"[{picture}]({figure.name}.html)"
        parts.append(f"## {figure.title}\n\n{picture}\n")
    parts += [
        _levels(curves),
        _beyond(comparisons_beyond_the_paper(curves)),
        _errors(curves),
        _tuning(curves),
        _lowest(curves),
        _divergences(curves.rows),
        "## Table 1\n",
        table1(),
    ]
    return "\n".join(part for part in parts if part)


def _table(heads: Iterable[str], cells: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _provenance(rows: list[Row]) -> str:
    if not rows:
        return ""
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    jobs = " or ".join(sorted({str(row.get("jobs", 1)) for row in rows}))
    cpus = ", ".join(sorted({row["cpu"] for row in rows}))
    versions = ", ".join(sorted({f"{k} {v}" for row in rows for k, v in row["versions"].items()}))
    return (
        f"{len(rows):,} runs of commit {commits}; K = {rows[0]['rank']}, float64, one thread each, "
        f"{jobs} at a time. Processor: {cpus}. Versions: {versions}. All runs of a seed start from "
        "the same factors: 5 multiplicative rounds from Uniform(0, 1), as in the paper. Rows and "
        "columns without counts are left out; the paper also leaves out those with sums below 20. "
        "A pass is one full gradient of one factor; a round of F-SCI-PI is two. Seconds are those "
        "of the solver, without evaluations of the objective and without the tuning.\n"
    )


def _counts(claims: list[Claim]) -> str:
    lines = []
    for axis, unit in (("passes", "pass"), ("seconds", "second")):
        judged = [getattr(finding, axis) for claim in claims for finding in claim.findings]
        counts = Counter(judgement.verdict for judgement in judged if judgement)
        lines.append([f"per {unit}", *(str(counts[verdict]) for verdict in VERDICTS)])
    return "## The verdicts\n\n" + _table(["", *VERDICTS], lines)


def _rules() -> str:
    return (rules.__doc__ or "").partition("\n\n")[2]


def _claim(claim: Claim) -> str:
    quote = re.sub(r"\s+", " ", claim.quote)
    return (
        f"### {claim.title}\n\n> “{quote}” ({claim.place})\n\n{claim.numbers}\n\n"
        f"{_findings(claim.findings)}"
    )


def _findings(findings: list[Finding]) -> str:
    cells = []
    for finding in findings:
        line = [finding.case]
        for judgement in (finding.passes, finding.seconds):
            line += [f"**{judgement.verdict}**", judgement.numbers] if judgement else ["–", "–"]
        cells.append(line)
    return _table(["case", "per pass", "numbers", "per second", "numbers"], cells)


def _levels(curves: Curves) -> str:
    """Speed relative to F-SCI-PI at several errors: the verdicts look at one of them."""
    cells = []
    for d in (*curves.real, *curves.synthetic):
        full = curves.runs("nmf", d, "f-sci-pi")
        for name in ("s-sci-pi", "s-sci-pi guarded"):
            runs = curves.runs("nmf", d, name)
            for axis in AXES:
                results = [compare_at(curves, runs, full, axis, level) for level in LEVELS]
                if any(results):
                    numbers = [str(result) if result else "never reached" for result in results]
                    cells.append([TITLES[d], METHODS[name].label, axis, *numbers])
    if not cells:
        return ""
    heads = ["set", "method", "cost in", *(f"error {level:g}" for level in LEVELS)]
    return (
        "## Speed relative to F-SCI-PI at several errors\n\nThe verdicts compare at the error at "
        "the end of the runs. Median over the seeds on which either method reached the error, and "
        f"on how many of them the former was faster.\n\n{_table(heads, cells)}"
    )


def _beyond(findings: list[Finding]) -> str:
    if not findings:
        return ""
    return (
        "## What the paper does not claim\n\nNone of these methods is compared in the paper. "
        "The guarded S-SCI-PI takes its batches from the data and undoes rounds that raise the "
        "objective. Nothing of it is tuned for a data set, but its constants were tuned on WT, KOS "
        "and NIPS. Speed of the former relative to the latter, and on how many seeds it was "
        f"faster.\n\n{_findings(findings)}"
    )


def _errors(curves: Curves) -> str:
    """Median errors at the horizon and costs of a pass, by set and method."""
    cells = []
    for d in (*curves.real, *curves.synthetic):
        full = curves.runs("nmf", d, "f-sci-pi")
        if not full:
            continue
        limits = error_limits(curves, d)
        for name, method in METHODS.items():
            rows = curves.runs("nmf", d, name) if method.in_nmf else {}
            if not rows:
                continue
            errors = [
                f"{median(curves.error_at(row, limit, axis) for row in rows.values()):.2g}"
                for axis, limit in limits.items()
            ]
            cost = median(_seconds_per_pass(row) for row in rows.values())
            relative = cost / median(_seconds_per_pass(row) for row in full.values())
            cells.append([TITLES[d], method.label, *errors, f"{relative:.2f}", str(len(rows))])
    if not cells:
        return ""
    heads = [
        "set", "method", "error at the horizon", "error at the seconds of F-SCI-PI to the horizon",
        "seconds of a pass relative to F-SCI-PI", "seeds",
    ]  # fmt: skip
    note = "A run that its limit in seconds ends before the horizon counts with its last error.\n"
    return f"## Errors and costs, medians over the seeds\n\n{note}\n{_table(heads, cells)}"


def _seconds_per_pass(row: Row) -> float:
    return float(row["seconds"][-1] / row["passes"][-1])


def _tuning(curves: Curves) -> str:
    """What was screened, what went to the horizon, and what won."""
    protocol = curves.protocol
    cells = []
    for d in (*curves.real, *curves.synthetic):
        cases = [Case("nmf", d, "s-sci-pi")]
        cases += [Case("nmf", d, "s-sci-pi", variant) for variant in RIVALS.get(d, ())]
        cases += [Case("subproblem", d, "s-sci-pi")]
        cases += [Case(problem, d, "ccd/scd") for problem in ("nmf", "subproblem")]
        for case in cases:
            best = protocol.winner(case)
            if best is not None and protocol.replicates(case):
                rows = [protocol.rows[run.key] for run in protocol.tuning_runs(case)]
                spent = [sum(row[axis][-1] for row in rows) for axis in AXES]
                cells.append([
                    TITLES[d], case.problem, METHODS[case.method].label,
                    case.variant or "the paper's", f"{len(rows)}", f"{spent[0]:,.0f}",
                    f"{spent[1]:.0f}", _settings(dict(best)),
                ])  # fmt: skip
    if not cells:
        return ""
    heads = ["set", "problem", "method", "form", "runs", "passes", "seconds", "kept"]
    return f"## Tuning, and what it cost\n\n{_table(heads, cells)}"


def _settings(params: dict[str, object]) -> str:
    if "form" in params:
        return str(params["form"]).upper()
    return f"s/n = {params['batch']}, m = {params['epoch']}, η = {params['step']}"


def _lowest(curves: Curves) -> str:
    datasets = {row["dataset"] for row in curves.rows if row["problem"] == "nmf"}
    cells = [
        [title, f"{curves.best[name].value:.2f}", curves.best[name].run]
        for name, title in TITLES.items()
        if name in datasets and name in curves.best
    ]
    return (
        f"## f*, the lowest value known\n\n{_table(['set', 'f*', 'run'], cells)}" if cells else ""
    )


def _divergences(rows: list[Row]) -> str:
    if not rows:
        return ""
    bad = Counter(
        (row["problem"], TITLES[row["dataset"]], METHODS[row["method"]].label)
        for row in rows
        if row["problem"] != "signs" and diverged(row)
    )
    cells = [[*key, str(count)] for key, count in sorted(bad.items())]
    table = _table(["problem", "set", "method", "runs"], cells) if bad else "None.\n"
    return f"## Runs that diverged, those of the tuning included\n\n{table}"
