# SPDX-License-Identifier: BSD-3-Clause
"""`sipower fit`, `transform`, `report` and `demo`: from a file to a run folder and its report."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from sipower.cli import options
from sipower.cli.alignment import aligned
from sipower.cli.common import NOT_CONVERGED, Speaker, app, formats, need, reported
from sipower.cli.progress import FitProgress
from sipower.datasets import docstrings
from sipower.describe import describe, largest, readable
from sipower.estimators import KLNMF
from sipower.export import export, write_rows
from sipower.fingerprint import fingerprint
from sipower.io import FORMATS, Table, read
from sipower.kernels import level
from sipower.matrix import Matrix
from sipower.provenance import provenance
from sipower.report import write_report
from sipower.run_folder import Run, forget_run, load_run, save_run
from sipower.selection import Consensus, RankSelection, load_outcome
from sipower.solve import Interrupted
from sipower.validation import as_matrix

__all__ = ["demo", "fit", "report", "transform"]

MOST_ROUNDS = 500  # unless told
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
    with reported("nothing was fitted yet, nothing is saved") as outcome:
        folder = free(out or named_after(source, f"k{components}"), force)
        shape, chosen = _image_shape(image_shape), formats(also)
        if make_report:
            need("plotly")
        table = load(source, speaker, transpose=transpose, layout=layout, layer=layer)
        _check_pixels(shape, table)
        model = model_of(solver, tol, max_time, max_iter, seed, threads, dtype)
        model.set_params(n_components=components, init=init)
        run, code = fitted(model, table, speaker, asked=max_iter is not None, file=str(source))
        forget_run(folder)
        outcome.saved = f"the factors are in {folder}, what is missing can be made from them"
        save(run, folder, speaker, chosen, make_report and (shape or True))
        _finish(run, folder, speaker)
    if code:
        raise typer.Exit(code)


def model_of(
    solver: str,
    tol: float,
    max_time: float | None,
    max_iter: int | None,
    seed: int,
    threads: int | None,
    dtype: str | None,
) -> KLNMF:
    """The model that the options of a command describe."""
    return KLNMF(
        solver=solver,
        tol=tol,
        max_time=max_time,
        max_iter=max_iter or MOST_ROUNDS,
        random_state=seed,
        n_jobs=threads,
        dtype=dtype,
    )


def load(source: Path, speaker: Speaker, **how: Any) -> Table:
    """Read a file and say what it holds."""
    table = read(source, **how)
    rows, columns = table.counts.shape
    speaker.say(f"{source}: {rows:,} samples x {columns:,} features")
    for remark in table.remarks:
        speaker.say(remark)
    speaker.event("read", file=str(source), shape=[rows, columns], remarks=list(table.remarks))
    return table


def fitted(
    model: KLNMF, table: Table, speaker: Speaker, *, asked: bool, file: str | None
) -> tuple[Run, int]:
    """Fit with progress shown; a fit that is interrupted gives what it had, and the code 3.

    `asked`: the limit on rounds is the user's own, so that reaching it is no failure.
    """
    V = as_matrix(table.counts, dtype=model.dtype, n_jobs=model.n_jobs)
    if not V.total > 0:
        raise ValueError("All counts are zero: there is nothing to fit.")
    facts = facts_of(model, V, file)
    started, code = time.monotonic(), 0
    with FitProgress(speaker, model.tol, model.max_time) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said at the end
        model.set_params(on_round=progress)
        try:
            W = model.fit_transform(V)
        except Interrupted as interrupt:
            W, code = interrupt.result.x.W, 3
    model.set_params(on_round=None)
    if model.status_ in ("max_rounds", "not_finite") and not asked and model.tol > 0:
        code = NOT_CONVERGED
    facts |= {
        "status": model.status_,
        "certified_gap": model.kkt_residual_,
        "divergence": model.kl_divergence_,
        "rounds": model.n_iter_,
        "passes": model.trace_[-1].passes,
        "seconds": round(time.monotonic() - started, 3),
    }
    return Run(W, model.components_, model.trace_, facts, table.samples, table.features), code


def facts_of(model: KLNMF, V: Matrix, file: str | None) -> dict[str, Any]:
    """What `run.json` tells of a fit before its end."""
    parameters = {k: v for k, v in model.get_params().items() if k != "on_round"}
    return {
        "command": shlex.join(["sipower", *sys.argv[1:]]),
        "parameters": parameters,
        "input": {
            "file": file,
            "sha256": fingerprint(V),
            "shape": list(V.shape),
            "nonzeros": int(np.count_nonzero(V.array)) if V.dense else V.nnz,
            "total": V.total,
        },
        "threads": V.threads,
        "instruction_set": level(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **provenance(),
    }


def save(
    run: Run, folder: Path, speaker: Speaker, more: list[str], drawn: Any, **outcomes: Any
) -> None:
    """Write the run folder; `drawn` is whether to write the report, or the shape of its images."""
    save_run(run, folder)
    for ending in more:
        for file in export(run, folder, ending):
            speaker.say(f"wrote {file}")
    if drawn:
        shape = drawn if isinstance(drawn, tuple) else None
        write_report(run, folder / "report.html", image_shape=shape, **outcomes)


def _finish(run: Run, folder: Path, speaker: Speaker) -> None:
    facts = run.facts
    keys = ("status", "certified_gap", "divergence", "rounds", "passes", "seconds")
    told = {key: facts[key] for key in keys}
    speaker.event("done", folder=str(folder), **told)
    speaker.say(
        f"{facts['status']} after {facts['rounds']} rounds, {facts['seconds']:.1f} s: KL "
        f"divergence {facts['divergence']:.6g}, certified gap {facts['certified_gap']:.1e} of all "
        "counts"
    )
    speaker.say(f"wrote {folder}/ (factors.npz, run.json, trace.csv" +
                (", report.html)" if (folder / "report.html").exists() else ")"))  # fmt: skip


def named_after(source: Path, what: str) -> Path:
    """A folder beside nothing else: counts.csv.gz becomes counts-k20."""
    name = source.resolve().name
    for ending in sorted(FORMATS, key=len, reverse=True):
        name = name.removesuffix(ending)
    return Path(f"{name.lstrip('.-') or 'counts'}-{what}")


def free(folder: Path, force: bool) -> Path:
    """A folder that can be written to and holds no run, or one that may be replaced."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, expected a folder: choose another with -o.")
    if (folder / "run.json").exists() and not force:
        raise ValueError(f"{folder} holds a run already: choose another with -o, or --force.")
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} cannot be written to: choose another with -o.")
    return folder


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
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            W = model._rows_for(counts, run.H)
        remarks += [str(warning.message) for warning in warned]
        for remark in remarks:
            speaker.say(remark)
        write_rows(out, W, table.samples)
        speaker.event("done", file=str(out), shape=list(W.shape), remarks=remarks)
        speaker.say(f"wrote {out}: {W.shape[0]:,} samples x {W.shape[1]} components")


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
) -> None:
    """Topics in the docstrings of numpy, scipy and scikit-learn: a minute, no files needed."""
    speaker = Speaker()
    with reported("nothing is saved"):
        need("plotly")
        speaker.say("Reading the docstrings of the installed numpy, scipy and scikit-learn ...")
        corpus = docstrings()
        table = Table(corpus.counts, corpus.documents, corpus.words)
        rows, columns = corpus.counts.shape
        speaker.say(f"{rows:,} documents x {columns:,} words, {corpus.counts.nnz:,} nonzeros\n")
        model = KLNMF(components, tol=1e-2, max_time=30, random_state=0, dtype="float32")
        run, code = fitted(model, table, speaker, asked=True, file=None)
        forget_run(out)
        save(run, out, speaker, [], True)
        for line in topics(run):
            speaker.say(line)
        speaker.say("")
        _finish(run, out, speaker)
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
