# SPDX-License-Identifier: BSD-3-Clause
"""`sipower differential`: the numbers of the function, matched samples, files and refusals."""

import json

import numpy as np
import pandas as pd
import pytest

from cli.calls import V, call, events
from sipower import differential
from sipower.results import load_run
from sipower.results.differences_table import read_differences
from sipower.results.report import page

NAMED = pd.DataFrame(V, [f"document {i}" for i in range(60)], [f"word{j}" for j in range(40)])
SECTION = "Differences between components</h2>"


@pytest.fixture
def run(counts, monkeypatch):
    """A folder with the run of counts.csv."""
    monkeypatch.setattr(page, "_plotly", lambda: "/* plotly */")
    call("fit", "counts.csv", "-k", 3, "-o", "run")
    return counts / "run"


@pytest.mark.parametrize("contrast", ["least-extreme", "null", "pairwise"])
def test_the_command_is_the_function(run, contrast):
    output = call("differential", "run", "counts.csv", "--contrast", contrast).stdout
    read, fitted = read_differences("run/differential.csv"), load_run("run")
    own = differential(NAMED, fitted.W, contrast=contrast.replace("-", " "))
    assert read.to_frame().equals(own.to_frame())
    assert str(own.replication) in output
    assert "3 of 3: checking the differences on independent counts\n" in output
    assert "wrote run/differential.csv and run/report.html" in output


def test_samples_and_features_are_matched_by_name(run):
    call("differential", "run", "counts.csv", "--no-report")
    straight = read_differences("run/differential.csv")
    NAMED.sample(frac=1, random_state=0).sample(frac=1, axis=1, random_state=1).to_csv("mixed.csv")
    more = pd.concat([NAMED.iloc[::-1], NAMED.head(2).rename(index="other {}".format)])
    more.assign(extra=1).to_csv("more.csv")
    for file in ("mixed.csv", "more.csv"):
        output = call("differential", "run", file, "--no-report").stdout
        matched = read_differences("run/differential.csv")
        assert list(matched.features) == list(straight.features)
        for name in ("log2_fold_change", "standard_error", "posterior_mean", "upper", "lfsr"):
            expected = getattr(straight, name)
            np.testing.assert_allclose(getattr(matched, name), expected, rtol=1e-8, atol=1e-9)
    assert "2 samples of the file are not in the run: left out." in output
    np.save("plain.npy", V)
    output = call("differential", "run", "plain.npy", "--no-report").stdout
    assert "has no sample names: samples are matched by their order." in output
    np.save("plain.npy", V[::-1] * 2)
    output = call("differential", "run", "plain.npy", "--no-report").stdout
    assert "check that these are the counts that were fitted." in output


def test_mistakes_get_one_sentence(run):
    NAMED.head(50).to_csv("fewer.csv")
    NAMED.iloc[:, :30].to_csv("narrow.csv")
    NAMED.rename(columns="other {}".format).to_csv("other.csv")
    np.save("short.npy", V[:50])
    pd.concat([NAMED.head(1), NAMED]).to_csv("twice.csv")
    mistakes = {
        ("run", "fewer.csv"): "10 of 60 samples of the run are not in the data, such as 'document",
        ("run", "narrow.csv"): "10 of 40 features of the run are not in the data, such as 'word30'",
        ("run", "other.csv"): "No feature of the file is in the run",
        ("run", "short.npy"): "The data have 50 samples, but the run has 60",
        ("run", "twice.csv"): "The file has the sample 'document 0' more than once",
        ("run", "nowhere.csv"): "nowhere.csv does not exist",
        ("nowhere", "counts.csv"): "nowhere is not a run of sipower",
        ("counts.csv", "run"): "the run comes first, as in sipower differential run counts.csv.",
        ("run", "counts.csv", "-o", "table.txt"): "table.txt must end in .csv or .parquet.",
        ("run", "counts.csv", "--level", 2): "`level` must be between 0 and 1, got 2",
        ("run", "counts.csv", "--prior", 0): "`prior` must be positive, got 0",
    }
    for words, sentence in mistakes.items():
        error = call("differential", *words, code=2).stderr
        assert sentence in error
        assert len(error.splitlines()) == 1
    assert not (run / "differential.csv").exists()


def test_the_report_has_the_section_if_there_is_a_table(run):
    report = run / "report.html"
    assert SECTION not in report.read_text()
    call("differential", "run", "counts.csv", "-o", "elsewhere.csv")
    assert SECTION not in report.read_text()
    call("differential", "run", "counts.csv", "-o", "run/differential.parquet")
    assert SECTION in report.read_text()
    assert not (run / "differential.csv").exists()
    call("differential", "run", "counts.csv", "--no-report")
    assert not (run / "differential.parquet").exists()
    for write in (("report", "run"), ("fit", "counts.csv", "-k", 3, "-o", "run", "--resume")):
        report.unlink()
        call(*write)
        assert SECTION in report.read_text()
    call("fit", "counts.csv", "-k", 4, "-o", "run", "--force")
    assert SECTION not in report.read_text()
    assert not list(run.glob("differential.*"))


def test_events(run):
    lines = events(call("differential", "run", "counts.csv", "--json", "--no-check"))
    assert [line["event"] for line in lines] == ["read", "stage", "stage", "done"]
    assert [line.get("number") for line in lines] == [None, 1, 2, None]
    assert lines[-1]["supported"] is None
    assert list(lines[-1]["changes"]) == ["component 1", "component 2", "component 3"]
    facts = json.loads((run / "differential.json").read_text())
    assert facts["verdict"] == lines[-1]["verdict"]
    assert facts["input"] == "counts.csv"


def test_noise_is_reported(counts):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.poisson(0.5, (100, 80))).to_csv("noise.csv", index=False)
    call("fit", "noise.csv", "-k", 3, "-o", "run", "--no-report")
    output = call("differential", "run", "noise.csv", "--no-report").stdout
    assert "The components fit noise: do not interpret the differences." in output


def test_a_consensus_is_compared_by_its_medoid(run):
    call("consensus", "counts.csv", "-k", 3, "--replicates", 2, "-o", "both")
    output = call("differential", "both", "counts.csv").stdout
    assert "The run is a consensus: the differences are those of its most typical fit." in output
    text = (run.parent / "both" / "report.html").read_text()
    assert SECTION in text
    assert "Consensus</h2>" in text


@pytest.mark.parametrize("option", ["offsets", "batch"])
def test_the_data_are_observed_as_in_the_fit(counts, option):
    rng = np.random.default_rng(0)
    values = {"offsets": rng.uniform(0.5, 2, 60), "batch": rng.choice(["A", "B"], 60)}[option]
    pd.Series(values, NAMED.index, name="value").to_csv("values.csv")
    given = (f"--{option}", "values.csv")
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report", *given)
    error = call("differential", "run", "counts.csv", code=2).stderr
    assert f"--{option}: the run was fitted with it: give the same values again." in error
    call("differential", "run", "counts.csv", "--no-report", *given)
    straight = read_differences("run/differential.csv")
    assert straight.replication.is_supported
    NAMED.sample(frac=1, random_state=0).to_csv("mixed.csv")
    call("differential", "run", "mixed.csv", "--no-report", *given)
    mixed = read_differences("run/differential.csv")
    np.testing.assert_allclose(mixed.lfsr, straight.lfsr, rtol=1e-6, atol=1e-9)
    call("fit", "counts.csv", "-k", 3, "-o", "plain", "--no-report")
    error = call("differential", "plain", "counts.csv", *given, code=2).stderr
    assert f"--{option}: the run was fitted without it: leave it out." in error
