# SPDX-License-Identifier: BSD-3-Clause
"""`sipower datasets` and `sipower reproduce`: the paper's data and experiments."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from sipower.cli.common import Speaker, app, console, need, reported
from sipower.datasets import CATALOGUE, is_present
from sipower.experiments import BUDGETS, EXPERIMENTS, Budget, write
from sipower.experiments import reproduce as do_runs
from sipower.experiments import table1 as table_of_facts

__all__ = ["datasets", "reproduce"]

What = Enum("What", {name: name for name in (*EXPERIMENTS, "all")})  # type: ignore[misc]


@app.command()
def datasets() -> None:
    """List the data sets with the paper's Table 1 beside the facts."""
    table = Table("name", "here", "rows x columns", "nonzeros", "zeros", "the paper's Table 1")
    for name, entry in CATALOGUE.items():
        where = "yes" if is_present(name) else f"no: {entry.owner}"
        table.add_row(name, where, *entry.facts())
    console.print(table)
    for name, entry in CATALOGUE.items():
        if entry.remark:
            console.print(f"{name}: {entry.remark}.", highlight=False)
    console.print("Files are looked for in the folder that SIPOWER_DATA names; see `load`.")


@app.command()
def reproduce(
    experiment: Annotated[
        What, typer.Argument(help="Which of the paper's experiments.")
    ] = What.all,  # type: ignore[attr-defined]
    quick: Annotated[bool, typer.Option("--quick", help="At most 10 minutes.")] = False,
    standard: Annotated[bool, typer.Option("--standard", help="At most 75 minutes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's protocol: days.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of table, figures and page.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[int | None, typer.Option(help="Runs at a time; one per core.")] = None,
) -> None:
    """Run the paper's experiments again; an interrupted session goes on where it stopped."""
    chosen = [
        name for name, on in {"quick": quick, "standard": standard, "full": full}.items() if on
    ]
    if len(chosen) > 1:
        raise typer.BadParameter("choose one of --quick, --standard and --full")
    name = chosen[0] if chosen else "quick"
    names = EXPERIMENTS if experiment.value == "all" else (experiment.value,)
    folder = out / name  # a table holds the runs of one budget
    speaker = Speaker()
    with reported():
        need("matplotlib", "plotly")
        rows = _with_progress(names, BUDGETS[name], folder / "runs.jsonl", jobs)
        if "table1" in names:
            for line in table_of_facts().splitlines():
                speaker.say(line)
        for file in write(rows, BUDGETS[name], folder):
            speaker.say(f"wrote {file}")


def _with_progress(
    names: tuple[str, ...], budget: Budget, table: Path, jobs: int | None
) -> list[dict[str, Any]]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("planning", total=None)

        def show(row: dict[str, Any], left: int, seconds: float) -> None:
            ready = progress.tasks[0].completed + 1
            what = f"{row['problem']} {row['dataset']} {row['method']} {row['seed']}"
            text = f"{what}: {row['status']}; about {seconds / 60:.0f} min left in this stage"
            progress.update(bar, description=text, completed=ready, total=ready + left)
            if not console.is_terminal:
                console.print(f"{text}, {left} runs", highlight=False, soft_wrap=True)

        return do_runs(names, budget, table, jobs=jobs, on_row=show)
