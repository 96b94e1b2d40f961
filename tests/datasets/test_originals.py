# SPDX-License-Identifier: BSD-3-Clause
"""Files as their owners offer them: bags of words, prepared arrays, images."""

import gzip
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import sparse

from sipower.datasets import (
    CATALOGUE,
    load,
    vocabulary,
)
from sipower.datasets.originals import read_docword

NAMES = ("kos", "nips", "mitf", "wt")


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
        (["1 2 2", "3 1 7"], "declares 4 counts and has 2"),
        (["1 2 2", "3 1 7", "3 2 1", "3 5 5"], "outside 3 x 4"),
        (["1 2 2", "3 1 7", "3 2 1", "3 3 -5"], "negative"),
        (["1 2 2", "3 1 seven", "3 2 1", "3 3 5"], "not a UCI bag of words"),
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
    with pytest.raises(ValueError, match="counts must be finite and non-negative"):
        load(name)


def test_indices_of_a_prepared_matrix_are_not_trusted(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    counts = sparse.csr_array(np.eye(3, dtype=np.int32))
    counts.indices[1] = 7
    sparse.save_npz(tmp_path / "kos.npz", counts)
    with pytest.raises(ValueError, match=r"kos\.npz is damaged: an index is outside 3 x 3"):
        load("kos")


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
    with pytest.raises(ValueError, match=r"of 204 x 3, expected wt of \(19200, 287\)"):
        load("wt")
    monkeypatch.setitem(CATALOGUE, "mitf", replace(CATALOGUE["mitf"], shape=(361, 4)))
    monkeypatch.setitem(CATALOGUE, "wt", replace(CATALOGUE["wt"], shape=(204, 3)))
    np.testing.assert_array_equal(load("mitf"), np.stack([f.ravel() for f in faces], axis=1))
    grey = [np.asarray(Image.fromarray(frame).convert("L")).ravel() for frame in frames]
    np.testing.assert_array_equal(load("wt"), np.stack(grey, axis=1))
    Image.fromarray(faces[0][:5]).save(tmp_path / "train" / "face" / "face00004.pgm")
    with pytest.raises(ValueError, match=r"face00004\.pgm has shape \(5, 19\)"):
        load("mitf")
    (tmp_path / "b00001.bmp").write_bytes((tmp_path / "b00001.bmp").read_bytes()[:300])
    with pytest.raises(ValueError, match=r"b00001\.bmp is damaged or not an image: .*truncated"):
        load("wt")
