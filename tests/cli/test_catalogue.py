# SPDX-License-Identifier: BSD-3-Clause
"""`sipower refit` and `sipower compare` do what the functions do, with names from files."""

import numpy as np
import pandas as pd
import pytest

from cli.calls import call, events
from sipower import compare, refit
from sipower.inference.sbs96 import CHANNELS
from sipower.io import write_components
from sipower.results import load_run

RNG = np.random.default_rng(0)
H = pd.DataFrame(RNG.dirichlet(np.full(96, 0.2), 6), [f"SBS{k}" for k in range(6)], list(CHANNELS))
W = RNG.gamma(1, 400, (12, 6)) * (RNG.random((12, 6)) < 0.5)
COUNTS = pd.DataFrame(RNG.poisson(W @ H), [f"tumour{i}" for i in range(12)], list(CHANNELS))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    COUNTS.to_csv("counts.csv", index_label="name")
    write_components("cosmic.tsv", H.iloc[:, ::-1], transpose=True)


def read_table(file):
    return pd.read_csv(file, index_col="name")


def test_refit_is_that_of_the_function(files):
    result = refit(COUNTS, H)
    assert (
        "wrote W.csv, W_shares.csv"
        in call("refit", "cosmic.tsv", "counts.csv", "-o", "W.csv").stdout
    )
    frames = result.to_frames()
    for name, file in (("exposures", "W.csv"), ("lower", "W_lower.csv"), ("upper", "W_upper.csv")):
        pd.testing.assert_frame_equal(read_table(file), frames[name], rtol=0.01, atol=0.01)
    about = read_table("W_samples.csv")
    np.testing.assert_allclose(about["p_value"], result.p_value, rtol=1e-3)
    printed = events(call("refit", "cosmic.tsv", "counts.csv", "-o", "W.npz", "--json"))[-1]
    assert printed["event"] == "done"
    assert printed["shape"] == [12, 6]
    with np.load("W.npz") as arrays:
        np.testing.assert_array_equal(arrays["support"], result.support)
        assert list(arrays["components"]) == list(H.index)
        assert list(arrays["samples"]) == list(COUNTS.index)


def test_refit_takes_options_and_partial_overlap(files):
    fewer = COUNTS.iloc[:, 5:]
    fewer.to_csv("fewer.csv", index_label="name")
    words = ("--all", "--no-intervals", "--level", 0.2)
    output = call("refit", "cosmic.tsv", "fewer.csv", "-o", "W.csv", *words).stdout
    assert "fewer.csv lacks 5 of 96 features of cosmic.tsv" in output
    with pytest.warns(UserWarning, match="lacks 5 of 96"):
        expected = refit(fewer, H, sparse=False, intervals=False).to_frames()["exposures"]
    pd.testing.assert_frame_equal(read_table("W.csv"), expected, rtol=1e-3, atol=1e-3)


def test_a_run_is_a_catalogue_and_is_compared_with_one(files):
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
    call("refit", "run", "counts.csv", "-o", "W.csv", "--no-intervals")
    assert list(read_table("W.csv")) == [f"run component {k}" for k in (1, 2, 3)]
    printed = call("compare", "run", "cosmic.tsv", "-o", "names.csv").stdout
    assert "wrote names.csv" in printed
    table = pd.read_csv("names.csv", index_col="component")
    expected = compare(load_run("run"), H)
    assert list(table["name"]) == list(expected.names)
    np.testing.assert_allclose(table["best_cosine"], expected.best_cosines)
    (event,) = events(call("compare", "cosmic.tsv", "cosmic.tsv", "--json"))
    assert event["names"] == list(H.index)
    assert event["new"] == 0


def test_wrong_input_is_told_in_one_sentence(files):
    def error(*words):
        return call(*words, code=2).stderr

    assert "W.xlsx must end in .npz, .csv, .tsv or .parquet" in error(
        "refit", "cosmic.tsv", "counts.csv", "-o", "W.xlsx"
    )
    assert "--level must be between 0 and 1, got 3" in error(
        "refit", "cosmic.tsv", "counts.csv", "-o", "W.csv", "--level", 3
    )
    H.rename(columns="other {}".format).to_csv("other.csv", index_label="name")
    assert "has no feature of the data, such as" in error(
        "refit", "other.csv", "counts.csv", "-o", "W.csv"
    )
    assert "--threshold must be above 0" in error(
        "compare", "cosmic.tsv", "cosmic.tsv", "--threshold", 3
    )
    assert "has no feature of the data" in error("compare", "cosmic.tsv", "other.csv")


def test_names_of_one_file_alone_are_refused(files):
    np.save("counts.npy", COUNTS.to_numpy())
    np.save("cosmic.npy", H.to_numpy())
    refused = call("refit", "cosmic.tsv", "counts.npy", "-o", "W.csv", code=2).stderr
    assert "cosmic.tsv has names of features, but counts.npy has none: pass counts with" in refused
    refused = call("refit", "cosmic.npy", "counts.csv", "-o", "W.csv", code=2).stderr
    assert "counts.csv has names of features, but cosmic.npy has none" in refused
    refused = call("compare", "cosmic.npy", "cosmic.tsv", code=2).stderr
    assert "cosmic.tsv has names of features, but cosmic.npy has none" in refused
    assert "or a file of components without names if both have the same order" in refused
    call("refit", "cosmic.npy", "counts.npy", "-o", "W.npz")
    call("refit", "cosmic.tsv", "counts.csv", "-o", "named.npz")
    with np.load("W.npz") as plain, np.load("named.npz") as named:
        np.testing.assert_allclose(plain["exposures"], named["exposures"], rtol=1e-6, atol=1e-6)
