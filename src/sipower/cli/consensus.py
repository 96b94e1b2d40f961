# SPDX-License-Identifier: BSD-3-Clause
"""`sipower consensus`: fit from many starts and report the stability of the components."""

import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from sipower import selection
from sipower.cli import options, run_folder
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.cli.progress import FitCounter
from sipower.results import Run, load_run, save_run
from sipower.results.folder import order_consensus
from sipower.results.provenance import initial_facts
from sipower.selection import save_outcome
from sipower.selection.saved_fits import remove_saved_fits


@command("finished fits are saved, and the same command continues")
def consensus(
    data: options.InputOptions,
    components: options.Rank,
    solver: options.SolverOptions,
    output: options.OutputOptions,
    out: options.RunFolder = None,
    replicates: options.Replicates = 20,
) -> int:
    """Fit from many starts, keep the fit closest to all others and report component stability."""
    require("plotly", "jinja2")
    console = Console(output.as_json)
    output.check()
    folder = out or run_folder.default_folder(data.source, f"consensus-k{components}")
    with run_folder.claim(folder, output.force or _has_begun(folder)):
        table, model = run_folder.load(data, console), solver.model()
        V = run_folder.nonzero_matrix(table, model.set_params(n_components=components))
        if output.force:
            remove_saved_fits(folder / "fits")
        with FitCounter(console) as counter, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported by the exit code
            result = selection.consensus(
                V, model, replicates=replicates, folder=folder / "fits", on_fit=counter
            )
        medoid = result.medoid
        model.set_params(random_state=solver.seed + medoid)
        facts = initial_facts(model, V, str(data.source)) | {
            "status": result.statuses[medoid], "certified_gap": result.gaps[medoid],
            "divergence": result.divergences[medoid], "replicates": replicates,
        }  # fmt: skip
        run_folder.add_facts_of_table(facts, table)
        names = table.samples, table.features
        run = Run(result.W, result.H, (), facts, *names, feature_ids=table.feature_ids)
        result = order_consensus(result, run)
        save_run(run, folder)
        derived = run_folder.derived_files(output, data, table, {"consensus": result})
        run_folder.write_derived_files(run, folder, console, derived)
        save_outcome(result, folder / "consensus.json")
        low, mean = result.stability.min(), result.stability.mean()
        stability = f"stability of the components: mean {mean:.3f}, lowest {low:.3f}"
        console.say(result.summary)
        console.say(f"replicate {medoid + 1} is the most similar to the others; {stability}")
        console.say(f"wrote {folder}/ (factors.npz, run.json, consensus.json, report.html)")
        console.event(
            "done", medoid=medoid, stability=result.stability.tolist(), outliers=result.outliers
        )
    return run_folder.exit_code(run, own_limit=solver.max_iter is not None)


def _has_begun(folder: Path) -> bool:
    """Return whether a folder has fits of a consensus and no run of another command."""
    if not (folder / "fits").is_dir():
        return False
    return not (folder / "run.json").exists() or "replicates" in load_run(folder).facts
