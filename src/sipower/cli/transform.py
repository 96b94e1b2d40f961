# SPDX-License-Identifier: BSD-3-Clause
"""`sipower transform`: the weights of new samples for the components of a run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from sipower.cli import options
from sipower.cli.application import command
from sipower.cli.console import Console
from sipower.cli.run_folder import load
from sipower.estimators import KLNMF
from sipower.estimators.attributes import row_tolerance
from sipower.results import Run, load_run
from sipower.results.alignment import align_features
from sipower.results.describe import describe
from sipower.results.export import write_rows


@command("nothing is saved")
def transform(
    folder: options.Run,
    data: options.InputOptions,
    out: Annotated[Path, typer.Option("-o", "--out", help="W: .npz, .csv, .tsv or .parquet.")],
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Weights of new samples for the components of a run, exact and certified row by row."""
    console, run = Console(as_json), load_run(folder)
    table = load(data.source, data, console)
    counts, remarks = align_features(table, run)
    model = KLNMF(len(run.H), init="custom", n_jobs=threads, dtype=run.H.dtype)
    model.set_params(transform_tol=_transform_tol(run, model.transform_tol))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        W = model._rows_for(counts, run.H)
    remarks += [str(warning.message) for warning in caught]
    for remark in remarks:
        console.say(remark)
    if out.suffix.lower() != ".npz":  # the headings of tables number components by size
        W = W[:, describe(run.W, run.H).order]
    write_rows(out, W, table.samples)
    console.event("done", file=str(out), shape=list(W.shape), remarks=remarks)
    console.say(f"wrote {out}: {W.shape[0]:,} samples x {W.shape[1]} components")


def _transform_tol(run: Run, default: float) -> float:
    """Return the row tolerance of the run's own fit: its samples get the same weights again."""
    tol = (run.facts.get("parameters") or {}).get("tol")
    return row_tolerance(default, tol) if isinstance(tol, float) and tol > 0 else default
