# SPDX-License-Identifier: BSD-3-Clause
"""UCI bags of words: three lines with D, W and NNZ, then lines of document, word and count."""

from __future__ import annotations

from pathlib import Path

from sipower.io.base import ReadError
from sipower.io.coordinates import FIELDS, Coordinates, read_size
from sipower.io.sources import OpenCounts
from sipower.io.text import Lines, read_lines

_KIND = "UCI bag of words"


def open_docword(path: Path) -> OpenCounts:
    """Open a bag of words, whose documents and words are counted from 1.

    The words are the lines of ``vocab.name.txt`` in the same folder as ``docword.name.txt``.
    """
    with Lines(path) as lines:
        documents, words, entries = (read_size(lines, 1, _KIND)[0] for _ in range(3))
    source = Coordinates(path, _KIND, FIELDS, (documents, words), entries, line=3)
    vocabulary = find_vocabulary(path)
    if vocabulary is None:
        return OpenCounts(source)
    names = read_lines(vocabulary)
    if len(names) != words:
        raise ReadError(f"{vocabulary} has {len(names)} words, but {path} has {words} columns.")
    return OpenCounts(source, features=tuple(names))


def find_vocabulary(path: Path) -> Path | None:
    """Return the file of the words of a bag of words, or None if there is none."""
    name = path.name.removesuffix(".gz")
    vocabulary = path.with_name(name.replace("docword", "vocab", 1))
    return None if vocabulary.name == name or not vocabulary.is_file() else vocabulary


def is_docword(path: Path) -> bool:
    """Return whether a file is named docword* or begins with three lines of one number each."""
    if path.name.startswith("docword"):
        return True
    with Lines(path) as lines:
        first = [lines.one() for _ in range(3)]
    return all(line is not None and line.strip().isdigit() for line in first)
