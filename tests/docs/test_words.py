# SPDX-License-Identifier: BSD-3-Clause
"""Pages and sources avoid the words that the glossary in CONTRIBUTING.md replaces.

Only what can be tested without false alarms is here; `make lint` runs codespell on all files, and
`messages.py` checks the messages that tests provoke.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import messages
from doc_blocks import FENCE, PAGES, ROOT, page_id

# Comparisons that have to be decoded: "2.0 times faster" and "never reached" are plain.
NOWHERE = {
    r"\bas soon as (MU|EM|F-|S-|CCD|SCD|PGD|the best|others)": "say: speed relative to ...",
    r"\b\d[\d.]*x? as soon\b": "say: ... times faster",
    r"\bsooner\b": "say: faster, earlier, or takes 0.8 of the time",
    r"\binfx\b": "say: never reached",
    r"\b(a|first|second|each|every|per) looks? (at|through|over)\b": "say: pass, or evaluation",
    r"\blooks? (at|through) (all|the) (data|rows|numbers|counts)\b": "say: a pass over the data",
    r"\bthe way of working\b": "say: method",
}
# Words of LANGUAGE that pages alone can avoid without exception.
NOT_IN_PAGES = {
    r"\bbouts?\b": "say: round",
    r"\b(made|begins?|written|solved|drawn|computed|computes?) anew\b": "say: again",
    r"\bgo(es)? on\b": "say: continues",
    r"\bmended\b": "say: fixed",
    r"\bstands? in\b(?! a batch script)": "say: is used instead",
    r"\bthe faces? of\b": "say: interface",
    r"\b(hones(t|ty)|best-in-class|blazing)\b": "no praise",
    r"\brivals?\b": "say: the other method, or its name",
}
SOURCES = sorted(
    path
    for folder in ("src", "cpp", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".pyi", ".hpp", ".cpp", ".html", ".js"}
)


def complaints(text: str, rules: dict[str, str]) -> list[str]:
    """Return the words that a text should not use, each with what to say instead."""
    return [
        f"{match[0]!r}: {instead}"
        for pattern, instead in rules.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


def prose(page: Path) -> str:
    """Return the text of a page without code blocks and without quotations."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return "\n".join(line for line in text.splitlines() if not line.startswith(">"))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_pages_use_plain_words(page: Path) -> None:
    assert complaints(prose(page), NOWHERE | NOT_IN_PAGES) == []


def test_sources_use_plain_words() -> None:
    unclear = {
        str(path.relative_to(ROOT)): problems
        for path in SOURCES
        if (problems := complaints(path.read_text(encoding="utf-8"), NOWHERE))
    }
    assert unclear == {}


def test_messages_name_an_argument_or_a_place() -> None:
    for message in (
        "`n_components` must be a positive integer, got 0.",
        "counts.mtx, line 7: the value -4 is negative; KL-NMF needs non-negative data.",
        "--also xlsx: choose from csv, parquet.",
    ):
        assert messages.complaints(message) == []
    assert messages.complaints("It cannot be understood.") != []
    assert messages.complaints("counts.mtx promises 4 counts.") != []


def test_what_the_library_raises_is_collected(monkeypatch) -> None:
    error = ValueError("It cannot be understood.")
    with pytest.raises(ValueError, match="understood"):
        raise error
    assert messages.provoked == []  # what other code raises is not checked
    monkeypatch.setitem(globals(), "__name__", "sipower.imaginary")
    with pytest.raises(ValueError, match="understood"):
        raise error
    assert messages.provoked == ["It cannot be understood."]
    messages.provoked.clear()


def test_a_decoded_comparison_is_found() -> None:
    assert complaints("S-SCI-PI is 0.24x as soon as MU", NOWHERE)
    assert complaints("It ends as soon as the gap is small", NOWHERE) == []
