# SPDX-License-Identifier: BSD-3-Clause
"""`sipower verify`: recompute objective and certified gap of a run from its data."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sipower.cli import options
from sipower.cli.application import command
from sipower.cli.console import Console, option_name
from sipower.cli.exit_codes import DONE, NOT_CONVERGED
from sipower.cli.model_options import ModelOptions, SampleOptions
from sipower.cli.run_folder import nonzero_matrix
from sipower.cli.transform import check_order, load_for_run
from sipower.estimators import KLNMF
from sipower.estimators import verify as verify_factors
from sipower.estimators.fingerprints import ARRAY
from sipower.estimators.verdict import agrees
from sipower.io import Table
from sipower.results import Run, load_run
from sipower.results.provenance import first_difference, initial_facts

# Parameters that are part of the problem.
_STATED = (
    "alpha_W", "alpha_H", "l1_ratio", "prior_W", "prior_H", "guide_strength", "batch_prior",
    "missing", "components_zero", "tol", "dtype",
)  # fmt: skip
_AGAIN = "The option --{} of the fit, with the same file."


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(SampleOptions):
    """The files that a run was fitted with, which its folder does not contain, and messages."""

    fixed: Annotated[Path | None, typer.Option(help=_AGAIN.format("fixed"))] = None
    guides: Annotated[Path | None, typer.Option(help=_AGAIN.format("guides"))] = None
    threads: options.Threads = None
    as_json: options.Json = False


@command("nothing is saved")
def verify(folder: options.Run, source: options.FitInputOptions, files: VerifyOptions) -> int:
    """Recompute objective and gap of a run from its data, by code that shares no solver.

    Exit codes: 0 if the run is verified and its gap is at most --tol of its fit, 4 if not, 2 if the
    files are not those of the fit.
    """
    data = source.files()
    check_order("verify", folder, data.source)
    console, run = Console(files.as_json), load_run(folder)
    data, table = load_for_run(run, data, console)
    model = _recorded_model(run, folder, files.threads)
    given = ModelOptions(fixed=files.fixed, guides=files.guides).parameters(data, table, console)
    model.set_params(**given)
    observed = files.observed(data, table, console)
    V = nonzero_matrix(table, model)
    _check_same(run, folder, initial_facts(model, V, None, observed), table)
    if run.batch_effects is not None:
        model.batches_, model.batch_effects_ = np.array(run.batches), run.batch_effects
        observed["batch"] = np.asarray(observed["batch"]).astype(str)
    place = np.argsort(run.order)  # the components in the order of the model
    found = verify_factors(V, run.W[:, place], run.H[place], model=model, **observed)
    is_same = agrees(found, run.facts["divergence"], run.facts["certified_gap"], V)
    is_verified = is_same and found.is_converged(model.tol)
    console.event("verified" if is_verified else "not_verified", tol=model.tol, **asdict(found))
    console.say(str(found))
    sample = _name(table.samples, found.worst_sample)
    feature = _name(table.features, found.worst_feature)
    console.say(f"the largest gaps are those of sample {sample} and feature {feature}")
    if not is_same:
        console.say(
            f"Not verified: the run says divergence {run.facts['divergence']:.10g} and certified "
            f"gap {run.facts['certified_gap']:.2e}."
        )
    else:
        verdict = (
            "Verified: the gap is at most" if is_verified else "Not converged: the gap exceeds"
        )
        same = "the divergence is that of the run, and the gap is not larger"
        console.say(f"{verdict} --tol {model.tol:g}; {same}.")
    return DONE if is_verified else NOT_CONVERGED


def _recorded_model(run: Run, folder: Path, threads: int | None) -> KLNMF:
    """Return a model with the parameters that the run records."""
    recorded = run.facts.get("parameters") or {}
    if None in (recorded.get("tol"), run.facts.get("divergence"), run.facts.get("certified_gap")):
        raise ValueError(f"{folder} does not record how it was fitted: verify runs of sipower fit.")
    known = {name: recorded[name] for name in _STATED if recorded.get(name) is not None}
    for name, value in known.items():
        if isinstance(value, str) and value.startswith(ARRAY):
            raise ValueError(
                f"{folder} does not record the values of `{name}`: use sipower.verify in Python."
            )
    return KLNMF(len(run.H), n_jobs=threads, **known)


def _name(names: Sequence[str] | None, at: int) -> str:
    """Return the name of a sample or feature, or its number from 1."""
    return str(at + 1) if names is None else names[at]


def _check_same(run: Run, folder: Path, facts: dict[str, Any], table: Table) -> None:
    """Raise an error unless data and files are those of the run."""
    recorded, current = run.facts["parameters"], facts["parameters"]
    parameters = {name: current[name] for name in ("components_fixed", "guides")}
    had, has = run.facts["input"], facts["input"]
    is_distributed = "workers" in run.facts and "files" in had  # fingerprint of the parts
    if is_distributed and all(had[name] == has[name] for name in ("shape", "nonzeros", "total")):
        has["sha256"] = had["sha256"]
    other = first_difference(run.facts, facts | {"parameters": parameters})
    if other is None and (run.samples, run.features) != (table.samples, table.features):
        other = "names"
    if other is None:
        return
    is_absent = facts.get("observed", {}).get(other) is None and parameters.get(other) is None
    here, there = table.counts.shape, (len(run.W), run.H.shape[1])
    if here != there:
        raise ValueError(
            f"{folder} was fitted to {there[0]:,} samples x {there[1]:,} features, but these data "
            f"have {here[0]:,} x {here[1]:,}: give the data of the run."
        )
    if other in ("data", "names"):
        raise ValueError(
            f"{folder} was fitted to other {other}: give the data of the run, rows and files in "
            "the same order."
        )
    was_given = recorded.get(other) is not None or other in run.facts.get("observed", {})
    option = option_name(other)
    if was_given and is_absent:
        raise ValueError(f"{folder} was fitted with {option}: give the same file again.")
    if not was_given:
        raise ValueError(f"{folder} was fitted without {option}: leave it out.")
    raise ValueError(f"{folder} was fitted with another {option}: give the file of the run.")
