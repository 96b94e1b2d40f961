# SPDX-License-Identifier: BSD-3-Clause
"""`sipower refit`: estimate exposures of samples to the components of a catalogue."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sipower import inference
from sipower.cli import options
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.cli.observed_files import DataItems, read_catalogue
from sipower.cli.run_folder import load
from sipower.data.names import Items, Names, check_both_named
from sipower.data.validate import as_matrix, name_array
from sipower.inference.refitted import POOR
from sipower.io import Table
from sipower.results.export import check_table_name, write_refit

_CATALOGUE = "Known components: a table with names, by row or by column, or the folder of a run."
_OUT = "Exposures: .npz, or .csv, .tsv or .parquet with further files beside it."
_SPARSE = "Select the components of each sample by likelihood-ratio tests, or fit all."
_LEVEL = "Significance level of the tests; lower levels select fewer components."
_INTERVALS = "Write confidence intervals, or save their time."

Catalogue = Annotated[Path, typer.Argument(metavar="CATALOGUE", help=_CATALOGUE)]


@dataclass(frozen=True, kw_only=True)
class RefitOptions:
    """The options of the refit, of its files and of messages."""

    out: Annotated[Path, typer.Option("-o", "--out", help=_OUT)]
    sparse: Annotated[bool, typer.Option("--sparse/--all", help=_SPARSE)] = True
    level: Annotated[float, typer.Option(help=_LEVEL)] = 0.005
    intervals: Annotated[bool, typer.Option(help=_INTERVALS)] = True
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95
    threads: options.Threads = None
    as_json: options.Json = False


@command("nothing is saved")
def refit(catalogue: Catalogue, data: options.InputOptions, output: RefitOptions) -> None:
    """Estimate how many counts of each sample are due to each component of a catalogue."""
    console = Console(output.as_json)
    require("pandas")
    check_table_name(output.out)
    table = load(data, console)
    known = read_catalogue(catalogue, DataItems(data, table).features)
    counts = as_matrix(table.counts, n_jobs=output.threads)
    keys = _feature_keys(table, known.features)
    form = "counts with names"
    check_both_named(
        Items("feature", counts.shape[1], keys, None, str(data.source), form), known.items()
    )
    V = counts.with_names(name_array(table.samples), name_array(keys))
    with name_files(console, V=data.source, H=catalogue):
        result = inference.refit(
            V, known.to_frame(), sparse=output.sparse, level=output.level,
            intervals=output.intervals, confidence=output.confidence, n_jobs=output.threads,
        )  # fmt: skip
    files = write_refit(output.out, result)
    samples, rank = result.exposures.shape
    per_sample, poor = float(result.support.sum(axis=1).mean()), int((result.p_value < POOR).sum())
    console.event(
        "done", files=list(map(str, files)), shape=[samples, rank], per_sample=per_sample,
        poorly_explained=poor, remarks=list(result.remarks),
    )  # fmt: skip
    console.say(
        f"{samples:,} samples x {rank} components, {per_sample:.1f} per sample; {poor:,} samples "
        f"are explained poorly (p < {POOR:g})"
    )
    console.say(f"wrote {', '.join(map(str, files))}")


def _feature_keys(table: Table, known: Names | None) -> Names | None:
    """Return the names of the features, or their ids if the catalogue has those instead."""
    names, ids = table.features, table.feature_ids
    if names is None or ids is None or known is None:
        return names
    is_by_id = set(known).isdisjoint(names) and not set(known).isdisjoint(ids)
    return ids if is_by_id else names


@contextmanager
def name_files(console: Console, **files: Path) -> Iterator[None]:
    """Print warnings as remarks, and name files instead of arguments in them and in errors."""

    def name(text: str) -> str:
        for argument, file in files.items():
            text = text.replace(f"`{argument}`", str(file))
        return text

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as problem:
            text = name(str(problem))
            for option in ("level", "confidence", "threshold"):
                text = text.replace(f"`{option}`", f"--{option}")
            raise ValueError(text) from None
    for warning in caught:
        remark = name(str(warning.message))
        console.say(remark)
        console.event("remark", text=remark)
