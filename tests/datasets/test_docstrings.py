# SPDX-License-Identifier: BSD-3-Clause
"""The docstring corpus: its size, its words, its documents."""

import inspect
import re
from collections import Counter

import numpy as np
import pytest
from scipy import sparse, spatial
from sklearn import decomposition

from sipower.datasets import (
    Corpus,
    docstrings,
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return docstrings()


def test_corpus_has_the_promised_size(corpus: Corpus) -> None:
    documents, words = corpus.counts.shape
    assert 2_500 <= documents <= 4_500
    assert 5_000 <= words <= 9_000
    assert 200_000 <= corpus.counts.nnz <= 400_000
    assert (documents, words) == (len(corpus.documents), len(corpus.words))


def test_counts_are_a_canonical_csr_array_of_positive_integers(corpus: Corpus) -> None:
    rebuilt = sparse.csr_array(corpus.counts.tocoo())
    rebuilt.sum_duplicates()
    assert isinstance(corpus.counts, sparse.csr_array)
    assert corpus.counts.dtype == np.int32
    assert corpus.counts.data.min() >= 1
    np.testing.assert_array_equal(corpus.counts.indices, rebuilt.indices)


def test_every_document_and_word_occurs(corpus: Corpus) -> None:
    assert corpus.counts.sum(axis=1).min() >= 1
    assert corpus.counts.sum(axis=0).min() >= 1


def test_names_and_words_are_sorted_without_duplicates(corpus: Corpus) -> None:
    assert list(corpus.documents) == sorted(set(corpus.documents))
    assert list(corpus.words) == sorted(set(corpus.words))


def test_words_are_lower_case_letters_and_no_stop_words(corpus: Corpus) -> None:
    assert all(word.isalpha() and word == word.lower() and len(word) >= 3 for word in corpus.words)
    assert {"the", "and", "with"}.isdisjoint(corpus.words)


def test_only_public_names_of_the_three_packages(corpus: Corpus) -> None:
    parts = [name.split(".") for name in corpus.documents]
    assert {first for first, *_ in parts} == {"numpy", "scipy", "sklearn"}
    assert not any(part.startswith("_") or part == "tests" for name in parts for part in name)


@pytest.mark.parametrize(
    ("name", "documented"),
    [
        ("numpy.flatiter", np.flatiter),
        ("scipy.spatial.KDTree.query", spatial.KDTree.query),
        ("sklearn.decomposition.NMF", decomposition.NMF),
    ],
    ids=["compiled class", "method", "class"],
)
def test_counts_agree_with_the_docstring_of_the_living_object(
    corpus: Corpus, name: str, documented: object
) -> None:
    row = corpus.counts[[corpus.documents.index(name)]].toarray()[0]
    words = Counter(re.split(r"[\W\d_]+", (inspect.getdoc(documented) or "").lower()))
    assert row.sum() >= 40
    assert row.tolist() == [words[word] for word in corpus.words]


def test_two_readings_are_equal(corpus: Corpus) -> None:
    again = docstrings()
    assert (again.documents, again.words) == (corpus.documents, corpus.words)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(again.counts, part), getattr(corpus.counts, part))
