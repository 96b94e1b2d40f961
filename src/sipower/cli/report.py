# SPDX-License-Identifier: BSD-3-Clause
"""`sipower report`: write the report of a run folder again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sipower.cli import options
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.results import Run, load_run
from sipower.results.differences_table import load_differences
from sipower.results.folder import load_consensus
from sipower.results.report import write_report
from sipower.selection import RankSelection, load_outcome

_OUT = "HTML file; by default RUN/report.html."


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The options for what the report of a run folder shows."""

    rank: Annotated[Path | None, typer.Option(help="Folder of `sipower rank` to show.")] = None
    image_shape: options.ImageShape = None
    exclude: options.Exclude = None


@command("nothing is saved")
def report(
    folder: options.Run,
    page: ReportOptions,
    out: Annotated[Path | None, typer.Option("-o", "--out", help=_OUT)] = None,
) -> None:
    """Write the report of a run again, as one HTML file that opens offline."""
    require("plotly", "jinja2")
    run, target = load_run(folder), out or folder / "report.html"
    write_run_report(run, folder, target, page)
    Console().say(f"wrote {target}")


def write_run_report(run: Run, folder: Path, target: Path, page: ReportOptions) -> None:
    """Write the report of a run with all results in its folder: consensus and differences."""
    more: dict[str, Any] = {"exclude": page.exclude}
    if (folder / "consensus.json").exists():
        more["consensus"] = load_consensus(run, folder)
    if page.rank is not None:
        more["selection"] = load_outcome(RankSelection, page.rank / "rank.json")
    more["differences"] = load_differences(folder, run.component_labels())
    shape = options.parse_image_shape(page.image_shape, run.H.shape[1])
    write_report(run, target, image_shape=shape, **more)
