# SPDX-License-Identifier: BSD-3-Clause
"""The steps from a data file to a run folder that several commands share."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sipower._files import NO_ROOM, file_lock, remove_unfinished, reserve_space
from sipower.cli.cluster import cluster_facts, fit_model
from sipower.cli.console import Console, name_options, option_name
from sipower.cli.exit_codes import DONE, INTERRUPTED, NOT_CONVERGED
from sipower.cli.new_folder import make_folder
from sipower.cli.on_disk import load_on_disk
from sipower.cli.options import InputOptions, OutputOptions
from sipower.cli.progress import FitProgress
from sipower.data.plausibility import new_data_remarks
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix, name_array
from sipower.estimators import KLNMF, Estimate
from sipower.io import FORMATS, Table, read
from sipower.io.anndata_columns import has_columns
from sipower.loop.forecast import forecast_passes, format_duration
from sipower.results import Run, load_run
from sipower.results.annotations import AnnDataFile
from sipower.results.differences_table import load_differences
from sipower.results.export import export, export_paths
from sipower.results.folder import FILES, MEASUREMENTS
from sipower.results.provenance import first_difference, initial_facts
from sipower.results.report import write_report
from sipower.results.run_coherence import with_coherence
from sipower.store import is_store

CHECKPOINT_COPIES = 8  # numbers for each entry of W and H: four in the state, while it is replaced
REPORT_BYTES, BYTES_PER_NUMBER = 10**7, 20  # of a report; of a number in a table of text
SMALL_FILES = 100_000  # bytes of run.json and trace.csv, and of headers
TABLES = 3  # of a format: W, H and shares


def default_folder(source: Path, suffix: str) -> Path:
    """Return a folder named after a file: counts.csv.gz becomes counts-k20."""
    name = source.resolve().name
    for ending in sorted(FORMATS, key=len, reverse=True):
        name = name.removesuffix(ending)
    return Path(f"{name.lstrip('.-') or 'counts'}-{suffix}")


@contextmanager
def claim(folder: Path, may_replace: bool) -> Iterator[None]:
    """Create and lock a run folder until the block ends; an older run requires `may_replace`."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, expected a folder: choose another with -o.")
    with make_folder(folder), file_lock(folder / "run"):
        older = next((name for name in FILES if (folder / name).exists()), None)
        if older is not None and not may_replace:
            file = "a run already" if older == "run.json" else f"{older}, which a run may replace"
            raise ValueError(
                f"{folder} holds {file}: choose another with -o, or overwrite it with --force."
            )
        remove_unfinished(folder / "factors.npz")  # of a killed process
        yield


def load(
    data: InputOptions,
    console: Console,
    memory_limit: str | None = None,
    cache: Path | Literal[False] | None = None,
    *,
    fitted: float | None = None,
    **texts: Any,
) -> Table:
    """Read a file, or open it on disk, and print a summary of the data.

    With a memory limit, a file is converted to a store in a cache; `cache` is as in
    `sipower.io.open_on_disk`. `fitted` is the share of whole numbers in the data of the run that
    the file is read for; see `sipower.data.plausibility.count_remark`. `texts` replaces
    `text_column` and `text_options` of `sipower.io.read`.
    """
    source = data.source
    if is_store(source) or memory_limit is not None:
        with say_warnings(console):
            table = load_on_disk(data, console, memory_limit, cache)
    else:
        table = read(source, **data.settings() | texts)
    remarks = new_data_remarks(table.remarks, table.counts, fitted)
    table = replace(table, remarks=tuple(map(name_options, remarks)))
    rows, columns = table.counts.shape
    console.say(f"{source}: {rows:,} samples x {columns:,} features")
    for remark in table.remarks:
        console.say(remark)
    console.event("read", file=str(source), shape=[rows, columns], remarks=list(table.remarks))
    return table


def nonzero_matrix(table: Table, model: KLNMF) -> RowBlocks:
    """Return the counts in the dtype of the model, with names; raise an error if all are zero."""
    V = as_matrix(table.counts, dtype=model.dtype, n_jobs=model.n_jobs)
    if not V.total > 0:
        raise ValueError("The data are all zero: a fit needs positive counts.")
    return V.with_names(name_array(table.samples), name_array(table.features))


@contextmanager
def say_warnings(console: Console) -> Iterator[None]:
    """Print warnings as sentences; `say_result` and the exit code report those on convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "`guides`: Guide ")  # `say_guides` reports all guides

        def say(message: Warning | str, *_: object, **__: object) -> None:
            text = name_options(str(message))
            console.say(text)
            console.event("warning", text=text)

        warnings.showwarning = say
        yield


def say_estimate(cost: Estimate, console: Console, observed: Mapping[str, Any]) -> int:
    """Print what a fit will probably take, and return the exit code; nothing is written."""
    console.say(str(cost))
    if observed:
        names = ", ".join(map(option_name, observed))
        console.say(f"This is for the same data without {names}, which may take longer.")
    console.event("estimate", **asdict(cost))
    return DONE


def fit_with_progress(
    model: KLNMF, table: Table, console: Console, file: str | None, observed: Mapping[str, Any]
) -> Run:
    """Fit a table with a progress display; return the run, up to its last round if interrupted.

    `observed` are the arguments of the fit that say how the data were observed.
    """
    V = nonzero_matrix(table, model)
    facts, started = initial_facts(model, V, file, observed), time.monotonic()
    facts |= cluster_facts(V)
    add_facts_of_table(facts, table)
    with say_warnings(console), FitProgress(console, model) as progress:
        model.set_params(on_round=progress)
        W = fit_model(model, V, observed)
    model.set_params(on_round=None)
    run = Run.from_model(model, W, samples=table.samples, features=table.features)
    facts |= run.facts | {"seconds": round(time.monotonic() - started, 3)}
    run = replace(run, facts=facts, feature_ids=table.feature_ids)
    return with_coherence(run, V)


@contextmanager
def reserve_run(
    folder: Path, model: KLNMF, table: Table, derived: DerivedFiles, console: Console
) -> Iterator[None]:
    """Hold the space of a run on the disk of its folder until the block ends.

    A run that has no space is refused before it begins. If only its checkpoint and the files that
    are written from it may find none, a sentence says so.
    """
    dtype = np.dtype(model.dtype or table.counts.dtype)
    itemsize = dtype.itemsize if dtype == np.float32 else 8
    entries = sum(table.counts.shape) * int(model.n_components)
    names = sum(len(name) + 4 for side in (table.samples, table.features) for name in side or ())
    size = entries * itemsize + names + SMALL_FILES
    more = (model.checkpoint is not None) * CHECKPOINT_COPIES * entries * itemsize
    more += (derived.report is not None) * REPORT_BYTES
    more += len(derived.formats) * TABLES * entries * BYTES_PER_NUMBER
    with ExitStack() as stack:
        try:
            stack.enter_context(reserve_space(folder / "factors.npz", size))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise ValueError(
                f"{folder}: the files of the run take {_megabytes(size)}, but "
                f"{NO_ROOM[error.errno]} ({error.strerror}; of the disk "
                f"{_megabytes(shutil.disk_usage(folder).free)} are free): make room, or choose a "
                "folder on another disk with -o."
            ) from None
        free = shutil.disk_usage(folder).free
        if free < more:
            console.say(
                f"{folder}: beside the run, its checkpoint, tables and report may take up to "
                f"{_megabytes(more)}, and the disk has {_megabytes(free)} free: what finds no room "
                "is left out with a message."
            )
        yield


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


def unsaved_run(checkpoint: Path | None) -> str:
    """Return the phrase for messages that says what is left of a fit whose run was not saved."""
    if checkpoint is not None and checkpoint.exists():
        return f"its checkpoint {checkpoint} is safe, and the same command with --resume continues"
    return "nothing of the fit is saved; with --resume, a checkpoint would be kept"


def add_facts_of_table(facts: dict[str, Any], table: Table) -> None:
    """Add the remarks on a table, and the settings that its words were counted with."""
    if table.remarks:
        facts["remarks"] = list(table.remarks)
    if table.text_options is not None:
        facts["input"]["texts"] = table.text_options


def exit_code(run: Run, own_limit: bool) -> int:
    """Return the exit code of a fit; reaching a limit that the user has set is a success."""
    status, tol = run.facts["status"], run.facts["parameters"]["tol"]
    if status == "interrupted":
        return INTERRUPTED
    is_limited = status == "max_rounds" and not own_limit
    has_failed = status in ("not_finite", "stalled", "working_precision", "not_verified")
    return NOT_CONVERGED if (is_limited or has_failed) and tol > 0 else DONE


def finished_run(
    folder: Path, model: KLNMF, table: Table, observed: Mapping[str, Any]
) -> Run | None:
    """Return the run in a folder if it is complete; raise an error if it belongs to another fit."""
    if not (folder / "run.json").exists():
        return None
    run, V = load_run(folder), as_matrix(table.counts, dtype=model.dtype, n_jobs=model.n_jobs)
    other = first_difference(run.facts, initial_facts(model, V, None, observed))
    if (run.samples, run.features) != (table.samples, table.features):
        other = other or "names"
    if any(key not in run.facts for key in ("status", *MEASUREMENTS)):
        other = "kind"  # a consensus
    if other is not None:
        problem = f"{folder} holds a run already, which differs in {option_name(other)}"
        raise ValueError(f"{problem}: choose another folder with -o, or overwrite it with --force.")
    ended = run.facts["status"] == "converged" or run.facts["rounds"] >= model.max_iter
    return run if ended else None


@dataclass(frozen=True)
class DerivedFiles:
    """The files that are written from a run.

    Parameters
    ----------
    report
        The options of `write_report`; None writes no report.
    formats
        Formats of the factors.
    normalise, origin
        As for `export`.
    """

    report: dict[str, Any] | None
    formats: Sequence[str] = ()
    normalise: bool = True
    origin: AnnDataFile | Table | None = None


def derived_files(
    output: OutputOptions, data: InputOptions, table: Table, report: dict[str, Any] | None
) -> DerivedFiles:
    """Return what to write; `report` has the options of the report besides those of `output`."""
    origin: AnnDataFile | Table | None = None
    formats = output.formats()
    if "h5ad" in formats:
        is_hdf5 = data.source.suffix.lower() in (".h5ad", ".h5") and len(data.sources) == 1
        if is_hdf5 and has_columns(data.source):
            origin = AnnDataFile(data.source, data.layer, bool(data.transpose))
        elif not isinstance(table.counts, RowBlocks):  # a store is too large for one file
            origin = table
    options = None if report is None else report | {"exclude": output.exclude}
    return DerivedFiles(options, formats, output.normalise, origin)


def write_derived_files(
    run: Run, folder: Path, console: Console, derived: DerivedFiles, missing: bool = False
) -> None:
    """Write the factors in other formats and report.html.

    If `missing` is true, only files that do not exist yet are written.
    """
    for ending in derived.formats:
        if missing and all(file.exists() for file in export_paths(run, folder, ending)):
            continue
        scale, origin = derived.normalise, derived.origin
        for file in export(run, folder, ending, normalise=scale, origin=origin):
            console.say(f"wrote {file}")
    page = folder / "report.html"
    if derived.report is not None and not (missing and page.exists()):
        older = load_differences(folder, run.component_labels()) if missing else None
        write_report(run, page, differences=older, **derived.report)


_REMEDIES = {
    "stalled": "Not converged, the objective no longer falls: accept the gap with a larger --tol, "
    "or use another --seed.",
    "working_precision": "Not converged, the objective no longer falls in float32: use --dtype "
    "float64, or accept the gap with a larger --tol.",
    "not_verified": "Not verified: sipower verify shows what the verifier finds; do not rely on "
    "this run.",
}


def _advice(run: Run) -> str | None:
    """Return what to do about a fit that has not converged, or None."""
    facts, parameters = run.facts, run.facts["parameters"]
    tol, gap = parameters["tol"], facts["certified_gap"]
    options = {"max_rounds": "--max-iter", "max_seconds": "--max-time"}
    if facts["status"] in _REMEDIES:
        return _REMEDIES[facts["status"]]
    if not gap > tol > 0 or facts["status"] not in options:
        return None
    option = options[facts["status"]]
    limit = parameters["max_iter" if option == "--max-iter" else "max_time"]
    solver, last = parameters["solver"], run.trace[-1]
    total, needed = forecast_passes(run.trace, tol), ""
    if total is not None:
        duration = format_duration(total * last.seconds / last.passes)
        needed = f" (the gap so far suggests {duration} in all)"
    faster = "" if solver == "auto" else f", use --solver auto in place of {solver}"
    return (
        f"Not converged, the gap is above --tol {tol:g}: raise {option} above {limit:g}{needed}"
        f"{faster}, or accept the gap with a larger --tol."
    )


def say_guides(run: Run, console: Console) -> None:
    """Print what the fit says about its guides."""
    for guide in run.facts.get("guides", ()):
        console.say(guide)
        console.event("guide", text=guide)


def say_result(run: Run, folder: Path, console: Console) -> None:
    """Print how a fit ended and where its run folder is."""
    facts = {key: run.facts[key] for key in ("status", *MEASUREMENTS)}
    console.event("done", folder=str(folder), **facts)
    rounds = "1 round" if facts["rounds"] == 1 else f"{facts['rounds']} rounds"
    ended = f"{facts['status']} after {rounds}, {facts['seconds']:.1f} s"
    reached = f"KL divergence {facts['divergence']:.6g}, certified gap {facts['certified_gap']:.1e}"
    console.say(f"{ended}: {reached} of all counts")
    advice = _advice(run)
    if advice is not None:
        console.say(advice)
    say_guides(run, console)
    report = ", report.html" if (folder / "report.html").exists() else ""
    console.say(f"wrote {folder}/ (factors.npz, names.json, run.json, trace.csv{report})")
