# SPDX-License-Identifier: BSD-3-Clause
"""Write the published page of verdicts and its pictures: python docs/reproduction/make.py [TABLE].

The table is committed in several files, runs-1.jsonl.gz and so on. If the path of a table that
`sipower reproduce --standard` writes is given, its new rows are first written to another file.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from sipower.experiments import BUDGETS, Curves, judge_claims, page, read
from sipower.experiments.claims import Claim
from sipower.experiments.draw import draw_png
from sipower.experiments.figures import figures
from sipower.experiments.table import Row, row_key

HERE = Path(__file__).parent
HEADS = "| earlier claim | earlier verdict | now, per pass | now, per second |\n|---|---|---|---|\n"


def published_rows() -> list[Row]:
    """Return the rows of all committed files."""
    return [row for file in sorted(HERE.glob("runs-*.jsonl.gz")) for row in read(file)]


def add_rows(table: Path) -> None:
    """Write the rows of a table that no committed file has to the next file."""
    published = {row_key(row) for row in published_rows()}
    new = [row for row in read(table) if row_key(row) not in published]
    if new:
        number = len(list(HERE.glob("runs-*.jsonl.gz"))) + 1
        lines = "".join(json.dumps(row, sort_keys=True) + "\n" for row in new)
        packed = gzip.compress(lines.encode(), mtime=0)
        (HERE / f"runs-{number}.jsonl.gz").write_bytes(packed)


def _present_verdicts(claims: list[Claim], earlier: dict[str, Any], axis: str) -> str:
    """Return the verdict on the same case, or the number of times each verdict was given."""
    findings = [
        finding
        for claim in claims
        if claim.title == earlier["now"]
        for finding in claim.findings
        if finding.case.startswith(earlier.get("case", ""))
    ]
    judgements = [getattr(finding, axis) for finding in findings]
    counts = Counter(judgement.verdict for judgement in judgements if judgement)
    if len(judgements) == 1:
        return next(iter(counts), "–")
    return ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())) or "–"


def describe_changes(curves: Curves) -> str:
    """Return the section on what changed since the earlier verdicts, and why."""
    claims = judge_claims(curves)
    lines = []
    for earlier in json.loads((HERE / "earlier.json").read_text(encoding="utf-8")):
        now = [_present_verdicts(claims, earlier, axis) for axis in ("passes", "seconds")]
        if earlier["now"] is None:
            now = [earlier["remark"]] * 2
        lines.append(f"| {earlier['claim']} | {earlier['verdict']} | {now[0]} | {now[1]} |\n")
    return (HERE / "changes.md").read_text(encoding="utf-8") + "\n" + HEADS + "".join(lines)


def text() -> str:
    """Return the text of the page."""
    curves = Curves(published_rows(), BUDGETS["standard"])
    return page(curves, figures(curves), describe_changes(curves), links=False)


def main() -> None:
    """Write the page and its pictures."""
    for table in sys.argv[1:]:
        add_rows(Path(table))
    for figure in figures(Curves(published_rows(), BUDGETS["standard"])):
        draw_png(figure, HERE / f"{figure.name}.png")
    (HERE / "index.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
