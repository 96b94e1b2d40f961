# SPDX-License-Identifier: BSD-3-Clause
"""Everything that is made from the table: figures, the page of verdicts, Table 1."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

from sipower.datasets import CATALOGUE
from sipower.experiments import verdict
from sipower.experiments.curves import Curves, diverged, select
from sipower.experiments.draw import draw_html, draw_png
from sipower.experiments.figures import TITLES, Figure, figures
from sipower.experiments.methods import METHODS
from sipower.experiments.table import Row
from sipower.experiments.verdict import verdicts
from sipower.files import replacing

__all__ = ["page", "table1", "write"]

PAPER_GRID = ((0.0001, 0.001, 0.01, 0.1, 1), (10, 100, 1000))  # s/n and m


def write(rows: list[Row], out: Path) -> list[Path]:
    """Write every figure as PNG and HTML, and the page."""
    out.mkdir(parents=True, exist_ok=True)
    drawn, written = figures(rows), []
    for figure in drawn:
        for draw, ending in ((draw_png, "png"), (draw_html, "html")):
            written.append(out / f"{figure.name}.{ending}")
            draw(figure, written[-1])
    written.append(out / "index.md")
    with replacing(written[-1]) as file:
        file.write(page(rows, drawn).encode())
    return written


def table1() -> str:
    """The paper's Table 1 beside the facts."""
    lines = [
        "| set | what | rows x columns | nonzeros | zeros | the paper: samples x features, "
        "nonzeros, sparsity | remark |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, entry in CATALOGUE.items():
        cells = (TITLES[name], entry.what, *entry.facts(), entry.remark)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(rows: list[Row], drawn: list[Figure], why: dict[str, str] | None = None) -> str:
    """Verdicts, figures, f*, tuning, divergences and provenance as one Markdown page.

    `why` explains verdicts, by claim, where a person has looked into them.
    """
    parts = ["# The paper's experiments, run again\n", _how(rows), "## Table 1\n", table1()]
    made = verdicts(rows)
    if made:
        counts = Counter(v.verdict for v in made)
        total = ", ".join(f"{count} {word}" for word, count in counts.most_common())
        parts += [f"## The claims: {total}\n", (verdict.__doc__ or "").partition("\n\n")[2]]
        cells = [[v.claim, f"**{v.verdict}**", v.numbers] for v in made]
        heads = ["claim", "verdict", "numbers"]
        if why:
            heads.append("why")
            cells = [[*line, why.get(line[0], "")] for line in cells]
        parts += [_line(heads), _line(["---"] * len(heads)), *map(_line, cells)]
        parts.append("\n")
    for figure in drawn:
        picture = f"![{figure.title}]({figure.name}.png)"
        if why is None:  # the published page has no interactive figures beside it
            picture = f"[{picture}]({figure.name}.html)"
        parts.append(f"## {figure.title}\n\n{picture}\n")
    parts += [_lowest(rows), _tuning(rows), _divergences(rows)]
    return "\n".join(part for part in parts if part) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _how(rows: list[Row]) -> str:
    if not rows:
        return ""
    commits = sorted({row["commit"] for row in rows})
    jobs = " or ".join(sorted({str(row.get("jobs", 1)) for row in rows}))
    cpus = sorted({row["cpu"] for row in rows})
    versions = sorted({f"{k} {v}" for row in rows for k, v in row["versions"].items()})
    return (
        f"{len(rows)} runs, K = {rows[0]['rank']}, float64, one thread each, {jobs} at a time. "
        f"Processor: {', '.join(cpus)}. Versions: {', '.join(versions)}. "
        f"Commit: {', '.join(commits)}. Every run of a seed starts from the same factors: 5 "
        "multiplicative rounds from Uniform(0, 1). Rows and columns without counts are left out, "
        "rare ones are kept. Seconds are the solver's own; looks at the objective are off the "
        "clock. Tuning S-SCI-PI is not in its seconds (see below).\n"
    )


def _lowest(rows: list[Row]) -> str:
    best, sets = Curves(rows).best, {row["dataset"] for row in rows}
    lines = [
        f"| {title} | {best[name].value:.2f} | {best[name].found_by} |"
        for name, title in TITLES.items()
        if name in sets and name in best
    ]
    head = ["## f*, the lowest value known\n", "| set | f* | found by |", "|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n" if lines else ""


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
    points = {(r["params"]["batch"], r["params"]["epoch"]) for r in select(rows, experiment="grid")}
    missing = sorted(set(product(*PAPER_GRID)) - points)
    note = f"Pairs (s/n, m) of the paper's grid that were not run: {missing or 'none'}.\n"
    head = ["## Tuning of S-SCI-PI\n", note]
    head += ["| set | for | spent | kept |", "|---|---|---|---|"]
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
