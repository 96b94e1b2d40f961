# SPDX-License-Identifier: BSD-3-Clause
"""`sipower transform`: the weights of the model, features found by name."""

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cli.calls import V, call, events
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
    assert "such as 'other word0' in the file and 'word0' in the run" in result.stderr
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


LOGS = np.log1p(1e4 * V / np.maximum(V.sum(axis=1, keepdims=True), 1))


@pytest.fixture
def annotated(counts):
    """Write cells whose X holds logarithms, with the counts as a layer, and a table of genes."""
    cells = anndata.AnnData(sparse.csr_matrix(LOGS), layers={"umi": sparse.csr_matrix(V)})
    cells.var_names = [f"word{j}" for j in range(40)]
    cells.write_h5ad("cells.h5ad")
    del cells.layers["umi"]
    cells.write_h5ad("logs.h5ad")
    pd.DataFrame(V.T, [f"word{j}" for j in range(40)]).to_csv("genes.csv")


def remarks(result):
    seen = [text for event in events(result) for text in event.get("remarks", [])]
    return seen + [event["text"] for event in events(result) if event["event"] == "remark"]


def test_the_layer_of_the_fit_is_read_again(annotated):
    call("fit", "cells.h5ad", "--layer", "umi", "-k", 3, "-o", "run", "--also", "h5ad")
    run = load_run("run")
    assert run.facts["input"]["layer"] == "umi"
    assert anndata.read_h5ad("run/run.h5ad").uns["nmf"]["params"]["layer"] == "umi"
    result = call("transform", "run", "cells.h5ad", "-o", "W.npz", "--no-normalise", "--json")
    assert remarks(result) == []
    place = np.argsort(run.order)
    np.testing.assert_array_equal(np.load("W.npz")["W"][:, place], run.W[:, place])
    assert "Verified" in call("verify", "run", "cells.h5ad").stdout
    call("differential", "run", "cells.h5ad", "--no-check")
    result = call("transform", "run", "cells.h5ad", "--layer", "X", "-o", "W.npz", "--json")
    said = remarks(result)
    assert "The run was fitted with the layer umi, but X is used here." in said
    assert sum("these look like logarithms of normalised counts" in text for text in said) == 1
    result = call("transform", "run", "logs.h5ad", "-o", "W.npz", code=2)
    assert "has no layers/umi" in result.stderr
    assert "The run was fitted to the layer umi: choose" in result.stderr
    call("transform", "run", "counts.csv", "-o", "W.npz")  # a table has no layers


def test_the_orientation_of_the_fit_is_used_again(annotated):
    call("fit", "genes.csv", "--transpose", "-k", 3, "-o", "run", "--no-report")
    assert load_run("run").facts["input"]["transpose"] is True
    result = call("transform", "run", "genes.csv", "-o", "W.npz", "--no-normalise", "--json")
    assert remarks(result) == []
    np.testing.assert_array_equal(np.load("W.npz")["W"], load_run("run").W)
    assert "Verified" in call("verify", "run", "genes.csv").stdout
    result = call("transform", "run", "counts.csv", "--no-transpose", "-o", "W.npz", "--json")
    assert remarks(result) == [
        "The run was fitted with the option --transpose, but --no-transpose is used here."
    ]
    result = call("transform", "run", "counts.csv", "-o", "W.npz", code=2)
    assert "use --transpose or --no-transpose" in result.stderr


def test_a_table_of_logarithms_or_with_totals_is_remarked(counts):
    names = [f"word{j}" for j in range(40)]
    pd.DataFrame(LOGS, columns=names).to_csv("logs.csv", index=False)
    pd.DataFrame(V, columns=names).assign(total=V.sum(axis=1)).to_csv("totals.csv", index=False)
    looks = "The data hold no whole numbers"
    clause = "and these look like logarithms of normalised counts"
    result = call("fit", "logs.csv", "-k", 3, "-o", "logs", "--no-report", "--json")
    assert [looks in text and clause in text for text in remarks(result)] == [True]
    result = call("transform", "logs", "logs.csv", "-o", "W.npz", "--json")
    assert remarks(result) == []  # the fit has said it
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
    result = call("transform", "run", "logs.csv", "-o", "W.npz", "--json")
    assert sum(clause in text for text in remarks(result)) == 1
    result = call("fit", "totals.csv", "-k", 3, "-o", "totals", "--no-report", "--json")
    assert [text[:46] for text in remarks(result)] == [
        "The feature 'total' is the sum of all other fe"
    ]
    call("convert", "totals.csv", "-o", "totals.sipower")
    result = call("fit", "totals.sipower", "-k", 3, "-o", "store", "--no-report", "--json")
    assert sum("The feature 'total' is the sum" in text for text in remarks(result)) == 1
