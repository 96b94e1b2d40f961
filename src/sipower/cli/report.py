# SPDX-License-Identifier: BSD-3-Clause
"""`sipower report`: write the report of a run folder again."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sipower.cli import options
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.results import load_run
from sipower.results.folder import load_consensus
from sipower.results.report import write_report
from sipower.selection import RankSelection, load_outcome

_OUT = "HTML file; by default RUN/report.html."


@command("nothing is saved")
def report(
    folder: options.Run,
    out: Annotated[Path | None, typer.Option("-o", "--out", help=_OUT)] = None,
    rank: Annotated[Path | None, typer.Option(help="Folder of `sipower rank` to show.")] = None,
    image_shape: options.ImageShape = None,
    exclude: options.Exclude = None,
) -> None:
    """Write the report of a run again, as one HTML file that opens offline."""
    require("plotly", "jinja2")
    run, target = load_run(folder), out or folder / "report.html"
    more: dict[str, Any] = {"exclude": exclude}
    if (folder / "consensus.json").exists():
        more["consensus"] = load_consensus(run, folder)
    if rank is not None:
        more["selection"] = load_outcome(RankSelection, rank / "rank.json")
    shape = options.parse_image_shape(image_shape, run.H.shape[1])
    write_report(run, target, image_shape=shape, **more)
    Console().say(f"wrote {target}")
