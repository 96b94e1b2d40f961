# SPDX-License-Identifier: BSD-3-Clause
"""`sipower fit`, `transform`, `report` and `demo`: from a file to a run folder and its report."""

from __future__ import annotations

import re
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from sipower.cli import options
from sipower.cli.alignment import aligned
from sipower.cli.common import Speaker, app, formats, need, reported
from sipower.cli.running import (
    code_of,
    finish,
    fitted,
    is_finished,
    load,
    make_products,
    model_of,
    named_after,
    owned,
    run_of,
)
from sipower.datasets import docstrings
from sipower.estimators import KLNMF
from sipower.estimators.attributes import row_tolerance
from sipower.io import Table
from sipower.results.describe import describe, largest, readable
from sipower.results.export import write_rows
from sipower.results.report import write_report
from sipower.results.run import Run, load_run, save_run
from sipower.selection import Consensus, RankSelection, load_outcome

__all__ = ["demo", "fit", "report", "transform"]

WORDS = 9  # of a component, on the terminal


@app.command()
def fit(
    source: options.Input,
    components: Annotated[int, typer.Option("-k", "--components", min=1, help="Rank K.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Run folder; by default named after the file."),
    ] = None,
    solver: options.Solver = "auto",
    init: options.Init = "random",
    tol: options.Tol = 1e-3,
    max_time: options.MaxTime = None,
    max_iter: options.MaxIter = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    dtype: options.Dtype = None,
    transpose: options.Transpose = False,
    layout: options.Layout = None,
    layer: options.Layer = None,
    memory_limit: options.MemoryLimit = None,
    checkpoint: options.CheckpointFile = None,
    checkpoint_every: options.CheckpointEvery = 60.0,
    resume: options.Resume = False,
    also: options.Also = None,
    image_shape: Annotated[
        str | None, typer.Option(help="Height x width, where features are pixels: 19x19.")
    ] = None,
    make_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace an older run.")] = False,
    as_json: options.Json = False,
) -> None:
    """Factorise a file of counts into a run folder with factors, trace and report."""
    speaker = Speaker(as_json)
    with reported("nothing was fitted yet, nothing is saved") as outcome, ExitStack() as held:
        folder = out or named_after(source, f"k{components}")
        saved = _checkpoint(checkpoint, folder, resume)
        model = model_of(solver, tol, max_time, max_iter, seed, threads, dtype)
        model.set_params(n_components=components, init=init)
        here = (folder / "run.json", saved or folder / "checkpoint.npz")
        begun = resume and any(file.exists() for file in here)
        held.enter_context(owned(folder, force, begun))
        shape, chosen = _image_shape(image_shape), formats(also)
        if make_report:
            need("plotly")
        how = {"transpose": transpose, "layout": layout, "layer": layer}
        table = load(source, speaker, memory_limit=memory_limit, **how)
        _check_pixels(shape, table)
        older = run_of(folder, model, table) if resume and not force else None
        asked = max_iter is not None
        if older is not None and is_finished(older, model):
            run, code = older, code_of(older.facts["status"], model, asked)
        else:
            model.set_params(checkpoint=saved, checkpoint_every=checkpoint_every)
            run, code = fitted(model, table, speaker, asked=asked, file=str(source))
            save_run(run, folder)
        outcome.saved = f"the run is in {folder}, and --resume writes what is missing"
        drawn = make_report and (shape or True)
        make_products(run, folder, speaker, chosen, drawn, missing=run is older)
        outcome.saved = f"the run is in {folder}"
        finish(run, folder, speaker)
        own = folder / "checkpoint.npz"
        used = own if run is older else saved
        _forget_checkpoints(run, used, None if resume or not force else own)
    if code:
        raise typer.Exit(code)


def _checkpoint(given: Path | None, folder: Path, resume: bool) -> Path | None:
    """Where the state of the fit is kept; one that is there already is only touched if asked."""
    path = given or (folder / "checkpoint.npz" if resume else None)
    if given is not None and not given.parent.is_dir():
        raise ValueError(f"--checkpoint {given}: the folder {given.parent} does not exist.")
    if path is not None and path.exists() and not resume:
        raise ValueError(f"{path} exists already: go on from it with --resume, or remove it.")
    return path


def _forget_checkpoints(run: Run, used: Path | None, older: Path | None) -> None:
    """Remove that of a run which has nothing to go on to, and that of the run it has replaced."""
    if used is not None and run.facts["status"] == "converged":
        used.unlink(missing_ok=True)
    if older is not None and (used is None or used.resolve() != older.resolve()):
        older.unlink(missing_ok=True)


def _image_shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if found is None:
        raise ValueError(f"--image-shape {text}: expected height x width, such as 19x19.")
    return int(found[1]), int(found[2])


def _check_pixels(shape: tuple[int, int] | None, table: Table) -> None:
    pixels = table.counts.shape[1]
    if shape is not None and shape[0] * shape[1] != pixels:
        raise ValueError(f"--image-shape {shape[0]}x{shape[1]} does not make {pixels} features.")


@app.command()
def transform(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    source: options.Input,
    out: Annotated[Path, typer.Option("-o", "--out", help="W: .npz, .csv, .tsv or .parquet.")],
    threads: options.Threads = None,
    transpose: options.Transpose = False,
    layout: options.Layout = None,
    layer: options.Layer = None,
    as_json: options.Json = False,
) -> None:
    """Weights of new samples for the components of a run, exact and certified row by row."""
    speaker = Speaker(as_json)
    with reported("nothing is saved"):
        run = load_run(folder)
        table = load(source, speaker, transpose=transpose, layout=layout, layer=layer)
        counts, remarks = aligned(table, run)
        model = KLNMF(len(run.H), init="custom", n_jobs=threads, dtype=run.H.dtype)
        model.set_params(transform_tol=_row_tolerance(run, model.transform_tol))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            W = model._rows_for(counts, run.H)
        remarks += [str(warning.message) for warning in warned]
        for remark in remarks:
            speaker.say(remark)
        if out.suffix.lower() != ".npz":  # headings of tables are numbers by size
            W = W[:, describe(run.W, run.H).order]
        write_rows(out, W, table.samples)
        speaker.event("done", file=str(out), shape=list(W.shape), remarks=remarks)
        speaker.say(f"wrote {out}: {W.shape[0]:,} samples x {W.shape[1]} components")


def _row_tolerance(run: Run, usual: float) -> float:
    """As exact as the rows of the run itself: what was fitted gets its W again."""
    tol = (run.facts.get("parameters") or {}).get("tol")
    return row_tolerance(usual, tol) if isinstance(tol, float) and tol > 0 else usual


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Default: RUN/report.html.")
    ] = None,
    rank: Annotated[Path | None, typer.Option(help="Folder of `sipower rank`, shown too.")] = None,
    image_shape: Annotated[
        str | None, typer.Option(help="Height x width, where features are pixels: 19x19.")
    ] = None,
) -> None:
    """Write the report of a run again, as one HTML file that opens offline."""
    with reported("nothing is saved"):
        need("plotly")
        run, shape = load_run(folder), _image_shape(image_shape)
        outcomes: dict[str, Any] = {}
        if (folder / "consensus.json").exists():
            found = load_outcome(Consensus, folder / "consensus.json", W=run.W, H=run.H)
            outcomes["consensus"] = found
        if rank is not None:
            outcomes["selection"] = load_outcome(RankSelection, rank / "rank.json")
        target = out or folder / "report.html"
        write_report(run, target, image_shape=shape, **outcomes)
        Speaker().say(f"wrote {target}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Run folder.")] = Path("sipower-demo"),
    components: Annotated[int, typer.Option("-k", "--components", min=1, help="Topics.")] = 20,
    force: Annotated[bool, typer.Option("--force", help="Replace an older run.")] = False,
) -> None:
    """Topics in the docstrings of numpy, scipy and scikit-learn: a minute, no files needed."""
    speaker = Speaker()
    with reported("nothing is saved"), ExitStack() as held:
        need("plotly")
        held.enter_context(owned(out, force))
        speaker.say("Reading the docstrings of the installed numpy, scipy and scikit-learn ...")
        corpus = docstrings()
        table = Table(corpus.counts, corpus.documents, corpus.words)
        rows, columns = corpus.counts.shape
        speaker.say(f"{rows:,} documents x {columns:,} words, {corpus.counts.nnz:,} nonzeros")
        speaker.say("")
        model = KLNMF(components, tol=1e-2, max_time=30, random_state=0, dtype="float32")
        run, code = fitted(model, table, speaker, asked=True, file=None)
        save_run(run, out)
        make_products(run, out, speaker, [], True)
        for line in topics(run):
            speaker.say(line)
        speaker.say("")
        finish(run, out, speaker)
        speaker.say(f"Open {out}/report.html in a browser.")
    if code:
        raise typer.Exit(code)


def topics(run: Run) -> list[str]:
    """A line for every component: its size and its most telling features."""
    found, names = describe(run.W, run.H), run.feature_names()
    telling = found.distinctiveness()
    return [
        f"{k + 1:3}  {found.sizes[k]:6.1%}  "
        + " ".join(readable(names[j], 30) for j in largest(telling[k], WORDS))
        for k in range(len(found.sizes))
    ]
