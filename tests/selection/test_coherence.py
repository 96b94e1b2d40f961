# SPDX-License-Identifier: BSD-3-Clause
"""Coherence and diversity: the numbers of gensim, small cases by hand, and invariances."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sipower import as_matrix, rank_selection
from sipower.datasets import poisson_topics
from sipower.io import open_store, write_store
from sipower.selection import RankSelection, load_outcome, save_outcome
from sipower.selection.coherence import (
    co_occurrences,
    coherence,
    diversity,
    rank_coherence,
    top_features,
)

# The expected numbers are those of gensim 4.4.0 for these documents and topics:
#   texts = [d.split() for d in DOCUMENTS]; words = Dictionary(texts)
#   CoherenceModel(topics=TOPICS, dictionary=words, topn=10, processes=1, coherence="u_mass",
#                  corpus=[words.doc2bow(t) for t in texts]).get_coherence_per_topic()
#   CoherenceModel(topics=TOPICS, dictionary=words, topn=10, processes=1, coherence="c_npmi",
#                  texts=texts, window_size=100).get_coherence_per_topic()
# A window of 100 words holds each document as a whole.
DOCUMENTS = (
    "tree leaf root", "tree leaf leaf bark", "root bark tree", "leaf bark wind", "sail wind boat",
    "boat sail rope wind wind", "boat rope", "wind tree sail", "rope sail boat leaf", "bark root",
    "stone", "wind stone leaf tree",
)  # fmt: skip
TOPICS = ("tree leaf root bark wind", "boat sail rope wind", "stone leaf boat")
GENSIM_UMASS = (-3.473820341954358, -0.5579921445178905, -9.380615579890181)
GENSIM_NPMI = (-0.014336893685205626, 0.36670850647344494, -0.34253123986947376)
WORDS = sorted(set(" ".join(DOCUMENTS).split()))
COUNTS = np.array([[d.split().count(word) for word in WORDS] for d in DOCUMENTS], np.float64)


def positions(topic):
    return np.array([WORDS.index(word) for word in topic.split()])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_coherence_is_that_of_gensim(form):
    result = coherence(as_matrix(form(COUNTS)), [positions(topic) for topic in TOPICS])
    assert_allclose(result.umass, GENSIM_UMASS, rtol=0, atol=1e-8)
    assert_allclose(result.npmi, GENSIM_NPMI, rtol=0, atol=1e-8)
    assert_array_equal(result.pairs, [10, 6, 3])
    assert result.n_top == 5


def test_coherence_of_a_store_on_disk_is_that_in_memory(tmp_path):
    V = sparse.csr_array(poisson_topics(2000, 60, 3, length=50, seed=0))
    write_store(V, tmp_path / "store")
    top = top_features(np.random.default_rng(0).random((4, 60)), 8)
    there, here = (coherence(data, top) for data in (open_store(tmp_path / "store"), as_matrix(V)))
    assert_array_equal(there.npmi, here.npmi)
    assert_array_equal(there.umass, here.umass)


def test_blocks_of_rows_add_up(monkeypatch):
    """Counts over many blocks of odd sizes are those of a dense product."""
    V = (np.random.default_rng(0).random((403, 9)) < 0.3).astype(float)
    matrix, pairs = as_matrix(sparse.csr_array(V)), np.array([[0, 1], [4, 8], [8, 4], [2, 2]])
    monkeypatch.setattr(matrix, "bounds", [0, 1, 33, 97, 300, 403])
    monkeypatch.setattr("sipower.selection.coherence.WORDS_AT_A_TIME", 2)
    first, second, both = co_occurrences(matrix, *pairs.T)
    assert_array_equal(first, V.sum(axis=0)[pairs[:, 0]])
    assert_array_equal(second, V.sum(axis=0)[pairs[:, 1]])
    assert_array_equal(both, (V.T @ V)[pairs[:, 0], pairs[:, 1]])


def test_coherence_by_hand():
    """Feature 0 occurs in 3 of 4 samples, feature 1 in 2 of them, both in 1."""
    V = as_matrix(np.array([[2, 1], [1, 0], [5, 0], [0, 3]]))
    result = coherence(V, [np.array([0, 1])])
    npmi = math.log((1 / 4) / (3 / 4 * 2 / 4)) / -math.log(1 / 4)
    assert_allclose(result.npmi, npmi, rtol=1e-10)
    assert_allclose(result.umass, math.log(1 / 3), rtol=1e-10)
    # Mimno et al. (2011) add one sample
    assert_allclose(coherence(V, [np.array([0, 1])], 1.0).umass, math.log(2 / 3), rtol=1e-14)


def test_extreme_pairs_have_the_documented_values():
    V = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 1, 0]])
    top = [np.array(pair) for pair in ([0, 1], [2, 3], [2, 4], [0, 5], [5, 0])]
    result = coherence(as_matrix(V), top)
    always, together, never, unknown, also_unknown = result.npmi
    assert always == 0
    assert_allclose(together, 1)
    assert -1 < never < -0.9
    assert unknown == also_unknown == -1
    assert_allclose(result.umass[[3, 4]], np.log([4e-12 / 4, 4e-12]))
    assert np.isfinite(result.umass).all()


def test_components_without_a_pair_have_no_nan():
    V = as_matrix(COUNTS)
    result = coherence(V, [np.array([], int), np.array([3]), np.array([0, 1])])
    assert_array_equal(result.pairs, [0, 0, 1])
    assert_array_equal(result.npmi[:2], 0)
    assert_array_equal(result.umass[:2], 0)
    empty = coherence(V, [])
    assert empty.npmi.shape == (0,)
    assert empty.n_top == 0


def test_order_of_samples_features_and_components_does_not_matter():
    rng = np.random.default_rng(0)
    V, H = rng.poisson(0.4, (50, 20)), rng.random((4, 20))
    rows, columns, components = rng.permutation(50), rng.permutation(20), rng.permutation(4)
    plain = coherence(as_matrix(V), top_features(H, 6))
    shuffled = coherence(as_matrix(V[rows][:, columns]), top_features(H[components][:, columns], 6))
    for name in ("npmi", "umass"):
        assert_allclose(getattr(shuffled, name), getattr(plain, name)[components], rtol=1e-12)


def test_top_features_are_the_largest_positive_ones():
    H = np.array([[0.0, 3, 1, 2], [0, 0, 0, 5], [0, 0, 0, 0]])
    for n in (3, 9):
        assert [top.tolist() for top in top_features(H, n)] == [[1, 3, 2], [3], []]


def test_diversity_is_the_share_of_different_features():
    assert diversity([np.array([0, 1]), np.array([1, 2])]) == 3 / 4
    assert diversity([np.array([], int)]) == 0


def test_ranks_have_the_coherence_of_their_components():
    V = poisson_topics(80, 40, 2, length=60, seed=0)
    H = [[np.random.default_rng(seed).random((k, 40)) for seed in range(2)] for k in (2, 3)]
    result = rank_coherence(as_matrix(V), H, [np.arange(40)] * 2)
    for at, fits in enumerate(H):
        single = [coherence(as_matrix(V), top_features(fit, 10)).npmi.mean() for fit in fits]
        assert_allclose(result["coherence"][at], np.mean(single))
        different = [diversity(top_features(fit, 10)) for fit in fits]
        assert_allclose(result["diversity"][at], np.mean(different))


@pytest.mark.parametrize("scale", [1, 0.37], ids=["thinning", "bi-cross-validation"])
def test_rank_selection_finds_the_most_coherent_rank(scale, tmp_path):
    V = poisson_topics(200, 150, 4, length=200, seed=0) * scale
    selection = rank_selection(V, [1, 4, 8], replicates=2)
    table = selection.table()
    assert np.argmax(table["coherence"]) == 1
    assert table["diversity"][0] == 1 > table["diversity"][2] > 0
    save_outcome(selection, tmp_path / "rank.json")
    again = load_outcome(RankSelection, tmp_path / "rank.json")
    assert_array_equal(again.coherence, selection.coherence)
    assert_array_equal(again.diversity, selection.diversity)


def test_an_older_outcome_without_coherence_is_read(tmp_path):
    old = RankSelection((2, 3), np.ones((2, 2)), np.ones(2), 2, "a reason", "thinning")
    save_outcome(old, tmp_path / "rank.json")
    text = (tmp_path / "rank.json").read_text()
    without = text.replace(', "coherence": [], "diversity": []', "")
    assert without != text
    (tmp_path / "rank.json").write_text(without)
    table = load_outcome(RankSelection, tmp_path / "rank.json").table()
    assert np.isnan(table["coherence"]).all()
    assert table["rank"] == [2, 3]
