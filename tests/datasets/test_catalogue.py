# SPDX-License-Identifier: BSD-3-Clause
"""The data sets are what they claim to be, and say clearly what is missing."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sipower.datasets import (
    CATALOGUE,
    is_present,
    load,
    without_rare,
)

NAMES = ("kos", "nips", "mitf", "wt")

needs_data = pytest.mark.skipif(
    not os.environ.get("SIPOWER_DATA"), reason="SIPOWER_DATA names no folder with the data sets"
)


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


def test_an_empty_variable_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIPOWER_DATA", "")
    assert not is_present("kos")
    assert is_present("docstrings")


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
    common, rows, columns = without_rare(V)
    assert (common.shape, common.nnz) == (shape, nonzeros)
    assert (V[rows][:, columns] != common).nnz == 0
    assert min(common.sum(axis=0).min(), common.sum(axis=1).min()) >= 20
