# SPDX-License-Identifier: BSD-3-Clause
"""`sipower rank` and `sipower consensus`: how many components, and which of them can be trusted."""

from __future__ import annotations

import csv
import io
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from sipower.cli import options
from sipower.cli.common import NOT_CONVERGED, Speaker, app, formats, need, ranks, reported
from sipower.cli.progress import Counter, duration
from sipower.cli.running import (
    check_counts,
    facts_of,
    load,
    make_products,
    model_of,
    named_after,
    owned,
)
from sipower.data.validate import as_matrix
from sipower.files import locked, replacing
from sipower.results.run import Run, load_run, save_run
from sipower.selection import consensus as repeat
from sipower.selection import estimated_seconds, rank_selection, save_outcome
from sipower.selection.outcome import RankSelection
from sipower.selection.store import forget_pieces

__all__ = ["consensus", "rank"]


@app.command()
def rank(
    source: options.Input,
    components: Annotated[
        str, typer.Option("-k", "--components", help="Ranks: 5:50, 5:50:5 or 5,10,20.")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder; goes on where it stopped.")
    ] = None,
    replicates: Annotated[int, typer.Option(min=1, help="Independent splits of the data.")] = 5,
    solver: options.Solver = "auto",
    tol: options.Tol = 1e-2,
    max_time: options.MaxTime = None,
    max_iter: options.MaxIter = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    dtype: options.Dtype = "float32",
    transpose: options.Transpose = False,
    layout: options.Layout = None,
    layer: options.Layer = None,
    as_json: options.Json = False,
) -> None:
    """Recommend a number of components: by counts that the fits have not seen, and stability."""
    speaker = Speaker(as_json)
    with reported():
        need("matplotlib")
        _check_seeds(seed, replicates)
        wanted, out = ranks(components), out or named_after(source, "ranks")
        table = load(source, speaker, transpose=transpose, layout=layout, layer=layer)
        model = model_of(solver, tol, max_time, max_iter, seed, threads, dtype)
        V = as_matrix(table.counts, dtype=model.dtype, n_jobs=threads)
        check_counts(V)
        seconds = estimated_seconds(V, wanted, model, replicates=replicates)
        speaker.say(f"{len(wanted) * replicates} fits: about {duration(seconds)}.")
        speaker.event("estimate", seconds=seconds)
        out.mkdir(parents=True, exist_ok=True)
        with locked(out / "run"):
            with Counter(speaker) as counter:
                found = rank_selection(
                    V, wanted, model, replicates=replicates, folder=out / "fits", on_fit=counter
                )
            _write_rank(found, out)
        speaker.say(found.reason)
        speaker.say(f"wrote {out}/ (rank.json, rank.csv, rank.png)")
        speaker.event("done", best=found.best, reason=found.reason, folder=str(out))


def _holds_no_fit(out: Path) -> bool:
    """Whether a run in a folder is a consensus, whose pieces tell whether it is the same."""
    return not (out / "run.json").exists() or "replicates" in load_run(out).facts


def _check_seeds(seed: int, replicates: int) -> None:
    if seed + replicates > 2**32:
        raise ValueError(f"--seed {seed} leaves no room for {replicates} replicates below 2^32.")


def _write_rank(found: RankSelection, out: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    from sipower.results import plot  # noqa: PLC0415 - optional

    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["rank", "mean error", "stability", *map(str, range(found.deviance.shape[1]))])
    for k, errors, stability in zip(found.ranks, found.deviance, found.stability, strict=True):
        lines.writerow([k, np.mean(errors), stability, *errors])
    figure = Figure(figsize=(7, 4), layout="constrained")
    plot.rank_selection(found, figure.add_subplot())
    # None takes its place before there is room for all of them.
    with replacing(out / "rank.csv") as table, replacing(out / "rank.png") as drawn:
        table.write(text.getvalue().encode())
        table.flush()
        figure.savefig(drawn, dpi=120)
        drawn.flush()
        save_outcome(found, out / "rank.json")


@app.command()
def consensus(
    source: options.Input,
    components: Annotated[int, typer.Option("-k", "--components", min=1, help="Rank K.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Run folder; goes on where it stopped.")
    ] = None,
    replicates: Annotated[int, typer.Option(min=1, help="Fits from different starts.")] = 20,
    solver: options.Solver = "auto",
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
    force: Annotated[
        bool, typer.Option("--force", help="Begin anew, replacing an older run.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Fit from many starts; keep the fit nearest to all others, with each component's stability."""
    speaker = Speaker(as_json)
    with reported(), ExitStack() as held:
        need("plotly")
        chosen, out = formats(also), out or named_after(source, f"consensus-k{components}")
        begun = (out / "fits").is_dir() and _holds_no_fit(out)
        held.enter_context(owned(out, force, begun))
        _check_seeds(seed, replicates)
        table = load(source, speaker, transpose=transpose, layout=layout, layer=layer)
        model = model_of(solver, tol, max_time, max_iter, seed, threads, dtype)
        model.set_params(n_components=components)
        V = as_matrix(table.counts, dtype=model.dtype, n_jobs=threads)
        check_counts(V)
        if force:
            forget_pieces(out / "fits")
        with Counter(speaker) as counter, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the exit code says it
            found = repeat(V, model, replicates=replicates, folder=out / "fits", on_fit=counter)
        model.set_params(random_state=seed + found.medoid)
        facts = facts_of(model, V, str(source)) | {
            "status": found.statuses[found.medoid],
            "certified_gap": found.gaps[found.medoid],
            "divergence": found.divergences[found.medoid],
            "replicates": replicates,
        }
        run = Run(found.W, found.H, (), facts, table.samples, table.features)
        save_run(run, out)
        make_products(run, out, speaker, chosen, True, consensus=found)
        save_outcome(found, out / "consensus.json")
        low, mean = found.stability.min(), found.stability.mean()
        told = f"stability of the components: mean {mean:.3f}, lowest {low:.3f}"
        speaker.say(f"replicate {found.medoid + 1} is nearest to all others; {told}")
        speaker.say(f"wrote {out}/ (factors.npz, run.json, consensus.json, report.html)")
        speaker.event("done", medoid=found.medoid, stability=found.stability.tolist())
    if facts["status"] == "max_rounds" and max_iter is None:
        raise typer.Exit(NOT_CONVERGED)
