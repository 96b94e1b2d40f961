# SPDX-License-Identifier: BSD-3-Clause
"""`sipower rank`: recommend a number of components."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sipower._files import file_lock
from sipower.cli import cluster, options, run_folder
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.cli.model_options import ModelOptions
from sipower.cli.new_folder import make_folder
from sipower.cli.progress import FitCounter
from sipower.loop.forecast import format_duration
from sipower.results.export import export_selection
from sipower.selection import RankSelection, estimated_seconds, rank_selection
from sipower.selection.rank import FIRST_ROUNDS, NEXT_ROUNDS

_RANKS, _OUT = "Ranks: 5:50, 5:50:5 or 5,10,20.", "Folder; finished fits in it are reused."

COLUMNS = ("mean error", "standard error", "stability", "coherence", "diversity")


@dataclass(frozen=True, kw_only=True)
class RankTask:
    """The options for the folder, the number of splits, and messages."""

    out: Annotated[Path | None, typer.Option("-o", "--out", help=_OUT)] = None
    replicates: options.Replicates = 5
    as_json: options.Json = False


@command("finished fits are saved, and the same command continues")
def rank(
    data: options.InputOptions,
    components: Annotated[str, typer.Option("-k", "--components", help=_RANKS)],
    solver: options.RankSolverOptions,
    factors: ModelOptions,
    task: RankTask,
) -> None:
    """Recommend a number of components, based on held-out counts and on stability."""
    require("matplotlib")
    cluster.check_cluster(solver)
    console, ranks, model = (
        Console(task.as_json),
        parse_ranks(components),
        solver.model(init="random"),
    )
    folder, replicates = (
        task.out or run_folder.default_folder(data.source, "ranks"),
        task.replicates,
    )
    table = run_folder.load(data, console)
    observed = factors.apply(model, data, table, console)
    V = run_folder.nonzero_matrix(table, model)
    if not solver.on_cluster:  # the estimate is for this machine
        seconds = estimated_seconds(V, ranks, model, replicates=replicates)
        console.say(f"{len(ranks) * replicates} fits: about {format_duration(seconds)}.")
        console.event("estimate", seconds=seconds)
    if solver.dry_run:
        return
    with (
        make_folder(folder),
        file_lock(folder / "run"),
        cluster.connect(solver, console) as client,
    ):
        jobs = cluster.count_jobs(client, V.threads)
        counter = FitCounter(console, jobs, path_costs(ranks, replicates, jobs))
        with counter, run_folder.say_warnings(console):
            result = rank_selection(
                V, ranks, model, replicates=replicates, folder=folder / "fits", on_fit=counter,
                client=client, **observed,
            )  # fmt: skip
        export_selection(result, folder)
    console.table(("components", *COLUMNS), rank_rows(result))
    console.say(result.reason)
    console.say(f"wrote {folder}/ (rank.json, rank.csv, rank.png)")
    console.event("done", best=result.best, reason=result.reason, folder=str(folder))


def rank_rows(result: RankSelection) -> Iterator[list[str]]:
    """Yield the row of each rank, with an asterisk at the recommended one."""
    table = result.table()
    for at, rank in enumerate(result.ranks):
        yield [f"{rank} *" if rank == result.best else str(rank)] + [
            f"{table[name][at]:.4g}" if math.isfinite(table[name][at]) else "" for name in COLUMNS
        ]


def path_costs(ranks: list[int], replicates: int, jobs: int) -> list[float]:
    """Return the expected time of every fit relative to the others, in the order they will finish.

    As many replicates as there are jobs run at a time, each from its largest rank down; only the
    first fit of a replicate begins at random.
    """
    rounds = [FIRST_ROUNDS] + [NEXT_ROUNDS] * (len(ranks) - 1)
    costs: list[float] = []
    for begin in range(0, replicates, jobs):
        together = min(jobs, replicates - begin)
        for rank, n in zip(sorted(ranks, reverse=True), rounds, strict=True):
            costs += [rank * n / together] * together
    return costs


def parse_ranks(text: str) -> list[int]:
    """Parse numbers of components: ``20``, ``5,10,20``, ``5:50`` or ``5:50:5``, ends included."""
    try:
        if ":" in text:
            first, last, *step = (int(part) for part in text.split(":"))
            (stride,) = step or [1]
            ranks = list(range(first, last + 1, stride))
        else:
            ranks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        ranks = []
    if not ranks:
        raise ValueError(
            f"-k {text}: expected numbers of components such as 20, 5,10,20, 2:8 or 5:50:5."
        )
    if min(ranks) < 1:
        raise ValueError(f"-k {text}: K must be at least 1, got {min(ranks)}.")
    return ranks
