# SPDX-License-Identifier: BSD-3-Clause
"""`sipower differential`: which features distinguish the components of a run."""

import shlex
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sipower._files import file_lock
from sipower.cli import options
from sipower.cli.application import command, require
from sipower.cli.console import Console, name_options
from sipower.cli.model_options import SampleOptions
from sipower.cli.options import OUTPUT_FORMATS
from sipower.cli.progress import StageProgress
from sipower.cli.report import ReportOptions, write_run_report
from sipower.cli.transform import check_order, load_for_run
from sipower.inference import Differences
from sipower.inference.differences import SIGNIFICANT
from sipower.inference.regression import DEFAULT_PRIOR
from sipower.results import Run, load_run
from sipower.results.differences_table import ENDINGS, check_table_name, write_differences
from sipower.results.run_differences import compare_components

_test = partial(typer.Option, rich_help_panel="Differences")
_OUT = "Table: .csv or .parquet; by default RUN/differential.csv, which the report shows."
_CONTRAST = "What a component is compared with: the most similar other one, all data, or each."
_CHECK = "Check on independent counts that the differences are no noise, with another fit."
_PRIOR = "Prior counts of every feature and component."
_LEVEL = "Posterior probability of the intervals."
MAX_LISTED = 20  # contrasts that are printed


@dataclass(frozen=True, kw_only=True)
class DifferenceOptions:
    """The options of the differences."""

    contrast: Annotated[Literal["least-extreme", "null", "pairwise"], _test(help=_CONTRAST)] = (
        "least-extreme"
    )
    level: Annotated[float, _test(help=_LEVEL)] = 0.95
    prior: Annotated[float, _test(help=_PRIOR)] = DEFAULT_PRIOR
    check: Annotated[bool, _test(help=_CHECK)] = True
    seed: Annotated[int, _test(help="Seed of the check.", min=0)] = 0

    def arguments(self) -> dict[str, Any]:
        """Return the options of `sipower.differential`."""
        return {
            "contrast": self.contrast.replace("-", " "), "level": self.level, "prior": self.prior,
            "check": self.check, "random_state": self.seed,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The options for the files that are written, and for messages."""

    out: Annotated[Path | None, typer.Option("-o", "--out", help=_OUT)] = None
    report: Annotated[bool, typer.Option(help="Write RUN/report.html again.")] = True
    threads: options.Threads = None
    as_json: options.Json = False


@command("nothing is saved")
def differential(
    folder: options.Run,
    data: options.InputOptions,
    samples: SampleOptions,
    test: DifferenceOptions,
    page: ReportOptions,
    output: TableOptions,
) -> None:
    """Estimate which features distinguish the components of a run, from its counts."""
    check_order("differential", folder, data.source)
    console, run = Console(output.as_json), load_run(folder)
    target = output.out or folder / "differential.csv"
    check_table_name(target)
    is_in_run = target.stem == "differential" and target.parent.resolve() == folder.resolve()
    has_report = output.report and is_in_run
    require(*OUTPUT_FORMATS[target.suffix.lower()[1:]], *(["plotly", "jinja2"] * has_report))
    data, table = load_for_run(run, data, console)
    observed = samples.observed(data, table, console)
    with StageProgress(console, 2 + test.check) as progress:
        differences, remarks = compare_components(
            run, table, output.threads, observed, on_stage=progress, **test.arguments()
        )
    remarks = [name_options(remark) for remark in remarks]
    for remark in remarks:
        console.say(remark)
    facts = {"command": shlex.join(["sipower", *sys.argv[1:]]), "input": str(data.source)}
    with file_lock(folder / "run"):
        write_differences(differences, target, **facts, prior=test.prior, seed=test.seed)
        if is_in_run:
            _remove_other_table(target)
        if has_report:
            write_run_report(run, folder, folder / "report.html", page)
    _say_result(differences, run, console)
    written = f"wrote {target}" + (f" and {folder / 'report.html'}" if has_report else "")
    console.say(f"{written}: {differences.lfsr.size:,} lines")
    _emit_result(differences, target, remarks, console)


def _remove_other_table(target: Path) -> None:
    """Remove the table of another format, which would be shown instead of the new one."""
    for ending in set(ENDINGS) - {target.suffix.lower()}:
        target.with_suffix(ending).unlink(missing_ok=True)


def _say_result(differences: Differences, run: Run, console: Console) -> None:
    """Print what each contrast has found, and the verdict of the check."""
    if "replicates" in run.facts:
        console.say("The run is a consensus: the differences are those of its most typical fit.")
    for contrast in range(min(len(differences.lfsr), MAX_LISTED)):
        names = [str(differences.feature_names[j]) for j in differences.top(contrast, 5)]
        count = int((differences.lfsr[contrast] <= SIGNIFICANT).sum())
        such = f", such as {', '.join(names)}" if names else ""
        console.say(
            f"{differences.label(contrast)}: {count:,} features with a local false sign rate of at "
            f"most {SIGNIFICANT}{such}"
        )
    console.say(str(differences.replication).replace("`check` is False", "--no-check was given"))


def _emit_result(
    differences: Differences, target: Path, remarks: list[str], console: Console
) -> None:
    replication = differences.replication
    labels = [differences.label(contrast) for contrast in range(len(differences.lfsr))]
    counts = (differences.lfsr <= SIGNIFICANT).sum(axis=1).tolist()
    console.event(
        "done", file=str(target), verdict=str(replication), supported=replication.is_supported,
        agreement=replication.agreement, changes=dict(zip(labels, counts, strict=True)),
        remarks=remarks,
    )  # fmt: skip
