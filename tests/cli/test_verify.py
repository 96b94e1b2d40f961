# SPDX-License-Identifier: BSD-3-Clause
"""`sipower verify` recomputes what a run says, and sees every change of its factors."""

import json

import numpy as np
import pandas as pd
import pytest

import sipower
from cli.calls import V, call, events
from sipower.cli.exit_codes import BAD_INPUT, NOT_CONVERGED


@pytest.fixture
def counts(tmp_path):
    return write_counts(tmp_path / "counts.csv", V)


def write_counts(path, values):
    samples, features = (f"document {i}" for i in range(60)), (f"word{j}" for j in range(40))
    pd.DataFrame(values, list(samples), list(features)).to_csv(path)
    return path


def write_values(path, values):
    path.write_text("\n".join(["name,value", *(f"document {i},{v}" for i, v in enumerate(values))]))
    return path


def fit(counts, out, *options, code=0):
    call("fit", counts, "-k", 3, "-o", out, "--no-report", *options, code=code)
    return out


def test_a_run_is_verified(counts, tmp_path):
    run = fit(counts, tmp_path / "run")
    result = call("verify", run, counts, "--json")
    found = events(result)[-1]
    facts = json.loads((run / "run.json").read_text())
    assert found["event"] == "verified"
    assert found["gap"] == pytest.approx(facts["certified_gap"], abs=1e-9)
    factors = np.load(run / "factors.npz")
    here = sipower.verify(V, factors["W"], factors["H"])
    assert found["divergence"] == pytest.approx(here.divergence, rel=1e-12)
    assert found["gap"] == pytest.approx(here.gap, rel=1e-9)
    output = call("verify", run, counts).output
    assert "Verified: the gap is at most --tol 0.001" in output
    worst = f"sample document {here.worst_sample} and feature word{here.worst_feature}"
    assert f"the largest gaps are those of {worst}" in output


@pytest.mark.parametrize("option", ["--batch", "--sample-weight", "--fixed", "--guides"])
def test_a_general_run_needs_the_files_of_its_fit(counts, tmp_path, option):
    values = {
        "--batch": lambda: write_values(tmp_path / "o.csv", np.arange(60) % 2 + 1),
        "--sample-weight": lambda: write_values(tmp_path / "o.csv", np.arange(60) % 3 + 1),
        "--fixed": lambda: fit(counts, tmp_path / "known", "--seed", 5),
        "--guides": lambda: tmp_path / "guides.json",
    }
    (tmp_path / "guides.json").write_text('{"first": ["word1", "word2", "word3"]}')
    file = values[option]()
    given = (option, file, *(("-k", 5) if option == "--fixed" else ()))
    run = fit(counts, tmp_path / "run", *given, "--prior-h", 0.1)
    assert "Verified" in call("verify", run, counts, option, file).output
    without = call("verify", run, counts, code=BAD_INPUT)
    assert f"{run} was fitted with {option}: give the same file again" in without.stderr


def test_a_changed_run_is_not_verified(counts, tmp_path):
    run = fit(counts, tmp_path / "run")
    factors = dict(np.load(run / "factors.npz"))
    np.savez(run / "factors.npz", **factors | {"W": 1.01 * factors["W"]})
    assert "Not verified" in call("verify", run, counts, code=NOT_CONVERGED).output


def test_a_run_that_has_not_converged_is_not_verified(counts, tmp_path):
    run = fit(counts, tmp_path / "run", "--tol", 1e-9, "--max-iter", 2)
    assert "Not converged" in call("verify", run, counts, code=NOT_CONVERGED).output


def test_other_data_are_refused(counts, tmp_path):
    run = fit(counts, tmp_path / "run")
    other = write_counts(tmp_path / "other.csv", V + 1)
    assert "was fitted to other data" in call("verify", run, other, code=BAD_INPUT).stderr


@pytest.mark.parametrize("workers", [(), ("--workers", 2)], ids=["here", "workers"])
def test_a_run_of_several_files_is_verified_from_them(tmp_path, workers):
    files = [tmp_path / name for name in ("first.csv", "second.csv")]
    features = [f"word{j}" for j in range(40)]
    for at, file in enumerate(files):
        rows = range(30 * at, 30 * at + 30)
        pd.DataFrame(V[rows], [f"document {i}" for i in rows], features).to_csv(file)
    call("fit", *files, "-k", 3, "-o", tmp_path / "run", "--no-report", *workers)
    assert "Verified" in call("verify", tmp_path / "run", *files).output
    message = call("verify", tmp_path / "run", files[0], code=BAD_INPUT).stderr
    assert "was fitted to 60 samples x 40 features, but these data have 30 x 40" in message


def test_an_option_that_the_fit_did_not_have_is_refused(counts, tmp_path):
    run = fit(counts, tmp_path / "run")
    weights = write_values(tmp_path / "w.csv", np.arange(60) % 3 + 1)
    message = call("verify", run, counts, "--sample-weight", weights, code=BAD_INPUT).stderr
    assert f"{run} was fitted without --sample-weight: leave it out" in message


@pytest.mark.parametrize("change", [
    {"certified_gap": None}, {"parameters": {"tol": None}}, {"parameters": {"tol": "small"}},
    {"parameters": {"alpha_W": -0.1}},
])  # fmt: skip
def test_a_damaged_record_gets_one_sentence(counts, tmp_path, change):
    run = fit(counts, tmp_path / "run")
    facts = json.loads((run / "run.json").read_text())
    parameters = facts["parameters"] | change.get("parameters", {})
    (run / "run.json").write_text(json.dumps(facts | change | {"parameters": parameters}))
    message = call("verify", run, counts, code=BAD_INPUT).stderr
    assert message.count("sipower:") == 1
    assert any(word in message for word in ("does not record", "'tol'", "--alpha-w"))


def test_a_recorded_gap_that_is_larger_is_not_called_equal(counts, tmp_path):
    run = fit(counts, tmp_path / "run")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"certified_gap": 0.5}))
    assert "and the gap is not larger." in call("verify", run, counts).output


def test_known_components_that_were_scaled_are_noticed(counts, tmp_path):
    known = fit(counts, tmp_path / "known", "--seed", 5)
    run = fit(counts, tmp_path / "run", "--fixed", known, "-k", 5)
    factors = dict(np.load(run / "factors.npz"))
    np.savez(run / "factors.npz", **factors | {"W": factors["W"] / 2, "H": factors["H"] * 2})
    output = call("verify", run, counts, "--fixed", known, code=NOT_CONVERGED).output
    assert "certified gap inf" in output
