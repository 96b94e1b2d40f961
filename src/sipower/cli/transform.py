# SPDX-License-Identifier: BSD-3-Clause
"""`sipower transform`: compute weights of new samples for the components of a run."""

from pathlib import Path
from typing import Annotated

import typer

from sipower.cli import options
from sipower.cli.application import command
from sipower.cli.console import Console
from sipower.cli.run_folder import load
from sipower.results import load_run
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
    if not _is_run(folder) and _is_run(data.source):
        raise ValueError(
            f"{folder} is not a run, but {data.source} is: the run comes first, as in sipower "
            f"transform {data.source} {folder} -o {out}."
        )
    console, run = Console(as_json), load_run(folder)
    table = load(data, console)
    W, remarks = transform_samples(run, table, threads)
    for remark in remarks:
        console.say(remark)
    if out.suffix.lower() != ".npz":  # the column headings number components by size
        W = W[:, describe(run.W, run.H).order]
    write_rows(out, W, table.samples)
    console.event("done", file=str(out), shape=list(W.shape), remarks=remarks)
    console.say(f"wrote {out}: {W.shape[0]:,} samples x {W.shape[1]} components")


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()
