# SPDX-License-Identifier: BSD-3-Clause
"""Collect every error and warning that a test provokes, and check their words.

`tests/conftest.py` calls this module around each test: a test fails if a message of sipower that it
expects names neither an argument nor a place, or has to be decoded. What other libraries raise is
not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from unittest.mock import patch

import pytest

# One of these has to be in a message: it says what the message is about.
PLACES = {
    "an argument": r"`[^`]+`|\b\w+=\S|^X has \d+ features",  # the last is scikit-learn's
    "a quoted name": r"'[^']+'|\"[^\"]+\"",
    "a file or folder": r"\S/\S|\w\.(csv|gz|h5|h5ad|html|jsonl?|mtx|np[yz]|parquet|tsv|txt)\b",
    "a part of the data": r"(?i)\b(line|row|column|entry|block|covariance|item)s? \(?\d",
    "a sample or feature": r"(?i)\b(sample|feature)s? \(?\d",
    "an option": r"(^|\s)--?[a-z]",
    "the data": r"(?i)\b(the|in|complex) (sparse )?data\b",
}
RIDDLES = {
    r"\bas (it|they) (is|are)\b": "say: unchanged, or leave it out",
    r"\bas such\b": "leave it out",
    r"\bbout\b": "say: round",
    r"\b(give|gives|given) up\b": "say: stopped",
    r"\bgo(es)? on\b": "say: continues",
    r"\bhow (few|many|much)\b": "say: the number of",
    r"\bin one go\b": "say: at once",
    r"\bknows? no\b": "say: does not support",
    r"\b(lies?|stands?) (in|beside|outside)\b": "say: is",
    r"\bmakes? (no|nothing)\b": "say what is wrong",
    r"\bnothing to\b": "say what is missing",
    r"\bof its own\b": "say: separate",
    r"\bpromises?\b": "say: declares",
    r"\bsooner\b": "say: earlier",
    r"\btorn\b": "say: incomplete",
    r"\bwants?\b|\basks? for\b": "say: needs, or expected",
    r"\byou(rself)?\b(?! data)": "say what to do",
}


provoked: list[str] = []  # the messages of the current test


def complaints(message: str) -> list[str]:
    """Return what is wrong with the words of a message."""
    wrong = [
        f"{match[0]!r}: {instead}"
        for pattern, instead in RIDDLES.items()
        for match in re.finditer(pattern, message, re.IGNORECASE)
    ]
    wrong += [f"holds {c!r}: escape it" for c in message if not (c.isprintable() or c == "\n")]
    is_part = message[:1].islower() and not message.endswith(".")  # the caller names the file
    if not is_part and not any(re.search(pattern, message) for pattern in PLACES.values()):
        wrong.append(f"names none of: {', '.join(PLACES)}")
    return wrong


def add_output(text: str, words: Iterable[object]) -> None:
    """Collect what a command wrote to its standard error output; words of its line are quoted."""
    for line in text.splitlines():
        if line.startswith("sipower: "):
            names = {str(word) for word in words}
            provoked.append(" ".join(f"'{w}'" if w in names else w for w in line.split(" ")))


def _add_error(error: BaseException | None, trace: TracebackType | None) -> None:
    """Collect the message of an exception if sipower raised it."""
    module = ""
    while trace is not None:
        module, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    if isinstance(error, Exception) and module.partition(".")[0] == "sipower":
        provoked.append(str(error))


@contextmanager
def collect() -> Iterator[None]:
    """Collect the messages of every `pytest.raises` and `pytest.warns` in `provoked`."""
    exit_raises, exit_warns = pytest.RaisesExc.__exit__, pytest.WarningsRecorder.__exit__

    def after_raises(self: Any, kind: Any, error: Any, trace: Any) -> bool:
        _add_error(error, trace)
        return exit_raises(self, kind, error, trace)

    def after_warns(self: Any, kind: Any, error: Any, trace: Any) -> None:
        provoked.extend(str(warning.message) for warning in self.list)
        exit_warns(self, kind, error, trace)

    provoked.clear()
    with (
        patch.object(pytest.RaisesExc, "__exit__", after_raises),
        patch.object(pytest.WarningsRecorder, "__exit__", after_warns),
    ):
        yield
