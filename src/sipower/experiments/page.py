# SPDX-License-Identifier: BSD-3-Clause
"""Everything that is made from the table: figures, the page of verdicts, Table 1."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sipower.datasets import CATALOGUE
from sipower.experiments.curves import best, diverged, select
from sipower.experiments.draw import draw_html, draw_png
from sipower.experiments.figures import TITLES, figures
from sipower.experiments.methods import METHODS
from sipower.experiments.table import Row
from sipower.experiments.verdict import verdicts

__all__ = ["page", "table1", "write"]


def write(rows: list[Row], out: Path) -> list[Path]:
    """Write every figure as PNG and HTML, and the page."""
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures(rows):
        for draw, ending in ((draw_png, "png"), (draw_html, "html")):
            written.append(out / f"{figure.name}.{ending}")
            draw(figure, written[-1])
    written.append(out / "index.md")
    written[-1].write_text(page(rows), encoding="utf-8")
    return written


def table1() -> str:
    """The paper's Table 1 beside the facts."""
    lines = [
        "| set | what | rows x columns | nonzeros | zeros | the paper: samples x features, "
        "nonzeros, sparsity | remark |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, entry in CATALOGUE.items():
        shape, nonzeros, zeros, printed = "depends on versions", "–", "–", "–"
        if entry.shape is not None and entry.nonzeros is not None:
            shape = f"{entry.shape[0]:,} x {entry.shape[1]:,}"
            nonzeros, zeros = f"{entry.nonzeros:,}", f"{entry.zeros:.3f}"
        if entry.printed is not None:
            n, m, nnz, sparsity = entry.printed
            printed = f"{n:,} x {m:,}, {nnz:,}, {sparsity:g}"
        cells = (TITLES[name], entry.what, shape, nonzeros, zeros, printed, entry.remark)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(rows: list[Row]) -> str:
    """Verdicts, figures, f*, tuning, divergences and provenance as one Markdown page."""
    parts = ["# The paper's experiments, run again\n", _how(rows), "## Table 1\n", table1()]
    made = verdicts(rows)
    if made:
        counts = Counter(verdict.verdict for verdict in made)
        total = ", ".join(f"{count} {word}" for word, count in counts.most_common())
        parts += [f"## The claims: {total}\n", "| claim | verdict | numbers |", "|---|---|---|"]
        parts += [f"| {v.claim} | **{v.verdict}** | {v.numbers} |" for v in made]
        parts.append("\n")
    parts += [f"## {f.title}\n\n![{f.title}]({f.name}.png)\n" for f in figures(rows)]
    parts += [_lowest(rows), _tuning(rows), _divergences(rows)]
    return "\n".join(part for part in parts if part) + "\n"


def _how(rows: list[Row]) -> str:
    if not rows:
        return ""
    commits = sorted({row["commit"] for row in rows})
    cpus = sorted({row["cpu"] for row in rows})
    versions = sorted({f"{k} {v}" for row in rows for k, v in row["versions"].items()})
    return (
        f"{len(rows)} runs, K = {rows[0]['rank']}, float64, one thread each, two at a time where "
        f"there are two cores. Processor: {', '.join(cpus)}. Versions: {', '.join(versions)}. "
        f"Commit: {', '.join(commits)}. Every run of a seed starts from the same factors: 5 "
        "multiplicative rounds from Uniform(0, 1). Rows and columns without counts are left out, "
        "rare ones are kept. Seconds are the solver's own; looks at the objective are off the "
        "clock. Tuning S-SCI-PI is not in its seconds (see below).\n"
    )


def _lowest(rows: list[Row]) -> str:
    sets = [name for name in TITLES if any(row["dataset"] == name for row in rows)]
    if not sets:
        return ""
    lines = ["## f*, the lowest value known\n", "| set | f* | found by |", "|---|---|---|"]
    for name in sets:
        found = best(rows, name)
        lines.append(f"| {TITLES[name]} | {found.value:.2f} | {found.found_by} |")
    return "\n".join(lines) + "\n"


def _tuning(rows: list[Row]) -> str:
    lines = []
    for name in TITLES:
        for experiment in ("grid", "subproblem grid"):
            tried = select(rows, dataset=name, experiment=experiment)
            uses = ("subproblem",) if experiment.startswith("sub") else ("nmf", "synthetic")
            best_of = [
                row
                for row in select(rows, dataset=name, method="s-sci-pi")
                if row["experiment"] in uses
            ]
            if tried and best_of:
                seconds = sum(row["seconds"][-1] for row in tried)
                kept = best_of[0]["params"]
                lines.append(
                    f"| {TITLES[name]} | {experiment} | {len(tried)} points, {seconds:.0f} s | "
                    f"s/n = {kept['batch']:g}, m = {kept['epoch']}, η = {kept['step']:g} |"
                )
    head = ["## Tuning of S-SCI-PI\n", "| set | for | spent | kept |", "|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n" if lines else ""


def _divergences(rows: list[Row]) -> str:
    bad = Counter(
        (row["experiment"], TITLES[row["dataset"]], METHODS[row["method"]].label)
        for row in rows
        if diverged(row)
    )
    if not bad:
        return "## Divergences\n\nNone.\n" if rows else ""
    lines = ["## Divergences\n", "| experiment | set | method | runs |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(key)} | {count} |" for key, count in sorted(bad.items())]
    return "\n".join(lines) + "\n"
