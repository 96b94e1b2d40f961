# SPDX-License-Identifier: BSD-3-Clause
"""`sipower transform`: compute weights of new samples for the components of a run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sipower.cli import options
from sipower.cli.application import command
from sipower.cli.console import Console
from sipower.cli.run_folder import load
from sipower.results import Run, load_run
from sipower.results.describe import describe
from sipower.results.export import write_rows
from sipower.results.new_samples import transform_samples


@command("nothing is saved")
def transform(
    folder: options.Run,
    data: options.InputOptions,
    out: Annotated[Path, typer.Option("-o", "--out", help="W: .npz, .csv, .tsv or .parquet.")],
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Compute exact weights of new samples for the components of a run, and certify each row."""
    console, run = Console(as_json), load_run(folder)
    table = load(data, console, **text_settings(run, data))
    W, remarks = transform_samples(run, table, threads)
    for remark in remarks:
        console.say(remark)
    if out.suffix.lower() != ".npz":  # the column headings number components by size
        W = W[:, describe(run.W, run.H).order]
    write_rows(out, W, table.samples)
    console.event("done", file=str(out), shape=list(W.shape), remarks=remarks)
    console.say(f"wrote {out}: {W.shape[0]:,} samples x {W.shape[1]} components")


def text_settings(run: Run, data: options.InputOptions) -> dict[str, Any]:
    """Return the options to read new texts as the texts of a run were read."""
    recorded = dict((run.facts.get("input") or {}).get("texts") or {})
    if not recorded:
        return {}
    if data.stop_words is not None or data.min_df is not None:
        raise ValueError("--stop-words and --min-df are those of the run: omit them.")
    column = recorded.pop("text_column", None)
    is_table = data.source.is_file()
    return {
        "text_column": data.text_column or (column if is_table else None),
        "text_options": recorded | {"vocabulary": run.features},
    }
