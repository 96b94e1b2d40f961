# SPDX-License-Identifier: BSD-3-Clause
"""Make the page of verdicts from the committed table: python docs/reproduction/make.py.

With the path of a new table, which `sipower reproduce --standard` has written, that one is put in
its place first. `why.json` holds what a person has found out about each verdict, by claim.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import Path

from sipower.experiments.draw import draw_png
from sipower.experiments.figures import figures
from sipower.experiments.page import page
from sipower.experiments.table import read

HERE = Path(__file__).parent
TABLE = HERE / "runs.jsonl.gz"
# To be deleted with the first table of the corrected algorithm.
OUTDATED = """
:::{warning}
The S-SCI-PI of these runs was not quite Algorithm 1: an item whose cosine to its anchor fell under
½ ended its epoch there, and what was not sampled took the η of the grid. Both are corrected since;
the verdicts on S-SCI-PI below are those of the runs before and will be made anew.
:::
"""


def text() -> str:
    """The page."""
    rows, why = read(TABLE), json.loads((HERE / "why.json").read_text(encoding="utf-8"))
    title, rest = page(rows, figures(rows), why).split("\n", maxsplit=1)
    return f"{title}\n{OUTDATED}{rest}"


def main() -> None:
    """Write the page and its pictures."""
    if len(sys.argv) > 1:
        with Path(sys.argv[1]).open("rb") as new, gzip.GzipFile(TABLE, "wb", mtime=0) as packed:
            shutil.copyfileobj(new, packed)
    for figure in figures(read(TABLE)):
        draw_png(figure, HERE / f"{figure.name}.png")
    (HERE / "index.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
