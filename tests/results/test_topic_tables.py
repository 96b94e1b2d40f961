# SPDX-License-Identifier: BSD-3-Clause
"""Topics for other tools: pyLDAvis takes them, and plain tables hold distributions."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sipower import KLNMF, describe
from sipower.datasets import poisson_topics
from sipower.results import Run
from sipower.results.export import export, export_paths
from sipower.results.topic_tables import to_pyldavis, topic_frames


@pytest.fixture(scope="module")
def fit():
    V = poisson_topics(80, 50, 4, length=60, seed=0)
    V = V[:, V.sum(axis=0) > 0][:, :36]
    model = KLNMF(4, random_state=0)
    return V, model, model.fit_transform(V)


def test_arguments_are_distributions_and_counts(fit):
    V, model, W = fit
    words = [f"w{j}" for j in range(36)]
    found, about = to_pyldavis(model, V, W, features=words), describe(model, W=W)
    assert found["vocab"] == words
    assert_allclose(found["topic_term_dists"].sum(axis=1), 1, rtol=1e-14)
    assert_allclose(found["doc_topic_dists"].sum(axis=1), 1, rtol=1e-14)
    assert_allclose(found["topic_term_dists"], about.profiles, atol=1e-10)
    assert_allclose(found["doc_topic_dists"], about.memberships, atol=1e-14)
    assert_array_equal(found["doc_lengths"], V.sum(axis=1))
    assert_array_equal(found["term_frequency"], V.sum(axis=0))
    for other in (to_pyldavis(model, V), to_pyldavis((W, model.components_), V)):
        assert_allclose(other["doc_topic_dists"], found["doc_topic_dists"], atol=1e-6)
    frame = pd.DataFrame(V.toarray(), columns=words)
    assert to_pyldavis((W, model.components_), frame)["vocab"] == words


def test_pyldavis_prepares_the_topics(fit):
    pyLDAvis = pytest.importorskip(
        "pyLDAvis", reason="pyLDAvis needs gensim, which has no wheel for this Python"
    )
    V, model, W = fit
    prepared = pyLDAvis.prepare(**to_pyldavis(model, V, W), n_jobs=1)
    about = describe(model, W=W)
    sizes = prepared.topic_coordinates.sort_values("topics")["Freq"]
    assert_allclose(sizes, 100 * about.sizes, rtol=1e-6)  # the same order: by size

    def refuse(constant):
        raise AssertionError(f"the page has {constant}, which is no JSON")

    if np.iscomplexobj(prepared.topic_coordinates["x"]):
        pytest.skip("pyLDAvis draws complex coordinates with this NumPy, which are no JSON")
    json.loads(prepared.to_json(), parse_constant=refuse)


def test_what_has_no_counts_is_left_out_with_a_warning(fit):
    V, model, W = fit
    V = V.toarray()
    V[3], V[:, 7] = 0, 0
    H = model.components_.copy()
    H[:, 7] = 0
    weights = W.copy()
    weights[3] = 0
    with pytest.warns(UserWarning, match="`V`: left out 1 document and 1 word without counts"):
        found = to_pyldavis((weights, H), V)
    assert found["doc_topic_dists"].shape == (79, 4)
    assert found["topic_term_dists"].shape == (4, 35)
    assert "8" not in found["vocab"]
    assert len(found["doc_lengths"]) == 79
    weights[:, 2] = 0
    with pytest.warns(UserWarning, match="1 topic without"):
        assert to_pyldavis((weights, H), V)["topic_term_dists"].shape == (3, 35)


def test_other_data_are_refused(fit):
    V, model, W = fit
    with pytest.raises(ValueError, match=r"`V` must have the shape \(80, 36\) of W H"):
        to_pyldavis((W, model.components_), V[:10])


def test_plain_tables_hold_distributions(fit, tmp_path):
    V, model, W = fit
    run = Run.from_model(model, W, samples=[f"d{i}" for i in range(80)])
    files = export(run, tmp_path, "topics")
    assert files == export_paths(run, tmp_path, "topics")
    assert [file.name for file in files] == ["doc_topic.csv", "topic_word.csv"]
    documents, words = (pd.read_csv(file, index_col=0) for file in files)
    assert (documents.index.name, words.index.name) == ("document", "topic")
    assert_allclose(documents.sum(axis=1), 1)
    assert_allclose(words.sum(axis=1), 1)
    assert (
        documents.columns.tolist() == words.index.tolist() == [f"topic {k}" for k in (1, 2, 3, 4)]
    )
    assert documents.index[0] == "d0"
    assert_allclose(
        documents.to_numpy() @ words.to_numpy() * V.sum(axis=1)[:, None],
        W @ model.components_,
        atol=1e-6 * V.max(),
    )
    assert_array_equal(topic_frames(run)[1].columns, run.feature_names())
