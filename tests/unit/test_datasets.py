# SPDX-License-Identifier: BSD-3-Clause
"""The data sets are what they claim to be, and say clearly what is missing."""

import inspect
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, spatial
from sklearn import decomposition

from sipower.datasets import Corpus, docstrings, load

NAMES = ("kos", "nips", "mitf", "wt")
needs_data = pytest.mark.skipif(
    not os.environ.get("SIPOWER_DATA"), reason="SIPOWER_DATA names no folder with the data sets"
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
    said = Counter(re.split(r"[\W\d_]+", (inspect.getdoc(documented) or "").lower()))
    assert row.sum() >= 40
    assert row.tolist() == [said[word] for word in corpus.words]


def test_two_readings_are_equal(corpus: Corpus) -> None:
    again = docstrings()
    assert (again.documents, again.words) == (corpus.documents, corpus.words)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(again.counts, part), getattr(corpus.counts, part))


def test_unknown_name_is_told_the_choices() -> None:
    with pytest.raises(ValueError, match=r"'enron'.*kos, nips, mitf, wt"):
        load("enron")


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("kos", "UCI Machine Learning Repository.*Bag of Words"),
        ("nips", "UCI Machine Learning Repository.*Bag of Words"),
        ("mitf", "CBCL Face Database #1 of MIT"),
        ("wt", "Wallflower.*Microsoft Research.*WavingTrees"),
    ],
)
def test_missing_folder_names_file_owner_and_variable(
    name: str, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SIPOWER_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=rf"{name}\.npz.*{owner}.*SIPOWER_DATA"):
        load(name)


@pytest.mark.parametrize("name", NAMES)
def test_missing_file_names_the_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
        load(name)


@pytest.mark.parametrize("name", ["kos", "nips"])
def test_texts_come_back_as_saved_with_empty_rows_and_columns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = np.array([[0, 2, 0], [0, 0, 0], [0, 1, 5]], dtype=np.int32)
    sparse.save_npz(tmp_path / f"{name}.npz", sparse.csr_matrix(saved))
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    loaded = load(name)
    assert isinstance(loaded, sparse.csr_array)
    assert loaded.dtype == np.int32
    np.testing.assert_array_equal(loaded.toarray(), saved)


@pytest.mark.parametrize("name", ["mitf", "wt"])
def test_images_come_back_as_saved(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = np.array([[0, 255], [0, 0], [7, 0]], dtype=np.uint8)
    np.savez_compressed(tmp_path / f"{name}.npz", V=saved)
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    loaded = load(name)
    assert loaded.dtype == np.uint8
    np.testing.assert_array_equal(loaded, saved)


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "nonzeros", "total"),
    [("kos", (3430, 6906), 353_160, 467_714), ("nips", (1500, 12419), 746_316, 1_932_365)],
)
def test_real_texts(name: str, shape: tuple[int, int], nonzeros: int, total: int) -> None:
    counts = load(name)
    assert isinstance(counts, sparse.csr_array)
    assert counts.dtype == np.int32
    assert (counts.shape, counts.nnz, int(counts.sum())) == (shape, nonzeros, total)


@needs_data
@pytest.mark.parametrize(("name", "shape"), [("mitf", (361, 2429)), ("wt", (19200, 287))])
def test_real_images(name: str, shape: tuple[int, int]) -> None:
    pixels = load(name)
    assert isinstance(pixels, np.ndarray)
    assert pixels.dtype == np.uint8
    assert pixels.shape == shape
