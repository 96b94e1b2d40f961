# SPDX-License-Identifier: BSD-3-Clause
"""Commands that are interrupted in a chosen round, and the divergence of the runs they save."""

import os
import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import oracles
from model_options import GUIDES, make_arguments
from sipower.nmf import Auto, RowRounds
from sipower.nmf.batch_effects import BatchEffects
from sipower.results import load_run
from sipower.store import write_store

V = oracles.counts(90, 40, density=2.0)
BATCH = np.repeat(["a", "b", "c"], 30)
GIVEN = make_arguments(V.shape)
ARGUMENTS = {name: GIVEN[name] for name in ("offsets", "sample_weight")} | {"batch": BATCH}
MODELS = {
    "offsets": ("--offsets", "offsets.csv"),
    "sample weights": ("--sample-weight", "sample_weight.csv"),
    "batches": ("--batch", "batch.csv"),
    "priors": ("--prior-h", 0.1, "--guides", "guides.gmt"),
}
MODELS["all but batches"] = (
    *MODELS["offsets"], *MODELS["sample weights"], *MODELS["priors"], "--prior-w", 0.2,
)  # fmt: skip
MODELS["all"] = (*MODELS["all but batches"], *MODELS["batches"])


def write_files(folder):
    """Write the counts, and a file for each argument."""
    samples, features = [f"s{i}" for i in range(90)], [f"f{j}" for j in range(40)]
    pd.DataFrame(V.astype(int), samples, features).to_csv(folder / "counts.csv")
    write_store(sp.csr_array(V), folder / "counts.sipower", samples=samples, features=features)
    for name, values in ARGUMENTS.items():
        pd.Series(values, samples, name="value").to_csv(folder / f"{name}.csv")
    lines = [f"{name}\tx\t" + "\t".join(f"f{j}" for j in at) for name, at in GUIDES.items()]
    (folder / "guides.gmt").write_text("\n".join(lines) + "\n")


def fit_words(name, source="counts.csv", *options):
    """Return the words of a fit that only an interruption ends."""
    words = ("fit", source, "-k", 4, "-o", "run", "--no-report", "--tol", 0, "--max-iter", 10**6)
    return (*words, *MODELS[name], *options, "--json")


def interrupt_advance(monkeypatch, after):
    """Send SIGINT to this process within the first round, or the one that follows `after`."""
    depth, rounds = [], []

    def interrupt(solver):
        advance = solver.advance

        def interrupted(self, problem, state):
            depth.append(solver)
            new = advance(self, problem, state)
            depth.pop()
            if not depth and state.round >= after and not rounds:  # no round within a round
                rounds.append(state.round)
                os.kill(os.getpid(), signal.SIGINT)
            return new

        monkeypatch.setattr(solver, "advance", interrupted)

    for solver in (Auto, RowRounds, BatchEffects):
        interrupt(solver)


def assert_states_its_divergence(folder, name):
    """Compare the divergence of an interrupted run with that of its factors; return its rounds."""
    run = load_run(folder)
    used = [word[2:].replace("-", "_") for word in MODELS[name] if str(word).startswith("--")]
    given = {key: ARGUMENTS[key] for key in used if key in ARGUMENTS}
    assert set(run.facts.get("observed", {})) == set(given)
    expected = oracles.observed_divergence(V, run.W, run.H.T, given, run.batch_effects, run.batches)
    assert run.facts["divergence"] == pytest.approx(expected, rel=1e-9)
    assert run.facts["status"] == "interrupted"
    return run.facts["rounds"]
