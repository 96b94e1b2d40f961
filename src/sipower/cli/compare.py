# SPDX-License-Identifier: BSD-3-Clause
"""`sipower compare`: name the components of a run by the entries of a catalogue."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sipower import inference
from sipower.cli import options
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.cli.observed_files import read_catalogue
from sipower.cli.refit import Catalogue, name_files
from sipower.data.names import Items, check_both_named
from sipower.results.export import check_table_name, write_table

_COMPONENTS = "Components: the folder of a run, or a table with names."
_OUT = "Table of the components and their names: .csv, .tsv or .parquet."
_THRESHOLD = "Smallest cosine at which a component resembles an entry."

Components = Annotated[Path, typer.Argument(metavar="RUN", help=_COMPONENTS)]


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """The options of the comparison, of its file and of messages."""

    out: Annotated[Path | None, typer.Option("-o", "--out", help=_OUT)] = None
    threshold: Annotated[float, typer.Option(help=_THRESHOLD)] = 0.8
    as_json: options.Json = False


@command("nothing is saved")
def compare(components: Components, catalogue: Catalogue, output: ComparisonOptions) -> None:
    """Compare components with a catalogue: which are known, which are mixtures, which are new."""
    console = Console(output.as_json)
    require("pandas")
    if output.out is not None:
        check_table_name(output.out, (".csv", ".tsv", ".parquet"))
    own = read_catalogue(components)
    features = Items("feature", own.values.shape[1], own.features)
    known = read_catalogue(catalogue, features)
    check_both_named(own.items(), known.items())
    with name_files(console, H=components, catalogue=catalogue):
        result = inference.compare(own.to_frame(), known.to_frame(), threshold=output.threshold)
    frame = result.to_frame()
    rows = [
        (str(component), row["name"], row["best"], f"{row['best_cosine']:.3f}", row["mixture"])
        for component, row in frame.iterrows()
    ]
    console.table(("component", "name", "best entry", "cosine", "mixture"), rows)
    if output.out is not None:
        write_table(output.out, frame)
        console.say(f"wrote {output.out}")
    console.event(
        "done", names=list(result.names), best=list(frame["best"]),
        cosines=list(frame["best_cosine"]), new=int(result.is_new.sum()),
        file=None if output.out is None else str(output.out),
    )  # fmt: skip
