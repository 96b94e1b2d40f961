# SPDX-License-Identifier: BSD-3-Clause
"""Tables as counts: wide (samples by features) or long (a count per line)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import quote, shorten
from sipower.io.base import ReadError
from sipower.io.grid import IDENTIFIER, Grid, cell_numbers, is_text, report_malformed
from sipower.io.sources import Compressed, Dense, OpenCounts
from sipower.io.text import count_problem
from sipower.store.external_sort import DuplicateError, Entries, csr_from_entries

_MAX_NAMES_CHECKED = 200
_MAX_WORDS_OF_A_NAME = 5


def open_table(grid: Grid, layout: str | None) -> OpenCounts:
    """Open a table in a layout; None means that its columns decide."""
    with report_malformed(grid.path):
        return _open_layout(grid, layout)


def _open_layout(grid: Grid, layout: str | None) -> OpenCounts:
    last = grid.columns[-1]
    if len(grid.columns) > 1 and grid.headings[-1:] == [""] and _is_empty(last).all():
        raise grid.separator_error("line 1")
    if layout is None and len(grid.columns) == 3 and (grid.headings or ["-"])[0]:
        first, second = (is_text(column) for column in grid.columns[:2])
        layout = "long" if first and second else None
        if not first:
            remark = (
                f"{grid.path.name} was read as wide: set the layout to long if its three columns "
                "are sample, feature and count."
            )
            grid = replace(grid, remarks=(*grid.remarks, remark))
    return _open_long(grid) if layout == "long" else _open_wide(grid)


def _open_wide(grid: Grid) -> OpenCounts:
    columns, headings, remarks = grid.columns, grid.headings, grid.remarks
    has_names = headings[:1] == [""] or is_text(columns[0])
    if len(columns) == has_names:
        advice = ""
        if headings and headings[0]:
            name = shorten(headings[0])
            advice = f": if they are texts, count their words by text_column={name!r}"
        raise ReadError(f"{grid.path} has names of samples and no counts{advice}.")
    counts = np.column_stack([cell_numbers(column) for column in columns[has_names:]])
    grid.check_counts(counts, int(has_names))
    up = len(counts) > 2 and bool((np.diff(counts[:, 0]) == 1).all())
    if not has_names and (up or (headings and IDENTIFIER.fullmatch(headings[0].strip()))):
        why = "counts up by one" if up else f"is headed {shorten(headings[0])}"
        remark = (
            f"The first column of {grid.path.name} {why} and was read as counts: if it names the "
            "samples, leave its heading empty."
        )
        remarks = (*remarks, remark)
    unnamed = [at for at, name in enumerate(headings[has_names:], has_names) if not name.strip()]
    if unnamed:
        raise ReadError(
            f"{grid.path}, column {unnamed[0] + 1}, has an empty heading: name the feature."
        )
    if has_names and _is_empty(columns[0]).any():
        place = grid.place(int(np.argmax(_is_empty(columns[0]))))
        raise ReadError(
            f"{grid.path}, {place}, has an empty sample name: name the sample, or drop a row that "
            "is none."
        )
    samples = tuple(map(str, columns[0])) if has_names else None
    if samples and headings and headings[0] and _are_sentences(samples):
        remark = (
            f"The first column of {grid.path.name} was read as names of samples: if it holds "
            f"texts, count their words by text_column={quote(headings[0])}."
        )
        remarks = (*remarks, remark)
    features = tuple(headings[has_names:]) if headings else None
    return OpenCounts(Dense(grid.path, counts), samples, features, remarks)


def _open_long(grid: Grid) -> OpenCounts:
    if len(grid.columns) != 3:
        raise ReadError(
            f"{grid.path} has {len(grid.columns)} columns, expected sample, feature and count."
        )
    counts = cell_numbers(grid.columns[2])
    grid.check_counts(counts, 2)
    if grid.headings and count_problem(grid.headings[2]) is None:
        raise ReadError(
            f"{grid.path}, line 1, holds a count where headings are expected: insert a first line "
            "such as 'sample,feature,count'."
        )
    empty = _is_empty(grid.columns[0]) | _is_empty(grid.columns[1])
    if empty.any():
        place = grid.place(int(np.argmax(empty)))
        raise ReadError(
            f"{grid.path}, {place}, has an empty sample or feature name: name it, or drop the row."
        )
    (rows, samples), (columns, features) = (column.factorize() for column in grid.columns[:2])
    shape = len(samples), len(features)
    try:
        matrix = csr_from_entries(Entries(rows, columns, counts), shape)
    except DuplicateError as duplicate:
        earlier, later = map(grid.place, duplicate.positions)
        raise ReadError(
            f"{grid.path}, {later}, has the same sample and feature as {earlier}: add up the two "
            "counts, or drop one."
        ) from None
    source = Compressed(grid.path, matrix.data, matrix.indices, matrix.indptr, shape)
    return OpenCounts(source, tuple(map(str, samples)), tuple(map(str, features)), grid.remarks)


def _is_empty(column: Any) -> NDArray[np.bool_]:
    """Return for each cell whether it is missing or holds only spaces."""
    codes, values = column.factorize(use_na_sentinel=True)
    empty = [not str(value).strip() for value in values]
    result: NDArray[np.bool_] = np.append(empty, True).astype(np.bool_)[codes]
    return result


def _are_sentences(names: Sequence[str]) -> bool:
    """Return whether most of the first names have more words than names have."""
    first = names[:_MAX_NAMES_CHECKED]
    return sum(len(name.split()) > _MAX_WORDS_OF_A_NAME for name in first) > len(first) / 2
