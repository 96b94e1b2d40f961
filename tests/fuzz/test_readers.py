# SPDX-License-Identifier: BSD-3-Clause
"""A part of `make fuzz` with a fixed seed: every reader, damaged files of every kind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from systems import linux_only

sys.path.append(str(Path(__file__).parents[2] / "fuzz"))

import driver
import readers
from kinds import NAMES, kinds

INPUTS = 2000


@linux_only
def test_damaged_files_end_in_one_sentence_or_in_valid_content(tmp_path: Path) -> None:
    target, limit = readers.ReaderTarget(tmp_path), readers.limit_memory
    kinds()  # once for all children
    outcome = driver.run(target, INPUTS, seed=0, prepare=limit)
    assert not outcome.failures, outcome.failures[0]
    assert outcome.words.total() == INPUTS
    assert {word.rpartition(":")[0] for word in outcome.words} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_good_file_is_valid(name: str, tmp_path: Path) -> None:
    kind = kinds()[name]
    for file, content in kind.files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(content)
    assert readers.read(kind, tmp_path / kind.path) == "valid"
