# SPDX-License-Identifier: BSD-3-Clause
"""Files that `read` refuses are refused by `convert` with the same sentence."""

import re

import h5py
import numpy as np
import pytest
from scipy import sparse

from convertible import V, cells, docword, tenx_hdf5
from sipower.io import ReadError, convert, read

BANNER = "%%MatrixMarket matrix coordinate integer general\n"
MARKET = f"{BANNER}% a comment\n3 4 3\n1 2 5\n2 1 7\n3 4 1\n"
SYMMETRIC = BANNER.replace("general", "symmetric") + "3 3 3\n1 1 5\n3 2 7\n2 3 1\n"
TEXTS = {
    "number": ("v.mtx", MARKET.replace("2 1 7", "2 1 x7")),
    "negative": ("v.mtx", MARKET.replace("2 1 7", "2 1 -7")),
    "outside": ("v.mtx", MARKET.replace("2 1 7", "4 1 7")),
    "fields": ("v.mtx", MARKET.replace("2 1 7", "2 1")),
    "twice": ("v.mtx", MARKET.replace("2 1 7", "1 2 7")),
    "mirrored": ("v.mtx", SYMMETRIC),
    "more": ("v.mtx", MARKET + "1 1 1\n"),
    "torn": ("v.mtx", MARKET.removesuffix("3 4 1\n")),
    "size": ("v.mtx", MARKET.replace("3 4 3", "4000000000 4 3")),
    "promise": ("v.mtx", MARKET.replace("3 4 3", "2000000000 4 2000000000")),
    "head": ("v.mtx", MARKET.replace("3 4 3", "3 4")),
    "banner": ("v.mtx", MARKET.replace("%%Matrix", "%%")),
    "empty": ("v.mtx", f"{BANNER}0 4 0\n"),
    "words": ("docword.v.txt", "3\n4\n3\n1 2 5\n\n2 1 7\n1 2 1\n"),
    "words torn": ("docword.v.txt", "3\n4\n3\n1 2 5\n2 1 7\n"),
    "nothing": ("docword.v.txt", ""),
    "ending": ("v.xlsx", "x"),
    "table": ("v.csv", "name,a,b\ns1,1,2\ns2,3,-4\n"),
}
PARTS = {
    "index": ("indices", np.array([0, 9, 1]), "an index is outside 2 x 3"),
    "starts": ("indptr", np.array([0, 9, 3]), "the starts of its rows are out of order"),
    "value": ("data", np.array([1, -1, 2]), "row 1, column 3, holds -1"),
    "later": ("data", np.array([1, 1, np.nan]), "row 2, column 1, holds nan"),
    "twice": ("indices", np.array([1, 1, 0]), "two counts for row 1, column 2"),
    "type": ("data", np.array([b"a", b"b", b"c"]), "has values of type"),
    "shape": ("shape", np.array([2**40, 2]), "declares 2 x 1099511627776"),
    "names": ("barcodes", np.array([b"a"]), "1 barcodes and 3 features"),
}


def same_sentence(file, tmp_path, **options):
    """Reading and converting say the same, and converting leaves nothing."""
    before, messages = sorted(tmp_path.iterdir()), []
    for attempt in (
        lambda: read(file, **options),
        lambda: convert(file, tmp_path / "s", **options),
    ):
        with pytest.raises(ReadError) as caught:
            attempt()
        messages.append(str(caught.value))
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert messages[0] == messages[1]
    assert sorted(tmp_path.iterdir()) == before
    return messages[0]


@pytest.fixture(autouse=True)
def large_disk(monkeypatch):
    """The disk has room for what a file only claims to hold."""
    monkeypatch.setattr("sipower.store.workspace.Workspace.check_space", lambda *_: None)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("kind", TEXTS)
def test_bad_texts_give_the_sentence_of_read(tmp_path, kind, transpose) -> None:
    name, text = TEXTS[kind]
    (tmp_path / name).write_text(text)
    message = same_sentence(tmp_path / name, tmp_path, transpose=transpose)
    assert message.startswith(str(tmp_path / name))


def test_broken_compression(tmp_path) -> None:
    file = docword(tmp_path / "docword.v.txt.gz", V)
    file.write_bytes(file.read_bytes()[:-500])
    assert "the compressed data are truncated" in same_sentence(file, tmp_path)


@pytest.mark.parametrize("kind", PARTS)
def test_bad_matrices_of_10x_give_the_sentence_of_read(tmp_path, kind) -> None:
    file, good = tmp_path / "v.h5", sparse.csr_array(np.array([[0, 2, 1], [3, 0, 0]]))
    with h5py.File(file, "w") as handle:
        group = handle.create_group("matrix")
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(good, part)
        group["shape"], group["barcodes"] = [3, 2], np.array([b"x", b"y"])
        group["features/name"] = np.array([b"a", b"b", b"c"])
        name, content, message = PARTS[kind]
        del group[name]
        group[name] = content
    assert message in same_sentence(file, tmp_path)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, np.asarray])
def test_bad_anndata_gives_the_sentence_of_read(tmp_path, make, monkeypatch) -> None:
    bad = V.astype(float)
    bad[500, 100] = -3
    file = cells(tmp_path / "v.h5ad", make, raw=bad)
    monkeypatch.setattr("sipower.store.workspace._BYTES_PER_ENTRY", 10**6)  # 512 entries a block
    message = same_sentence(file, tmp_path, layer="raw")
    assert re.search(r"row 501, column 101, holds -3\.0", message)
    assert "no layers/other" in same_sentence(file, tmp_path, layer="other")
    file.write_bytes(file.read_bytes()[:3000])
    assert "is damaged or not an HDF5 file" in same_sentence(file, tmp_path)


def test_damage_inside_a_dataset_is_one_sentence(tmp_path) -> None:
    file = tenx_hdf5(tmp_path / "v.h5")
    with h5py.File(file) as handle:
        chunk = handle["matrix/data"].id.get_chunk_info(20)
    raw = bytearray(file.read_bytes())
    raw[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    file.write_bytes(raw)
    assert "is damaged or not an HDF5 file" in same_sentence(file, tmp_path)


def test_the_lines_of_a_repetition_are_found_far_apart(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sipower.io.text._READ", 64)
    lines = [f"{i} 1 1" for i in range(1, 501)]
    lines[399] = "7 1 1"
    (tmp_path / "docword.txt").write_text("\n".join(["500", "1", "500", *lines]) + "\n")
    message = same_sentence(tmp_path / "docword.txt", tmp_path)
    assert "line 403, has the same row and column as line 10" in message
