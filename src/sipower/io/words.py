# SPDX-License-Identifier: BSD-3-Clause
"""Counts of words from raw texts: lists of strings, folders of .txt files, columns of tables.

scikit-learn's `CountVectorizer` counts the words. Its settings are kept with the counts, so that
the words of new texts can be counted in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sipower._files import open_regular, quote, shorten
from sipower.io.base import Names, ReadError, Table
from sipower.io.grid import IDENTIFIER, Grid
from sipower.io.sources import Compressed, OpenCounts

__all__ = ["TextSettings", "open_column", "open_text_folder", "open_texts", "read_texts"]

# The settings of CountVectorizer that decide what is a word, and which words are kept.
SPLITTING: dict[str, Any] = {
    "lowercase": True,
    "strip_accents": None,
    "stop_words": None,
    "token_pattern": r"(?u)\b\w\w+\b",
    "ngram_range": (1, 1),
}
SELECTING: dict[str, Any] = {"min_df": 1, "max_df": 1.0, "max_features": None, "binary": False}
DEFAULTS = SPLITTING | SELECTING
_SHOWN = ("lowercase", "stop_words", "token_pattern", "min_df", "max_df")


def read_texts(
    texts: Iterable[str],
    *,
    names: Sequence[str] | None = None,
    vocabulary: Sequence[str] | None = None,
    **options: Any,
) -> Table:
    r"""Count the words of texts with scikit-learn's `CountVectorizer`.

    Files and folders of texts are read by `read`.

    Parameters
    ----------
    texts
        One string per sample.
    names
        Names of the samples.
    vocabulary
        Words to count, such as the features of an earlier table; None means all words.
    **options
        Options of `CountVectorizer`: lowercase, strip_accents, stop_words, token_pattern,
        ngram_range, min_df, max_df, max_features and binary. Without them its defaults are used.

    Returns
    -------
    Table
        Its features are the words, and its `text_options` are all settings.

    Examples
    --------
    >>> from sipower.io import read_texts
    >>> table = read_texts(["A sparse matrix.", "The matrix"], stop_words="english")
    >>> table.features, table.counts.toarray().tolist()
    (('matrix', 'sparse'), [[1, 1], [1, 0]])
    >>> new = read_texts(["sparse, sparse"], vocabulary=table.features, **table.text_options)
    >>> new.counts.toarray().tolist()
    [[0, 2]]
    """
    if isinstance(texts, str | Path):
        text = shorten(texts)
        raise ReadError(
            f"`texts` must be a list of texts, got {text!r}: read a file or folder with "
            f"sipower.io.read({text!r}), or pass a single text in a list."
        )
    rows = list(texts)
    wrong = next((at for at, text in enumerate(rows) if not isinstance(text, str)), None)
    if wrong is not None:
        kind = type(rows[wrong]).__name__
        raise ReadError(f"`texts` must be strings, got a value of type {kind} at row {wrong}.")
    if names is not None and len(names) != len(rows):
        raise ReadError(f"`names` must have {len(rows)} names, got {len(names)}.")
    settings = options | {"vocabulary": vocabulary}
    samples = None if names is None else tuple(map(str, names))
    return open_texts(Path("texts"), rows, samples, settings).read(Path("texts"))


@dataclass(frozen=True)
class TextSettings:
    """The column of a table that holds texts, and the options of `open_texts`."""

    column: str | None = None
    options: Mapping[str, Any] | None = None

    def refuse(self, file: Path) -> None:
        """Reject options of texts for a file of counts, unless they are those of an earlier fit."""
        if self.options and "vocabulary" not in self.options:
            given = ", ".join(self.options)
            raise ReadError(f"{file} does not hold texts: do not give `text_options` ({given}).")


def open_column(grid: Grid, settings: TextSettings) -> OpenCounts:
    """Open the texts in a column of a table; a column of ids names the samples."""
    column, path, headings = settings.column, grid.path, grid.headings
    if column not in headings:
        raise ReadError(
            f"{path} has no column {quote(column)}: its columns are {shorten(', '.join(headings))}."
        )
    others = [at for at, name in enumerate(headings) if name != column]
    is_id = (at for at in others if not headings[at] or IDENTIFIER.fullmatch(headings[at].strip()))
    name_column = next(is_id, None)
    samples = None if name_column is None else tuple(map(str, grid.columns[name_column]))
    cells = grid.columns[headings.index(column)]
    texts = cells.astype(object).where(cells.notna(), "").map(str)  # a missing text has no words
    opened = open_texts(path, texts, samples, settings.options)
    unused = [headings[at] for at in others if at != name_column]
    more = (f"The other columns are not used: {shorten(', '.join(unused))}.",) if unused else ()
    recorded = (opened.text_options or {}) | {"text_column": column}
    return replace(opened, notes=opened.notes + more, text_options=recorded)


def open_text_folder(folder: Path, options: Mapping[str, Any] | None) -> OpenCounts:
    """Open the .txt files in a folder and its subfolders; each is a sample."""
    files = sorted(file for file in folder.rglob("*.txt") if file.is_file())
    names = tuple(file.relative_to(folder).as_posix() for file in files)
    docword = next((file for file in files if file.name.startswith("docword")), None)
    if docword is not None:
        raise ReadError(f"{docword} is a bag of words: pass this file instead of its folder.")
    return open_texts(folder, map(_read_text, files), names, options)


def _read_text(file: Path) -> str:
    try:
        with open_regular(file) as stream:
            return stream.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ReadError(f"{file} is not UTF-8 text: save the file as UTF-8.") from None


def open_texts(
    place: Path, texts: Iterable[str], samples: Names | None, options: Mapping[str, Any] | None
) -> OpenCounts:
    """Count the words of texts.

    Parameters
    ----------
    place
        The file or folder, for messages.
    texts, samples
        The texts and their names.
    options
        Options of `CountVectorizer`, and "vocabulary" for words to count in place of all.
    """
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 - takes 0.2 s

    settings = dict(options or {})
    vocabulary = settings.pop("vocabulary", None)
    settings.pop("text_column", None)  # the options of a table name the column they were used for
    unknown = next((name for name in settings if name not in DEFAULTS), None)
    if unknown is not None:
        raise ReadError(
            f"`text_options` must be among {', '.join(DEFAULTS)}, got {quote(unknown)}."
        )
    settings = DEFAULTS | settings
    try:
        settings["ngram_range"] = tuple(settings["ngram_range"])
        words = _Words({name: settings[name] for name in SPLITTING})
        selecting = {name: settings[name] for name in SELECTING}
        vectorizer = CountVectorizer(analyzer=words, vocabulary=vocabulary, **selecting)
        counts = vectorizer.fit_transform(texts)
    except ReadError:
        raise
    except (ValueError, TypeError, re.error) as problem:
        raise ReadError(f"{place}: no words can be counted: {shorten(problem)}.") from None
    features = tuple(map(str, vectorizer.get_feature_names_out()))
    counts.sort_indices()
    source = Compressed(place, counts.data, counts.indices, counts.indptr, counts.shape)
    notes = _notes(counts, words.number, settings, of_a_run=vocabulary is not None)
    return OpenCounts(source, samples, features, notes, text_options=settings)


class _Words:
    """A function that splits a text into words and counts how many it has returned."""

    def __init__(self, splitting: dict[str, Any]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 - see above

        self._split, self.number = CountVectorizer(**splitting).build_analyzer(), 0

    def __call__(self, text: str) -> Iterator[str]:
        for word in self._split(text):
            self.number += 1
            yield word


def _notes(
    counts: Any, number: int, settings: Mapping[str, Any], *, of_a_run: bool
) -> tuple[str, ...]:
    """Return sentences about the settings and about words that are not counted."""
    shown = ", ".join(f"{name}={settings[name]!r}" for name in _SHOWN)
    notes = (f"Words were counted by CountVectorizer ({shown}).",)
    lost = 0 if settings["binary"] else number - int(counts.sum())
    if not lost:
        return notes
    reason = "not in the vocabulary" if of_a_run else "too rare or too frequent"
    return (*notes, f"{lost:,} of {number:,} words in the texts are {reason} and left out.")
