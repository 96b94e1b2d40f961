# SPDX-License-Identifier: BSD-3-Clause
"""`sipower fit`: factorise files of counts and write a run folder with a report."""

from pathlib import Path

from sipower.cli import cluster, options, run_folder, run_spectra
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.cli.exit_codes import report_errors
from sipower.cli.fit_input import load_files
from sipower.cli.model_options import FitModelOptions
from sipower.estimators import estimate
from sipower.results import save_run


@command("nothing was fitted yet, nothing is saved")
def fit(
    source: options.FitInputOptions,
    factors: FitModelOptions,
    solver: options.FitSolverOptions,
    long_run: options.LongRunOptions,
    output: options.FitOutputOptions,
    out: options.RunFolder = None,
) -> int:
    """Factorise files of counts and write a run folder with factors, trace and report."""
    console, data = Console(output.as_json), source.files()
    output.check()
    cluster.check_fit(solver, source, output)
    if output.report:
        require("plotly", "jinja2")
    folder = out or _default_folder(data, factors.components)
    own_checkpoint, checkpoint = folder / "checkpoint.npz", long_run.checkpoint_path(folder)
    model = solver.model(
        n_components=factors.components,
        init=solver.start(),
        n_init=solver.n_init,
        verify=solver.verify,
    )
    cache = long_run.cache_choice()
    if solver.dry_run:
        table, _ = load_files(data, console, long_run, model, cache)
        observed = factors.apply(model, data, table, console)
        V = run_folder.nonzero_matrix(table, model)
        return run_folder.say_estimate(estimate(V, model), console, observed)
    has_begun = any(file.exists() for file in (folder / "run.json", checkpoint or own_checkpoint))
    with (
        run_folder.claim(folder, output.force or (long_run.resume and has_begun)),
        cluster.connect(solver, console) as client,
    ):
        table, parts = load_files(data, console, long_run, model, cache, client)
        observed = factors.apply(model, data, table, console)
        shape = options.parse_image_shape(output.image_shape, table.counts.shape[1])
        resume = long_run.resume and not output.force
        run = run_folder.finished_run(folder, model, table, observed) if resume else None
        was_finished, own_limit = run is not None, solver.max_iter is not None
        run_spectra.check_spectra(output, observed)
        report = {"image_shape": shape} if output.report else None
        derived = run_folder.derived_files(output, data, table, report)
        if run is None:
            model.set_params(checkpoint=checkpoint, checkpoint_every=long_run.checkpoint_every)
            with run_folder.reserve_run(folder, model, table, derived, console):
                run = run_folder.fit_with_progress(model, table, console, data.name, observed)
            run.facts["input"] |= data.recorded() | ({"files": parts} if parts else {})
            with report_errors(run_folder.unsaved_run(checkpoint)):
                save_run(run, folder)
        with report_errors(f"the run is in {folder}, and --resume writes what is missing"):
            run = run_spectra.add_spectra(run, table, output, folder, console, observed)
            run_folder.write_derived_files(run, folder, console, derived, was_finished)
        with report_errors(f"the run is in {folder}"):
            run_folder.say_result(run, folder, console)
            used = own_checkpoint if was_finished else checkpoint
            if used is not None and run.facts["status"] == "converged":
                used.unlink(missing_ok=True)
            if output.force and not long_run.resume:
                _remove_replaced_checkpoint(own_checkpoint, used)
    return run_folder.exit_code(run, own_limit)


def _default_folder(data: options.InputFiles, components: int) -> Path:
    more = f"and-{len(data.others)}-more-" if data.others else ""
    return run_folder.default_folder(data.source, f"{more}k{components}")


def _remove_replaced_checkpoint(own: Path, used: Path | None) -> None:
    """Remove the checkpoint of a run that was replaced, unless the new run has used it."""
    if used is None or used.resolve() != own.resolve():
        own.unlink(missing_ok=True)
