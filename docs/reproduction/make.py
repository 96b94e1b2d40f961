# SPDX-License-Identifier: BSD-3-Clause
"""Make the published page of verdicts: python docs/reproduction/make.py.

The table is committed in parts, runs-1.jsonl.gz and so on. With the path of a table that `sipower
reproduce --standard` writes, the rows that no part has become a part of their own first.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from sipower.experiments import BUDGETS, Curves, judge_claims, page, read
from sipower.experiments.draw import draw_png
from sipower.experiments.figures import figures
from sipower.experiments.rules import Claim
from sipower.experiments.table import Row, key_of

HERE = Path(__file__).parent
HEADS = "| earlier claim | earlier verdict | now, per pass | now, per second |\n|---|---|---|---|\n"


def published_rows() -> list[Row]:
    """Return the rows of all parts."""
    return [row for part in sorted(HERE.glob("runs-*.jsonl.gz")) for row in read(part)]


def add_part(table: Path) -> None:
    """Write the rows of a table that no part has as the next part."""
    known = {key_of(row) for row in published_rows()}
    new = [row for row in read(table) if key_of(row) not in known]
    if new:
        number = len(list(HERE.glob("runs-*.jsonl.gz"))) + 1
        lines = "".join(json.dumps(row, sort_keys=True) + "\n" for row in new)
        packed = gzip.compress(lines.encode(), mtime=0)
        (HERE / f"runs-{number}.jsonl.gz").write_bytes(packed)


def _verdicts_now(claims: list[Claim], earlier: dict[str, Any], axis: str) -> str:
    """The verdict on the same case, or how often each verdict was given."""
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


def changes(curves: Curves) -> str:
    """Return what changed since the earlier verdicts, and why."""
    claims = judge_claims(curves)
    lines = []
    for earlier in json.loads((HERE / "earlier.json").read_text(encoding="utf-8")):
        now = [_verdicts_now(claims, earlier, axis) for axis in ("passes", "seconds")]
        if earlier["now"] is None:
            now = [earlier["remark"]] * 2
        lines.append(f"| {earlier['claim']} | {earlier['verdict']} | {now[0]} | {now[1]} |\n")
    return (HERE / "changes.md").read_text(encoding="utf-8") + "\n" + HEADS + "".join(lines)


def text() -> str:
    """Return the page."""
    curves = Curves(published_rows(), BUDGETS["standard"])
    return page(curves, figures(curves), changes(curves), links=False)


def main() -> None:
    """Write the page and its pictures."""
    for table in sys.argv[1:]:
        add_part(Path(table))
    for figure in figures(Curves(published_rows(), BUDGETS["standard"])):
        draw_png(figure, HERE / f"{figure.name}.png")
    (HERE / "index.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
