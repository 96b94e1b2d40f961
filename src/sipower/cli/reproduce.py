# SPDX-License-Identifier: BSD-3-Clause
"""`sipower reproduce`: run the paper's experiments."""

import itertools
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sipower import experiments
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.cli.progress import ProgressBar
from sipower.experiments import BUDGETS, EXPERIMENTS

_WHICH = typer.Argument(help="Which of the paper's experiments.")


@command("finished runs are saved, and the same command continues")
def reproduce(
    experiment: Annotated[Literal[(*EXPERIMENTS, "all")], _WHICH] = "all",  # type: ignore[valid-type]
    quick: Annotated[bool, typer.Option("--quick", help="At most 10 minutes.")] = False,
    standard: Annotated[bool, typer.Option("--standard", help="At most 75 minutes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's protocol; takes days.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for all results.")] = Path("reproduction"),
    jobs: Annotated[int | None, typer.Option(help="Parallel runs; one per core.")] = None,
) -> None:
    """Run the paper's experiments; an interrupted run continues where it stopped."""
    chosen = {"quick": quick, "standard": standard, "full": full}
    if sum(chosen.values()) > 1:
        raise ValueError("choose one of --quick, --standard and --full")
    budget = next((name for name, is_chosen in chosen.items() if is_chosen), "quick")
    names = EXPERIMENTS if experiment == "all" else (experiment,)
    folder = out / budget  # one table per budget
    console = Console()
    require("matplotlib", "plotly")
    with ProgressBar(console, "planning") as bar:
        count = itertools.count(1)

        def on_row(row: dict[str, Any], left: int, seconds: float) -> None:
            done = next(count)
            what = f"{row['problem']} {row['dataset']} {row['method']} {row['seed']}"
            time_left = f"about {seconds / 60:.0f} min left in this stage, {left} runs"
            bar.show(f"{what}: {row['status']}; {time_left}", done / (done + left))

        rows = experiments.reproduce(
            names, BUDGETS[budget], folder / "runs.jsonl", jobs=jobs, on_row=on_row
        )
    if "table1" in names:
        for line in experiments.table1().splitlines():
            console.say(line)
    for file in experiments.write(rows, BUDGETS[budget], folder):
        console.say(f"wrote {file}")
