# SPDX-License-Identifier: BSD-3-Clause
"""The data sets are what they claim to be, and say clearly what is missing."""

import gzip
import inspect
import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import sparse, spatial
from sklearn import decomposition

from sipower.datasets import (
    CATALOGUE,
    Corpus,
    docstrings,
    is_present,
    load,
    vocabulary,
    without_rare,
)
from sipower.datasets.originals import read_docword

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
    with pytest.raises(FileNotFoundError, match=rf"{name} is missing.*{owner}.*SIPOWER_DATA"):
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


# ---- the owners' formats -------------------------------------------------------------------------


def write_docword(file: Path, V: np.ndarray, lines: list[str] | None = None) -> None:
    triples = [f"{i + 1} {j + 1} {V[i, j]}" for i, j in np.argwhere(V)]
    text = "\n".join([*map(str, V.shape), str(len(triples)), *(lines or triples)]) + "\n"
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())


@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_bags_of_words_are_read_as_uci_offers_them(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    V = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [7, 1, 5, 0]], dtype=np.int32)
    write_docword(tmp_path / f"docword.kos.{ending}", V)
    monkeypatch.setitem(CATALOGUE, "kos", replace(CATALOGUE["kos"], shape=V.shape))
    (tmp_path / "vocab.kos.txt").write_text("a\nb\nc\nd\n")
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    loaded = load("kos")
    assert isinstance(loaded, sparse.csr_array)
    assert loaded.dtype == np.int32
    np.testing.assert_array_equal(loaded.toarray(), V)
    assert vocabulary("kos") == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1 2 2", "3 1 7"], "promises 4 counts and has 2"),
        (["1 2 2", "3 1 7", "3 2 1", "3 5 5"], "outside 3 x 4"),
        (["1 2 2", "3 1 7", "3 2 1", "3 3 -5"], "negative"),
        (["1 2 2", "3 1 seven", "3 2 1", "3 3 5"], "no bag of words"),
        (["1 2", "3 1", "3 2", "3 3"], "2 numbers in a line"),
        (["1 2 2", "3 1 7", "3 2 1", "3 3 4294967301"], "above 2"),
    ],
)
def test_broken_bags_of_words_are_refused(lines: list[str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "docword.kos.txt"
    write_docword(file, np.array([[0, 2, 0, 0], [0, 0, 0, 0], [7, 1, 5, 0]]), lines)
    with pytest.raises(ValueError, match=f"{re.escape(str(file))}.*{message}"):
        read_docword(file)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b\x08broken", b"1\n2\n"])
def test_files_that_are_no_bags_of_words_are_named(content: bytes, tmp_path: Path) -> None:
    for ending in ("txt", "txt.gz"):
        file = tmp_path / f"docword.kos.{ending}"
        file.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(str(file))):
            read_docword(file)


@pytest.mark.parametrize("name", NAMES)
def test_broken_or_wrong_arrays_are_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    file = tmp_path / f"{name}.npz"
    for content in (b"", b"PK\x03\x04 torn"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(str(file))):
            load(name)
    if name in ("kos", "nips"):
        sparse.save_npz(file, sparse.csr_array(-np.eye(2)))
    else:
        np.savez_compressed(file, V=-np.eye(2))
    with pytest.raises(ValueError, match="a count is finite and not negative"):
        load(name)


def test_indices_of_a_prepared_matrix_are_not_trusted(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    counts = sparse.csr_array(np.eye(3, dtype=np.int32))
    counts.indices[1] = 7
    sparse.save_npz(tmp_path / "kos.npz", counts)
    with pytest.raises(ValueError, match=r"kos\.npz is damaged: an index lies outside 3 x 3"):
        load("kos")


def test_an_empty_variable_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIPOWER_DATA", "")
    assert not is_present("kos")
    assert is_present("docstrings")


def test_images_are_read_as_pillow_writes_and_greys_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    faces = [rng.integers(0, 256, (19, 19), dtype=np.uint8) for _ in range(4)]
    frames = [rng.integers(0, 256, (12, 17, 3), dtype=np.uint8) for _ in range(3)]
    (tmp_path / "train" / "face").mkdir(parents=True)
    for number, face in enumerate(faces):
        Image.fromarray(face).save(tmp_path / "train" / "face" / f"face{number:05}.pgm")
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(tmp_path / f"b{number:05}.bmp")
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"make 204 x 3, expected wt of \(19200, 287\)"):
        load("wt")
    monkeypatch.setitem(CATALOGUE, "mitf", replace(CATALOGUE["mitf"], shape=(361, 4)))
    monkeypatch.setitem(CATALOGUE, "wt", replace(CATALOGUE["wt"], shape=(204, 3)))
    np.testing.assert_array_equal(load("mitf"), np.stack([f.ravel() for f in faces], axis=1))
    grey = [np.asarray(Image.fromarray(frame).convert("L")).ravel() for frame in frames]
    np.testing.assert_array_equal(load("wt"), np.stack(grey, axis=1))
    Image.fromarray(faces[0][:5]).save(tmp_path / "train" / "face" / "face00004.pgm")
    with pytest.raises(ValueError, match=r"face00004\.pgm is an image of \(5, 19\)"):
        load("mitf")
    (tmp_path / "b00001.bmp").write_bytes((tmp_path / "b00001.bmp").read_bytes()[:300])
    with pytest.raises(ValueError, match=r"b00001\.bmp is damaged or no image: .* is truncated"):
        load("wt")


# ---- what the catalogue says ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pois1", "pois2", "pois3"])
def test_drawn_counts_have_the_share_and_the_mean_of_the_catalogue(name: str) -> None:
    V, entry = load(name), CATALOGUE[name]
    cells = V.shape[0] * V.shape[1]
    share = entry.nonzeros / cells
    nonzeros = np.count_nonzero(V) if isinstance(V, np.ndarray) else V.nnz
    assert V.shape == entry.shape
    assert abs(nonzeros - entry.nonzeros) <= 5 * np.sqrt(cells * share * (1 - share))
    mean = -np.log1p(-share)
    assert abs(V.sum() - cells * mean) <= 5 * np.sqrt(cells * mean)


@needs_data
@pytest.mark.parametrize("name", NAMES)
def test_the_catalogue_is_true(name: str) -> None:
    V, entry = load(name), CATALOGUE[name]
    assert V.shape == entry.shape
    assert (V.nnz if sparse.issparse(V) else np.count_nonzero(V)) == entry.nonzeros


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "nonzeros"), [("kos", (3429, 4046), 320_073), ("nips", (1491, 7824), 711_945)]
)
def test_the_papers_preprocessing(name: str, shape: tuple[int, int], nonzeros: int) -> None:
    V = load(name)
    kept, rows, columns = without_rare(V)
    assert (kept.shape, kept.nnz) == (shape, nonzeros)
    assert (V[rows][:, columns] != kept).nnz == 0
    assert min(kept.sum(axis=0).min(), kept.sum(axis=1).min()) >= 20
