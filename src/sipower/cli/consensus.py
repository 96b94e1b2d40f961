# SPDX-License-Identifier: BSD-3-Clause
"""`sipower consensus`: fits from many starts, stability of components, programs over groups."""

import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from sklearn.base import clone

from sipower import selection
from sipower.cli import cluster, options, run_folder, run_spectra
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.cli.exit_codes import DONE
from sipower.cli.model_options import FitModelOptions, read_option
from sipower.cli.observed_files import DataItems, read_labels
from sipower.cli.progress import FitCounter
from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF, estimate
from sipower.estimators.component_names import known_names
from sipower.estimators.guides import as_guides, report_guides
from sipower.io import Table
from sipower.loop.forecast import format_duration
from sipower.results import Run, load_run, save_run
from sipower.results.export import export_programs
from sipower.results.folder import order_consensus
from sipower.results.provenance import initial_facts
from sipower.results.run_coherence import with_coherence
from sipower.selection import Consensus, GroupConsensus, save_outcome
from sipower.selection.programs import MIN_COSINE, MIN_GROUPS
from sipower.selection.saved_fits import remove_saved_fits

_GROUPS = "Group of every sample, fitted on its own: a table of names and labels, or an obs column."
_MIN_GROUPS = "Groups in which a shared program was found, at least."
_MIN_COSINE = "Mean cosine of profiles that are combined to a program, at least."
_group_option = partial(typer.Option, rich_help_panel="Programs over groups")


@dataclass(frozen=True, kw_only=True)
class ConsensusModelOptions(FitModelOptions):
    """The options of the model and of groups of samples."""

    groups: Annotated[str | None, _group_option(help=_GROUPS)] = None
    min_groups: Annotated[int, _group_option(help=_MIN_GROUPS, min=2)] = MIN_GROUPS
    min_cosine: Annotated[float, _group_option(help=_MIN_COSINE, min=0, max=1)] = MIN_COSINE

    def group_arguments(
        self, data: options.InputOptions, table: Table, console: Console
    ) -> dict[str, Any]:
        """Read the groups and return arguments of `sipower.consensus`; none without groups."""
        if self.groups is None:
            return {}
        reader = partial(read_labels, DataItems(data, table))
        labels = read_option("groups", reader, self.groups, console)
        return {"groups": labels, "min_groups": self.min_groups, "min_cosine": self.min_cosine}


@command("finished fits are saved, and the same command continues")
def consensus(
    data: options.InputOptions,
    factors: ConsensusModelOptions,
    solver: options.SolverOptions,
    output: options.OutputOptions,
    out: options.RunFolder = None,
    replicates: options.Replicates = 20,
) -> int:
    """Fit from many starts, keep the fit closest to all others and report component stability."""
    require("plotly", "jinja2")
    console = Console(output.as_json)
    output.check()
    cluster.check_cluster(solver)
    folder = out or run_folder.default_folder(data.source, f"consensus-k{factors.components}")
    model, has_begun = solver.model(n_components=factors.components), _has_begun(folder)
    if solver.dry_run:
        table = run_folder.load(data, console)
        factors.apply(model, data, table, console)
        groups = factors.group_arguments(data, table, console)
        V = run_folder.nonzero_matrix(table, model)
        _say_estimate(V, model, replicates, console, _count_groups(groups))
        return DONE
    with (
        run_folder.claim(folder, output.force or has_begun),
        cluster.connect(solver, console) as client,
    ):
        table = run_folder.load(data, console)
        observed = factors.apply(model, data, table, console)
        groups = factors.group_arguments(data, table, console)
        V = run_folder.nonzero_matrix(table, model)
        run_spectra.check_spectra(output, observed)
        if output.force:
            remove_saved_fits(folder / "fits")
        jobs = cluster.count_jobs(client, V.threads)
        if output.force or not has_begun:
            per_job = V.with_settings(threads=jobs)
            _say_estimate(per_job, model, replicates, console, _count_groups(groups))
        with FitCounter(console, jobs) as counter, run_folder.say_warnings(console):
            result = selection.consensus(
                V, model, replicates=replicates, folder=folder / "fits", on_fit=counter,
                client=client, **groups, **observed,
            )  # fmt: skip
        facts = initial_facts(model, V, str(data.source), observed) | {"replicates": replicates}
        facts["input"] |= data.recorded()
        run_folder.add_facts_of_table(facts, table)
        files = ConsensusFiles(folder, output, data, table, console, V, observed)
        if isinstance(result, GroupConsensus):
            run = _save_programs(result, files, facts)
        else:
            facts["parameters"]["random_state"] = solver.seed + result.medoid
            facts |= _guide_facts(model, V, result)
            run = _save_medoid(result, files, facts, model)
    return run_folder.exit_code(run, own_limit=solver.max_iter is not None)


class ConsensusFiles(NamedTuple):
    """Where results are written, and the data and arguments that they come from."""

    folder: Path
    output: options.OutputOptions
    data: options.InputOptions
    table: Table
    console: Console
    V: RowBlocks
    observed: dict[str, Any]

    def write(self, run: Run, report: dict[str, Any]) -> None:
        """Write the run, its report and the factors in other formats."""
        save_run(run, self.folder)
        run = run_spectra.add_spectra(
            run, self.table, self.output, self.folder, self.console, self.observed
        )
        derived = run_folder.derived_files(self.output, self.data, self.table, report)
        run_folder.write_derived_files(run, self.folder, self.console, derived)


def _save_medoid(
    result: Consensus, files: ConsensusFiles, facts: dict[str, Any], model: KLNMF
) -> Run:
    """Write the medoid as a run, with the names that the model gives to components."""
    medoid, console = result.medoid, files.console
    facts |= {
        "status": result.statuses[medoid],
        "certified_gap": result.gaps[medoid],
        "divergence": result.divergences[medoid],
    }
    run = _as_run(result, facts, files, known_names(model, len(result.H)))
    result = order_consensus(result, run)
    files.write(run, {"consensus": result})
    save_outcome(result, files.folder / "consensus.json")
    low, mean = result.stability.min(), result.stability.mean()
    stability = f"stability of the components: mean {mean:.3f}, lowest {low:.3f}"
    console.say(result.summary)
    run_folder.say_guides(run, console)
    console.say(f"replicate {medoid + 1} is the most similar to the others; {stability}")
    console.say(f"wrote {files.folder}/ (factors.npz, run.json, consensus.json, report.html)")
    console.event(
        "done", medoid=medoid, stability=result.stability.tolist(), outliers=result.outliers
    )
    return run


def _save_programs(result: GroupConsensus, files: ConsensusFiles, facts: dict[str, Any]) -> Run:
    """Write the joint fit of the programs as a run, and a table of the programs."""
    facts |= {"status": result.status, "certified_gap": result.gap}
    facts |= {"divergence": result.divergence, "groups": list(result.groups)}
    run = _as_run(result, facts, files, result.names)
    files.write(run, {"programs": result})
    export_programs(result, files.folder)
    files.console.say(result.summary)
    written = "factors.npz, run.json, programs.json, programs.csv, report.html"
    files.console.say(f"wrote {files.folder}/ ({written})")
    files.console.event(
        "done", programs=result.names, shared=result.shared.tolist(), usage=result.usage.tolist()
    )
    return run


def _count_groups(arguments: dict[str, Any]) -> int:
    return len(np.unique(arguments["groups"])) if arguments else 1


def _say_estimate(
    V: RowBlocks, model: KLNMF, replicates: int, console: Console, groups: int
) -> None:
    """Print how long the fits will probably take; each has one thread.

    The fits of all groups together take about as long as fits of all samples.
    """
    one = estimate(V, clone(model).set_params(n_jobs=1))
    jobs = min(V.threads, replicates)
    low, high = (-(-replicates // jobs) * seconds for seconds in one.seconds)
    duration = f"{format_duration(low)} to {format_duration(high)}"
    of_groups = "" if groups == 1 else f" of each of {groups} groups"
    console.say(f"{replicates} fits{of_groups}, {jobs} at a time: {duration}.")
    console.event("estimate", seconds=[low, high], memory=one.memory, threads=jobs)


def _as_run(
    result: Consensus | GroupConsensus, facts: dict[str, Any], files: ConsensusFiles, names: Any
) -> Run:
    table = files.table
    more: dict[str, Any] = {"component_names": names}
    if result.batch_effects is not None:
        more |= {
            "batches": np.unique(files.observed["batch"]),
            "batch_effects": result.batch_effects,
        }
    more |= {"samples": table.samples, "features": table.features}
    run = Run(result.W, result.H, (), facts, feature_ids=table.feature_ids, **more)
    return with_coherence(run, files.V)


def _guide_facts(model: KLNMF, V: RowBlocks, result: Consensus) -> dict[str, Any]:
    """Return what the medoid says about the guides."""
    if model.guides is None:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sentence is printed for every guide
        first = 0 if model.components_fixed is None else len(model.components_fixed)
        reports = report_guides(as_guides(model.guides, V), V, result.H, first)
    return {"guides": list(map(str, reports))}


def _has_begun(folder: Path) -> bool:
    """Return whether a folder has fits of a consensus and no run of another command."""
    if not (folder / "fits").is_dir():
        return False
    return not (folder / "run.json").exists() or "replicates" in load_run(folder).facts
