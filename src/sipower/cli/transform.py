# SPDX-License-Identifier: BSD-3-Clause
"""`sipower transform`: compute weights of new samples for the components of a run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sipower.cli import options
from sipower.cli.application import command
from sipower.cli.console import Console, name_options
from sipower.cli.fit_input import load_files
from sipower.cli.model_options import NewSampleOptions
from sipower.cli.run_folder import load
from sipower.estimators import KLNMF
from sipower.io import ReadError, Table
from sipower.io.anndata_columns import has_columns
from sipower.io.base import MissingLayerError
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
    data, table = load_for_run(run, data, console)
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


_Options = TypeVar("_Options", bound=options.InputOptions)


def load_for_run(run: Run, data: _Options, console: Console) -> tuple[_Options, Table]:
    """Read data as those of a run were read, unless options say otherwise.

    Returns the options that were used, and the data.
    """
    used, fitted = _settings_of_run(run, data, console), run.facts.get("whole_numbers")
    try:
        if isinstance(used, options.InputFiles) and used.others:
            return used, load_files(used, console, options.LongRunOptions(), KLNMF())[0]
        return used, load(used, console, fitted=fitted, **_text_settings(run, used))
    except MissingLayerError as problem:
        if data.layer is not None:
            raise
        raise ReadError(
            f"{problem} The run was fitted to the layer {used.layer}: choose the one that holds "
            "the same kind of counts with --layer, or X with --layer X."
        ) from None


def _settings_of_run(run: Run, data: _Options, console: Console) -> _Options:
    """Return the options of reading data with the layer and orientation of a run by default.

    Other ones are used and said. The name X chooses X.
    """
    recorded = run.facts.get("input") or {}
    layer, transpose = data.layer, data.transpose
    if all(map(has_columns, data.sources)):  # other files have no layers
        fitted = recorded.get("layer")
        layer = fitted if layer is None else layer
        layer = None if layer == "X" else layer
        _say_other("layer", fitted or "X", layer or "X", console)
    was_transposed = bool(recorded.get("transpose"))
    transpose = was_transposed if transpose is None else transpose
    named = {False: "--no-transpose", True: "--transpose"}
    _say_other("option", named[was_transposed], named[transpose], console)
    return replace(data, layer=layer, transpose=transpose)


def _say_other(what: str, fitted: str, used: str, console: Console) -> None:
    if used != fitted:
        remark = f"The run was fitted with the {what} {fitted}, but {used} is used here."
        console.say(remark)
        console.event("remark", text=remark)


def _text_settings(run: Run, data: options.InputOptions) -> dict[str, Any]:
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
