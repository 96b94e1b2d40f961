# SPDX-License-Identifier: BSD-3-Clause
"""`sipower consensus`: fit from many starts and report the stability of the components."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from sipower import selection
from sipower.cli import options, run_folder, run_spectra
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.cli.exit_codes import DONE
from sipower.cli.model_options import FitModelOptions
from sipower.cli.progress import FitCounter
from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF, estimate
from sipower.estimators.guides import as_guides, report_guides
from sipower.io import Table
from sipower.loop.forecast import format_duration
from sipower.results import Run, load_run, save_run
from sipower.results.folder import order_consensus
from sipower.results.provenance import initial_facts
from sipower.results.recorded import known_names
from sipower.results.run_coherence import with_coherence
from sipower.selection import Consensus, save_outcome
from sipower.selection.saved_fits import remove_saved_fits


@command("finished fits are saved, and the same command continues")
def consensus(
    data: options.InputOptions,
    factors: FitModelOptions,
    solver: options.SolverOptions,
    output: options.OutputOptions,
    out: options.RunFolder = None,
    replicates: options.Replicates = 20,
) -> int:
    """Fit from many starts, keep the fit closest to all others and report component stability."""
    require("plotly", "jinja2")
    console = Console(output.as_json)
    output.check()
    folder = out or run_folder.default_folder(data.source, f"consensus-k{factors.components}")
    model, has_begun = solver.model(n_components=factors.components), _has_begun(folder)
    if solver.dry_run:
        table = run_folder.load(data, console)
        factors.apply(model, data, table, console)
        _say_estimate(run_folder.nonzero_matrix(table, model), model, replicates, console)
        return DONE
    with run_folder.claim(folder, output.force or has_begun):
        table = run_folder.load(data, console)
        observed = factors.apply(model, data, table, console)
        V = run_folder.nonzero_matrix(table, model)
        run_spectra.check_spectra(output, observed)
        if output.force:
            remove_saved_fits(folder / "fits")
        if output.force or not has_begun:
            _say_estimate(V, model, replicates, console)
        with FitCounter(console, V.threads) as counter, run_folder.say_warnings(console):
            result = selection.consensus(
                V, model, replicates=replicates, folder=folder / "fits", on_fit=counter,
                **observed,
            )  # fmt: skip
        medoid = result.medoid
        model.set_params(random_state=solver.seed + medoid)
        facts = initial_facts(model, V, str(data.source), observed) | {
            "status": result.statuses[medoid], "certified_gap": result.gaps[medoid],
            "divergence": result.divergences[medoid], "replicates": replicates,
        }  # fmt: skip
        run_folder.add_facts_of_table(facts, table)
        facts |= _guide_facts(model, V, result)
        run = with_coherence(_medoid_run(result, model, table, facts, observed.get("batch")), V)
        result = order_consensus(result, run)
        save_run(run, folder)
        run = run_spectra.add_spectra(run, table, output, folder, console, observed)
        derived = run_folder.derived_files(output, data, table, {"consensus": result})
        run_folder.write_derived_files(run, folder, console, derived)
        save_outcome(result, folder / "consensus.json")
        low, mean = result.stability.min(), result.stability.mean()
        stability = f"stability of the components: mean {mean:.3f}, lowest {low:.3f}"
        console.say(result.summary)
        run_folder.say_guides(run, console)
        console.say(f"replicate {medoid + 1} is the most similar to the others; {stability}")
        console.say(f"wrote {folder}/ (factors.npz, run.json, consensus.json, report.html)")
        console.event(
            "done", medoid=medoid, stability=result.stability.tolist(), outliers=result.outliers
        )
    return run_folder.exit_code(run, own_limit=solver.max_iter is not None)


def _say_estimate(V: RowBlocks, model: KLNMF, replicates: int, console: Console) -> None:
    """Print how long the fits will probably take; each has one thread."""
    one = estimate(V, clone(model).set_params(n_jobs=1))
    jobs = min(V.threads, replicates)
    low, high = (-(-replicates // jobs) * seconds for seconds in one.seconds)
    duration = f"{format_duration(low)} to {format_duration(high)}"
    console.say(f"{replicates} fits, {jobs} at a time: {duration}.")
    console.event("estimate", seconds=[low, high], memory=one.memory, threads=jobs)


def _medoid_run(
    result: Consensus, model: KLNMF, table: Table, facts: dict[str, Any], batch: Any
) -> Run:
    names: dict[str, Any] = {"component_names": known_names(model, len(result.H))}
    if result.batch_effects is not None:
        names |= {"batches": np.unique(batch), "batch_effects": result.batch_effects}
    names |= {"samples": table.samples, "features": table.features}
    return Run(result.W, result.H, (), facts, feature_ids=table.feature_ids, **names)


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
