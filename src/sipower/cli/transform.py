# SPDX-License-Identifier: BSD-3-Clause
"""`sipower transform`: compute weights of new samples for the components of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sipower.cli import options
from sipower.cli.application import command
from sipower.cli.console import Console, name_options
from sipower.cli.model_options import NewSampleOptions
from sipower.cli.run_folder import load
from sipower.results import Run, load_run
from sipower.results.export import write_weights
from sipower.results.new_samples import transform_samples
from sipower.results.normalisation import to_counts, to_shares


@dataclass(frozen=True, kw_only=True)
class WeightOptions:
    """The options for the file of weights, and for messages."""

    out: Annotated[Path, typer.Option("-o", "--out", help="W: .npz, .csv, .tsv or .parquet.")]
    normalise: options.Normalise = True
    threads: options.Threads = None
    as_json: options.Json = False


@command("nothing is saved")
def transform(
    folder: options.Run,
    data: options.InputOptions,
    samples: NewSampleOptions,
    output: WeightOptions,
) -> None:
    """Compute exact weights of new samples for the components of a run, and certify each row."""
    check_order("transform", folder, data.source, f" -o {output.out}")
    console, run, out = Console(output.as_json), load_run(folder), output.out
    table = load(data, console, **text_settings(run, data))
    observed = samples.observed(data, table, console)
    if "batch" in observed and run.batch_effects is None:
        raise ValueError("--batch needs a run that was fitted with --batch: omit it.")
    W, remarks = transform_samples(run, table, output.threads, observed)
    remarks = [name_options(remark) for remark in remarks]
    for remark in remarks:
        console.say(remark)
    scaled, labels = to_counts(W, run.H) if output.normalise else W, run.component_labels()
    files = write_weights(out, scaled, to_shares(W, run.H), table.samples, labels)
    console.event("done", file=str(out), shape=list(W.shape), remarks=remarks)
    names = " and ".join(map(str, files))
    console.say(f"wrote {names}: {W.shape[0]:,} samples x {W.shape[1]} components")


def check_order(name: str, folder: Path, source: Path, options: str = "") -> None:
    """Raise an error if the run and the data of a command were exchanged."""
    if not _is_run(folder) and _is_run(source):
        raise ValueError(
            f"{folder} is not a run, but {source} is: the run comes first, as in sipower "
            f"{name} {source} {folder}{options}."
        )


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


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
