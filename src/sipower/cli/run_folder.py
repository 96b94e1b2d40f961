# SPDX-License-Identifier: BSD-3-Clause
"""The steps from a data file to a run folder that several commands share."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from sipower._files import file_lock
from sipower.cli.console import Console, name_options
from sipower.cli.exit_codes import DONE, INTERRUPTED, NOT_CONVERGED
from sipower.cli.options import InputOptions, OutputOptions
from sipower.cli.progress import FitProgress
from sipower.data.on_disk import DEFAULT_LIMIT
from sipower.data.plausibility import count_remark
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.io import FORMATS, Table, open_h5ad, open_store, read
from sipower.loop.solve import Interrupted
from sipower.results import Run, load_run
from sipower.results.annotations import AnnDataFile, is_anndata_file
from sipower.results.export import export, export_paths
from sipower.results.folder import FILES, MEASUREMENTS
from sipower.results.provenance import first_difference, initial_facts
from sipower.results.report import write_report
from sipower.store import is_store


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
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / "run"):
        older = next((name for name in FILES if (folder / name).exists()), None)
        if older is not None and not may_replace:
            file = "a run already" if older == "run.json" else f"{older}, which a run may replace"
            raise ValueError(
                f"{folder} holds {file}: choose another with -o, or overwrite it with --force."
            )
        yield


def load(
    data: InputOptions, console: Console, memory_limit: str | None = None, **texts: Any
) -> Table:
    """Read a file, or open a store on disk, and print a summary of the data.

    `texts` replaces `text_column` and `text_options` of `sipower.io.read`.
    """
    source = data.source
    if is_store(source) or memory_limit is not None:
        table = _open_on_disk(data, memory_limit or DEFAULT_LIMIT)
    else:
        table = read(source, **data.settings() | texts)
    table = replace(table, remarks=tuple(map(name_options, table.remarks)))
    rows, columns = table.counts.shape
    console.say(f"{source}: {rows:,} samples x {columns:,} features")
    for remark in table.remarks:
        console.say(remark)
    console.event("read", file=str(source), shape=[rows, columns], remarks=list(table.remarks))
    return table


def _open_on_disk(data: InputOptions, memory_limit: str | int) -> Table:
    source = data.source
    if any(v for name, v in data.settings().items() if name != "layer"):
        raise ValueError(
            "--transpose, --layout and the options of texts need the data in memory: pass them to "
            "sipower convert."
        )
    if is_store(source):
        if data.layer is not None:
            raise ValueError(f"{source} is a store and has no layers: omit --layer.")
        V = open_store(source, memory_limit=memory_limit)
    elif source.suffix in (".h5ad", ".h5"):
        V = open_h5ad(source, data.layer, memory_limit=memory_limit)
    else:
        needed = f"convert {source} to a store first, with sipower convert"
        raise ValueError(f"--memory-limit is for stores and .h5ad files: {needed}.")
    samples, features = (
        None if n is None else tuple(map(str, n)) for n in (V.row_names, V.column_names)
    )
    remark = count_remark(V, V.source.origin)
    remarks = () if remark is None else (remark,)
    counts: Any = V  # used like an array
    return Table(counts, samples, features, remarks, V.source.feature_ids)


def nonzero_matrix(table: Table, model: KLNMF) -> RowBlocks:
    """Return the counts in the dtype of the model; raise an error if all are zero."""
    V = as_matrix(table.counts, dtype=model.dtype, n_jobs=model.n_jobs)
    if not V.total > 0:
        raise ValueError("The data are all zero: a fit needs positive counts.")
    return V


def fit_with_progress(model: KLNMF, table: Table, console: Console, file: str | None) -> Run:
    """Fit a table with a progress display; return the run, up to its last round if interrupted."""
    V = nonzero_matrix(table, model)
    facts, started = initial_facts(model, V, file), time.monotonic()
    add_facts_of_table(facts, table)
    with FitProgress(console, model.tol, model.max_time) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reported by the exit code
        model.set_params(on_round=progress)
        try:
            W = model.fit_transform(V)
        except Interrupted as interrupt:
            W = interrupt.result.x.W
    model.set_params(on_round=None)
    run = Run.from_model(model, W, samples=table.samples, features=table.features)
    facts |= run.facts | {"seconds": round(time.monotonic() - started, 3)}
    return replace(run, facts=facts, feature_ids=table.feature_ids)


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
    limited = status in ("max_rounds", "not_finite")
    return NOT_CONVERGED if limited and not own_limit and tol > 0 else DONE


def finished_run(folder: Path, model: KLNMF, table: Table) -> Run | None:
    """Return the run in a folder if it is complete; raise an error if it belongs to another fit."""
    if not (folder / "run.json").exists():
        return None
    run, V = load_run(folder), as_matrix(table.counts, dtype=model.dtype, n_jobs=model.n_jobs)
    other = first_difference(run.facts, initial_facts(model, V, None))
    if (run.samples, run.features) != (table.samples, table.features):
        other = other or "names"
    if any(key not in run.facts for key in ("status", *MEASUREMENTS)):
        other = "kind"  # a consensus
    if other is not None:
        problem = f"{folder} holds a run already, which differs in {other}"
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
        if data.source.suffix.lower() in (".h5ad", ".h5") and is_anndata_file(data.source):
            origin = AnnDataFile(data.source, data.layer, data.transpose)
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
        if missing and all(file.exists() for file in export_paths(folder, ending)):
            continue
        scale, origin = derived.normalise, derived.origin
        for file in export(run, folder, ending, normalise=scale, origin=origin):
            console.say(f"wrote {file}")
    page = folder / "report.html"
    if derived.report is not None and not (missing and page.exists()):
        write_report(run, page, **derived.report)


def say_result(run: Run, folder: Path, console: Console) -> None:
    """Print how a fit ended and where its run folder is."""
    facts = {key: run.facts[key] for key in ("status", *MEASUREMENTS)}
    console.event("done", folder=str(folder), **facts)
    ended = f"{facts['status']} after {facts['rounds']} rounds, {facts['seconds']:.1f} s"
    reached = f"KL divergence {facts['divergence']:.6g}, certified gap {facts['certified_gap']:.1e}"
    console.say(f"{ended}: {reached} of all counts")
    report = ", report.html" if (folder / "report.html").exists() else ""
    console.say(f"wrote {folder}/ (factors.npz, run.json, trace.csv{report})")
