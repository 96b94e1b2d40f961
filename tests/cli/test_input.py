# SPDX-License-Identifier: BSD-3-Clause
"""What comes in: the command says where counts are, matches features and counts words."""

import json

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cli.calls import V, call, events
from sipower.io import Table
from sipower.results import Run, load_run
from sipower.results.new_samples import transform_samples

pytestmark = pytest.mark.filterwarnings("ignore:Variable names are not unique")
COUNTS = sparse.csr_matrix(V, dtype=np.float32)
GENES = ["Tbce", "Tbce", *(f"g{j}" for j in range(38))]
IDS = [f"ENSG{j:011}" for j in range(40)]
ADVICE = (
    "KL-NMF models counts, and these look like logarithms of counts. The file has a layer 'counts':"
    " use --layer counts."
)


def cells(X, genes=GENES, ids=IDS):
    var = pd.DataFrame({} if ids is None else {"gene_ids": ids}, index=genes)
    return anndata.AnnData(sparse.csr_matrix(X), var=var)


@pytest.fixture
def logarithms(tmp_path, monkeypatch):
    """A folder with logs.h5ad, whose counts are in a layer, and raw.h5ad, where they are .raw."""
    monkeypatch.chdir(tmp_path)
    logs = cells(COUNTS.log1p())
    logs.uns["log1p"] = {}
    logs.raw = cells(COUNTS)
    logs.write_h5ad("raw.h5ad")
    logs.raw = None
    logs.layers["counts"] = COUNTS
    logs.write_h5ad("logs.h5ad")
    return tmp_path


def test_logarithms_are_said_once_and_kept_in_run_and_report(logarithms):
    result = call("fit", "logs.h5ad", "-k", 2, "-o", "run", "--tol", 0.1)
    largest = np.log1p(V.max())
    sentence = f"X holds no whole numbers (largest {largest:.3g}): {ADVICE}"
    assert result.stdout.count("whole numbers") == result.stdout.count(sentence) == 1
    facts = load_run("run").facts
    assert facts["remarks"] == [sentence]
    assert facts["input"]["values"] == f"no whole numbers, largest {largest:.4g}"
    assert "use --layer counts." in (logarithms / "run/report.html").read_text()
    result = call("fit", "logs.h5ad", "--layer", "counts", "-k", 2, "-o", "counts", "--tol", 0.1)
    assert "whole numbers" not in result.stdout
    assert "remarks" not in load_run("counts").facts


@pytest.mark.parametrize("words", [["rank", "-k", 2], ["convert"], ["fit", "-k", 2, "--no-report"]])
def test_every_command_that_reads_says_it(logarithms, words):
    limit = ["--memory-limit", "10MB"] if words[0] == "fit" else []
    if words[0] == "rank":
        limit = ["--replicates", 2, "--tol", 0.5]
    result = call(words[0], "logs.h5ad", *words[1:], *limit, "-o", "out", "--json")
    remarks = [text for event in events(result) for text in event.get("remarks", [])]
    assert len(remarks) == 1
    assert remarks[0].endswith(ADVICE)


def test_raw_is_found_and_read_as_a_layer(logarithms):
    result = call("fit", "raw.h5ad", "-k", 2, "-o", "run", "--no-report", "--tol", 0.1)
    assert "The file has counts in .raw: use --layer raw." in result.stdout
    call("fit", "raw.h5ad", "--layer", "raw", "-k", 2, "-o", "raw", "--no-report", "--tol", 0.1)
    assert load_run("raw").facts["input"]["total"] == V.sum()


def test_negative_values_of_scaled_data_name_the_counts(logarithms):
    scaled = anndata.read_h5ad("logs.h5ad")
    scaled.X = scaled.X.toarray() - 1
    scaled.write_h5ad("scaled.h5ad")
    for words in (["fit", "-k", 2], ["convert"]):
        result = call(words[0], "scaled.h5ad", *words[1:], "-o", words[0], code=2)
        assert "non-negative. The file has a layer 'counts': use --layer counts." in result.stderr


def test_transposition_is_not_advised_after_it_was_chosen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(V[:40].T, index=IDS).to_csv("genes.csv")
    options = ["-k", 2, "--no-report", "--tol", 0.1]
    result = call("fit", "genes.csv", *options, "-o", "a")
    assert (
        "The samples look like genes: if samples and features are swapped, use --transpose."
        in result.stdout
    )
    assert "swapped" not in call("fit", "genes.csv", *options, "--transpose", "-o", "b").stdout
    pd.DataFrame(V[:40], index=IDS).to_csv("other.csv")
    assert "swapped" not in call("fit", "other.csv", *options, "--transpose", "-o", "c").stdout


# ---- features of new samples ---------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A folder with cells.h5ad, two of whose genes share a name, and its run."""
    monkeypatch.chdir(tmp_path)
    cells(COUNTS).write_h5ad("cells.h5ad")
    call("fit", "cells.h5ad", "-k", 3, "-o", "run", "--no-report")
    call("transform", "run", "cells.h5ad", "-o", "same.npz")
    return tmp_path


def weights(name):
    return np.load(name)["W"]


def test_features_are_matched_by_id_whatever_their_names(run):
    assert load_run("run").feature_ids == tuple(IDS)
    other_way = cells(COUNTS[:, ::-1], [f"other {j}" for j in range(40)], IDS[::-1])
    other_way.write_h5ad("ids.h5ad")
    call("transform", "run", "ids.h5ad", "-o", "ids.npz")
    np.testing.assert_array_equal(weights("ids.npz"), weights("same.npz"))
    cells(COUNTS[:, ::-1], IDS[::-1], None).write_h5ad("named.h5ad")  # as CELLxGENE names genes
    call("transform", "run", "named.h5ad", "-o", "named.npz")
    np.testing.assert_array_equal(weights("named.npz"), weights("same.npz"))


def test_a_table_of_the_same_names_is_matched_by_name(run):
    names = load_run("run").features
    assert names[:2] == ("Tbce (ENSG00000000000)", "Tbce (ENSG00000000001)")
    pd.DataFrame(V, columns=names).iloc[:, ::-1].to_csv("names.csv")
    call("transform", "run", "names.csv", "-o", "names.npz")
    np.testing.assert_array_equal(weights("names.npz"), weights("same.npz"))


def test_missing_and_additional_features_are_counted(run):
    names = load_run("run").features
    frame = pd.DataFrame(V, columns=names)
    kept = frame.drop(columns=[names[5], names[6]])
    more = kept.assign(new=1)
    more.to_csv("more.csv")
    kept.to_csv("kept.csv")
    result = call("transform", "run", "more.csv", "-o", "more.npz")
    assert (
        "2 of 40 features of the run are not in the file: the weights are computed "
        "from the other features alone." in result.stdout
    )
    share = 60 / more.to_numpy().sum()
    assert (
        f"1 of 39 features of the file are not in the run: {share:.2%} of all counts are left out"
        in result.stdout
    )
    call("transform", "run", "kept.csv", "-o", "kept.npz")
    np.testing.assert_array_equal(weights("more.npz"), weights("kept.npz"))


def test_ids_that_repeat_are_named_with_the_remedy(run):
    cells(COUNTS, GENES, [*IDS[1:], "ENSG00000000001"]).write_h5ad("twice.h5ad")
    result = call("transform", "run", "twice.h5ad", "-o", "x.npz", code=2)
    assert "The file has the feature 'ENSG00000000001' more than once, so" in result.stderr
    assert "make the ids unique, or add up what belongs together" in result.stderr


# ---- texts ---------------------------------------------------------------------------------------

SUBJECTS = ("a sparse matrix and its inverse", "the random sample of a distribution")


def test_texts_are_fitted_and_new_ones_transformed_by_the_words_of_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").mkdir()
    texts = [f"{SUBJECTS[i % 2]} {i % 3}" for i in range(12)]
    for i, text in enumerate(texts):
        (tmp_path / "corpus" / f"{i:02}.txt").write_text(text)
    pd.DataFrame({"doc_id": range(12), "body": texts}).to_csv("texts.csv", index=False)
    words = ("distribution", "inverse", "matrix", "random", "sample", "sparse")
    options = ["-k", 2, "--stop-words", "english", "--min-df", 2, "--no-report"]
    result = call("fit", "corpus", *options, "-o", "folder")
    assert "CountVectorizer (lowercase=True, stop_words='english'" in result.stdout
    call("fit", "texts.csv", "--text-column", "body", *options, "-o", "column")
    for name in ("folder", "column"):
        run = load_run(name)
        assert run.features == words
        settings = json.loads((tmp_path / name / "run.json").read_text())["input"]["texts"]
        assert (settings["stop_words"], settings["min_df"]) == ("english", 2)
    pd.DataFrame({"body": ["Matrix, sparse sparse!", "a new random sample"]}).to_csv("new.csv")
    result = call("transform", "column", "new.csv", "-o", "new.npz")
    assert "1 of 6 words in the texts are not in the vocabulary and left out." in result.stdout
    np.testing.assert_allclose(weights("new.npz").sum(axis=1), [3, 2], rtol=1e-5)  # in counts
    call("transform", "folder", "corpus", "-o", "again.npz")
    normalised = load_run("folder").normalised()
    np.testing.assert_allclose(weights("again.npz"), normalised.W, rtol=1e-6)
    result = call("transform", "folder", "corpus", "-o", "x.npz", "--min-df", 3, code=2)
    assert "--stop-words and --min-df are those of the run" in result.stderr


def test_refusals_write_arguments_as_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("x,a text,y\n1,good film,2\n2,a bad film,3\n")
    result = call("fit", "t.csv", "-k", 2, code=2)
    assert "count their words by --text-column 'a text'." in result.stderr


def test_names_are_used_where_some_ids_are_empty():
    run = Run(np.ones((2, 1)), np.ones((1, 3)), features=("a", "b", "c"), feature_ids=("", "", "1"))
    table = Table(np.array([[1.0, 2.0, 3.0]]), None, ("c", "b", "a"), (), ("1", "", ""))
    W, remarks = transform_samples(run, table)
    np.testing.assert_allclose(W, [[2.0]])
    assert remarks == []


def test_features_that_share_a_name_are_remarked_on():
    run = Run(np.ones((2, 1)), np.ones((1, 3)), features=("a", "DUP", "DUP (2)"))
    table = Table(np.array([[1.0, 2.0, 3.0]]), None, ("DUP", "DUP (2)", "a"))
    _, (remark,) = transform_samples(run, table)
    assert "such as 'DUP': these features are matched by their order in the file" in remark
