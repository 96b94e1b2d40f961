# SPDX-License-Identifier: BSD-3-Clause
"""Bags of words: what is read, and what is refused with its line."""

import gzip

import numpy as np
import pytest

from reading import BAG, V, assert_read, held, refused
from sipower.io import ReadError, read


@pytest.mark.parametrize("name", ["docword.tiny.txt", "docword.tiny.txt.gz", "bag.txt"])
def test_bags_of_words_are_read(tmp_path, name) -> None:
    i, j = np.nonzero(V)
    triples = "".join(f"{a + 1} {b + 1} {V[a, b]}\n" for a, b in zip(i, j, strict=True))
    text = f"3\n4\n{len(i)}\n{triples}".encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (tmp_path / "vocab.tiny.txt").write_text("a\nb\nc\nd\n")
    table = read(tmp_path / name)
    assert_read(table, names=False)
    assert table.features == (None if name == "bag.txt" else ("a", "b", "c", "d"))
    assert held(table).dtype == np.int32


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (
            "2 1 7",
            "2 1 seven",
            r"line 5: 'seven' is not a finite number; this is not a UCI bag of words",
        ),
        ("2 1 7", "2 5 7", r"line 5: the column 5 is outside 3 x 4"),
        ("2 1 7", "1 2 7", r"line 5, has the same row and column as line 4"),
        ("3\n4\n3", "3\n4\n5", r"line 3, declares 5 counts and has 3"),
        ("3\n4\n3", "3\n4\n2", r"line 3, declares 2 counts and has more, from line 6 on"),
        ("3\n4\n3", "3\nfour\n3", r"line 2, is 'four', expected 1 whole number for the size"),
        (BAG, "3\n", r"line 1, is the end of the file"),
    ],
)
def test_a_bad_line_is_named(tmp_path, good, bad, message) -> None:
    file = tmp_path / "docword.v.txt"
    file.write_text(BAG.replace(good, bad, 1))
    refused(file, message)


def test_the_line_is_right_behind_many_blocks(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sipower.io.text._MAX_LINE", 64)
    rows = [f"{i} 1 1" for i in range(1, 501)]
    file = tmp_path / "docword.v.txt"
    file.write_text("\n".join(["500", "1", "500", *rows]) + "\n")
    assert read(file).counts.sum() == 500
    rows[399] = "400 1 -1"
    file.write_text("\n".join(["500", "1", "500", *rows]) + "\n")
    refused(file, "line 403: the count -1 is negative")
    rows[399] = "7 1 1"
    file.write_text("\n".join(["500", "1", "500", *rows]) + "\n")
    refused(file, "line 403, has the same row and column as line 10")
    file.write_text("500\n1\n500\n" + "1" * 100)
    refused(file, "line 4, is longer than 64 bytes")


def test_a_vocabulary_of_another_length(tmp_path) -> None:
    (tmp_path / "docword.v.txt").write_text(BAG)
    (tmp_path / "vocab.v.txt").write_text("a\nb\n")
    with pytest.raises(ReadError, match=r"vocab\.v\.txt has 2 words, but .*txt has 4 columns"):
        read(tmp_path / "docword.v.txt")
