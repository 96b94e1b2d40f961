# SPDX-License-Identifier: BSD-3-Clause
"""The page of verdicts, computed from the results table alone, and the corrected Table 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from sipower._files import atomic_write
from sipower.datasets import CATALOGUE
from sipower.experiments.budgets import COMPARED_VARIANTS, TITLES, Budget
from sipower.experiments.claims import (
    Claim,
    Finding,
    compare_beyond_paper,
    judge_claims,
    rules_text,
)
from sipower.experiments.compare import AXES, compare_at
from sipower.experiments.curves import Curves, has_diverged
from sipower.experiments.draw import draw_html, draw_png
from sipower.experiments.figures import Figure, figures
from sipower.experiments.methods import METHODS
from sipower.experiments.protocol import Case
from sipower.experiments.table import Row

VERDICTS = ("reproduced", "mixed", "not reproduced")
ERROR_LEVELS = (0.5, 0.2, 0.1, 0.05, 0.02)


def write(rows: list[Row], budget: Budget, out: Path) -> list[Path]:
    """Write the page and all figures, as PNG and HTML, to the folder `out`; return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    curves, paths = Curves(rows, budget), []
    page_figures = figures(curves)
    for figure in page_figures:
        for draw, ending in ((draw_png, "png"), (draw_html, "html")):
            paths.append(out / f"{figure.name}.{ending}")
            draw(figure, paths[-1])
    paths.append(out / "index.md")
    with atomic_write(paths[-1]) as file:
        file.write(page(curves, page_figures).encode())
    return paths


def table1() -> str:
    """Return a Markdown table that compares the paper's Table 1 with the true sizes."""
    heads = [
        "set", "content", "rows x columns", "nonzeros", "zeros",
        "the paper: samples x features, nonzeros, sparsity", "remark",
    ]  # fmt: skip
    return _format_table(heads, [
        (TITLES[name], entry.what, *entry.facts(), entry.remark)
        for name, entry in CATALOGUE.items()
    ])  # fmt: skip


def page(
    curves: Curves, page_figures: list[Figure], preface: str = "", *, links: bool = True
) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    curves, page_figures
        The results of the runs, and the figures computed from them.
    preface
        Text before the verdicts.
    links
        Whether images link to the interactive figures in the same folder.
    """
    claims = judge_claims(curves)
    parts = ["# The paper's experiments, run again\n", _describe_runs(curves.rows), preface]
    if claims:
        parts += [_count_verdicts(claims), "### Rules\n", rules_text()]
        parts += map(_format_claim, claims)
    for figure in page_figures:
        picture = f"![{figure.title}]({figure.name}.png)"
        if links:
            picture = f"[{picture}]({figure.name}.html)"
        parts.append(f"## {figure.title}\n\n{picture}\n")
    parts += [
        _compare_at_levels(curves),
        _describe_other_comparisons(curves),
        _list_errors(curves),
        _list_tuning(curves),
        _list_lowest_values(curves),
        _count_divergences(curves.rows),
        "## Table 1\n",
        table1(),
    ]
    return "\n".join(part for part in parts if part)


def _format_table(heads: list[str], cells: Iterable[Iterable[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _format_section(title: str, text: str, heads: list[str], cells: list[list[str]]) -> str:
    """Return a heading, a text and a table, or an empty string if the table has no cells."""
    if not cells:
        return ""
    return f"## {title}\n\n" + (f"{text}\n\n" if text else "") + _format_table(heads, cells)


def _describe_runs(rows: list[Row]) -> str:
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
        "A pass is one full gradient of one factor; a round of F-SCI-PI takes two. The horizon of "
        "a data set is the number of passes after which its runs end. Seconds are those of the "
        "solver, without evaluations of the objective and without the tuning.\n"
    )


def _count_verdicts(claims: list[Claim]) -> str:
    cells = []
    for axis, unit in (("passes", "pass"), ("seconds", "second")):
        judgements = [getattr(finding, axis) for claim in claims for finding in claim.findings]
        counts = Counter(judgement.verdict for judgement in judgements if judgement)
        cells.append([f"per {unit}", *(str(counts[verdict]) for verdict in VERDICTS)])
    return _format_section("The verdicts", "", ["", *VERDICTS], cells)


def _format_claim(claim: Claim) -> str:
    heads, cells = _tabulate(claim.findings)
    return (
        f"### {claim.title}\n\n> “{claim.quote}” ({claim.place})\n\n{claim.numbers}\n\n"
        f"{_format_table(heads, cells)}"
    )


def _tabulate(findings: list[Finding]) -> tuple[list[str], list[list[str]]]:
    """Return the column headings and the cells of a table of findings."""
    cells = []
    for finding in findings:
        line = [finding.case]
        for judgement in (finding.passes, finding.seconds):
            line += [f"**{judgement.verdict}**", judgement.numbers] if judgement else ["–", "–"]
        cells.append(line)
    return ["case", "per pass", "numbers", "per second", "numbers"], cells


def _compare_at_levels(curves: Curves) -> str:
    """Return a table of speeds relative to F-SCI-PI at several error levels."""
    cells = []
    for d in curves.datasets:
        full = curves.runs("nmf", d, "f-sci-pi")
        for name in ("s-sci-pi", "s-sci-pi guarded"):
            runs = curves.runs("nmf", d, name)
            for axis in AXES:
                results = [compare_at(curves, runs, full, axis, level) for level in ERROR_LEVELS]
                if any(results):
                    numbers = [str(result) if result else "never reached" for result in results]
                    cells.append([TITLES[d], METHODS[name].label, axis, *numbers])
    return _format_section(
        "Speed relative to F-SCI-PI at several errors",
        "The verdicts compare at the error at the end of the runs, this table at fixed errors. "
        "Speeds are medians over the seeds on which the method or F-SCI-PI reached the error; in "
        "parentheses, the number of these seeds on which the method was faster. “Reached by the "
        "first only” means that F-SCI-PI did not reach the error, “never reached” that the method "
        "did not.",
        ["set", "method", "cost in", *(f"error {level:g}" for level in ERROR_LEVELS)],
        cells,
    )


def _describe_other_comparisons(curves: Curves) -> str:
    heads, cells = _tabulate(compare_beyond_paper(curves))
    words = {"**reproduced**": "**faster**", "**not reproduced**": "**not faster**"}
    return _format_section(
        "What the paper does not claim",
        "The paper does not make these comparisons. The guarded S-SCI-PI chooses its batches by "
        "the data and undoes rounds that raise the objective. It is not tuned for a data set, but "
        "its constants were tuned on WT, KOS and NIPS. The numbers are the speed of the first "
        "relative to the second and, in parentheses, the number of seeds on which the first was "
        "faster.",
        heads,
        [[words.get(cell, cell) for cell in line] for line in cells],
    )


def _list_errors(curves: Curves) -> str:
    """Return a table of median errors at the horizon and seconds per pass."""
    cells = []
    for d in curves.datasets:
        full = curves.runs("nmf", d, "f-sci-pi")
        for name, method in METHODS.items():
            rows = curves.runs("nmf", d, name).values() if full and method.in_nmf else ()
            if rows:
                errors = [
                    f"{curves.median_error(rows, limit, axis):.2g}"
                    for axis, limit in curves.error_limits(d).items()
                ]
                cost = median(_seconds_per_pass(row) for row in rows)
                relative = cost / median(_seconds_per_pass(row) for row in full.values())
                cells.append([TITLES[d], method.label, *errors, f"{relative:.2f}", str(len(rows))])
    return _format_section(
        "Errors and costs, medians over the seeds",
        "A run that ends by its limit in seconds before the horizon counts with its last error.",
        ["set", "method", "error at the horizon",
         "error at the seconds of F-SCI-PI to the horizon",
         "seconds per pass relative to F-SCI-PI", "seeds"],
        cells,
    )  # fmt: skip


def _seconds_per_pass(row: Row) -> float:
    return float(row["seconds"][-1] / row["passes"][-1])


def _list_tuning(curves: Curves) -> str:
    """Return a table of the cost and the winning parameters of each tuning."""
    protocol = curves.protocol
    cells = []
    for d in curves.datasets:
        variants = (None, *COMPARED_VARIANTS.get(d, ()))
        cases = [Case("nmf", d, "s-sci-pi", variant) for variant in variants]
        cases += [Case("subproblem", d, "s-sci-pi")]
        cases += [Case(problem, d, "ccd/scd") for problem in ("nmf", "subproblem")]
        for case in cases:
            params = protocol.winner(case)
            if params is not None and protocol.replicates(case):
                rows = [protocol.rows[run.key] for run in protocol.tuning_runs(case)]
                passes, seconds = (sum(row[axis][-1] for row in rows) for axis in AXES)
                cells.append([
                    TITLES[d], case.problem, METHODS[case.method].label,
                    case.variant or "the paper's", f"{len(rows)}", f"{passes:,.0f}",
                    f"{seconds:.0f}", _format_params(dict(params)),
                ])  # fmt: skip
    heads = ["set", "problem", "method", "form", "runs", "passes", "seconds", "chosen"]
    return _format_section("Tuning and its cost", "", heads, cells)


def _format_params(params: dict[str, object]) -> str:
    if "form" in params:
        return str(params["form"]).upper()
    return f"s/n = {params['batch']}, m = {params['epoch']}, η = {params['step']}"


def _list_lowest_values(curves: Curves) -> str:
    datasets = {row["dataset"] for row in curves.rows if row["problem"] == "nmf"}
    cells = [
        [title, f"{curves.best[name].value:.2f}", curves.best[name].run]
        for name, title in TITLES.items()
        if name in datasets and name in curves.best
    ]
    return _format_section("f*, the lowest known value", "", ["set", "f*", "run"], cells)


def _count_divergences(rows: list[Row]) -> str:
    if not rows:
        return ""
    counts = Counter(
        (row["problem"], TITLES[row["dataset"]], METHODS[row["method"]].label)
        for row in rows
        if row["problem"] != "signs" and has_diverged(row)
    )
    cells = [[*key, str(count)] for key, count in sorted(counts.items())]
    title, heads = "Runs that diverged, tuning included", ["problem", "set", "method", "runs"]
    return _format_section(title, "", heads, cells) or f"## {title}\n\nNone.\n"
