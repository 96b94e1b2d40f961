# SPDX-License-Identifier: BSD-3-Clause
"""`sipower transform`: the weights of the model, features found by name."""

import numpy as np
import pandas as pd

from cli.calls import V, call
from sipower import KLNMF
from sipower.results import load_run
from sipower.results.describe import describe


def test_transform_is_that_of_the_model(counts):
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
    pd.DataFrame(V[:7], columns=[f"word{j}" for j in range(40)]).to_csv("new.csv", index=False)
    call("transform", "run", "new.csv", "-o", "W.csv")
    weights, shares = (pd.read_csv(f, index_col="name") for f in ("W.csv", "W_shares.csv"))
    run, model = load_run("run"), KLNMF(3, random_state=0).fit(V)
    own = model.transform(V[:7])[:, run.order]
    np.testing.assert_allclose(weights, own * run.H.sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=1), V[:7].sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(shares, describe(run).memberships[:7], rtol=1e-12)
    call("transform", "run", "new.csv", "-o", "W.npz")
    np.testing.assert_allclose(np.load("W.npz")["W"], weights, rtol=1e-12)
    np.testing.assert_allclose(np.load("W.npz")["shares"], shares, rtol=1e-12)
    call("transform", "run", "new.csv", "-o", "W.npz", "--no-normalise")
    np.testing.assert_array_equal(np.load("W.npz")["W"], own)  # to the bit
    np.testing.assert_array_equal(own, np.load("run/factors.npz")["W"][:7])


def test_transform_finds_features_by_name(counts):
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
    frame = pd.read_csv("counts.csv", index_col=0)
    frame.iloc[:, ::-1].to_csv("turned.csv")
    call("transform", "run", "turned.csv", "-o", "turned.npz")
    call("transform", "run", "counts.csv", "-o", "same.npz")
    np.testing.assert_array_equal(np.load("turned.npz")["W"], np.load("same.npz")["W"])
    empty = [name for name in frame if not frame[name].any()] or ["word0"]
    frame.drop(columns=empty[0]).to_csv("fewer.csv")
    assert (
        "1 of 40 features of the run are not in the file"
        in call("transform", "run", "fewer.csv", "-o", "fewer.npz").stdout
    )
    frame.rename(columns="other {}".format).to_csv("other.csv")
    result = call("transform", "run", "other.csv", "-o", "x.npz", code=2)
    assert "such as 'other word0' in the data and 'word0' in the run" in result.stderr
    np.save("narrow.npy", np.ones((3, 5)))
    result = call("transform", "run", "narrow.npy", "-o", "x.npz", code=2)
    assert "The data have 5 features, but the run has 40" in result.stderr


def test_what_no_component_has_is_told_by_name(counts):
    frame = pd.DataFrame(V, columns=[f"word{j}" for j in range(40)])
    frame["word7"] = 0
    frame.to_csv("without.csv", index_label="name")
    call("fit", "without.csv", "-k", 3, "-o", "run", "--no-report")
    new = frame.head(4).copy()
    new.loc[2, "word7"] = 5
    new.index = ["a", "b", "c", "d"]
    new.to_csv("new.csv", index_label="name")
    sentence = "No component has feature 'word7', but row 'c' has counts of it: 1 such entry is"
    assert sentence in call("transform", "run", "new.csv", "-o", "W.npz").stdout
