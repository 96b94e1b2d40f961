# SPDX-License-Identifier: BSD-3-Clause
"""Readers of csv, tsv and parquet tables, wide (samples by features) or long (a count per line)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import shorten
from sipower.io.base import ReadError, check_size, import_library, report_damage
from sipower.io.sources import Compressed, Dense, OpenCounts
from sipower.io.text import Lines, count_problem, open_text, parse_number, read_lines
from sipower.store.external_sort import DuplicateError, Entries, csr_from_entries

Records = Iterator[tuple[str, Sequence[Any]]]
# Columns with these headings usually identify the samples and do not hold counts.
_IDENTIFIER = re.compile(r"(.*[ _.-])?(id|ids|index|key|unnamed: 0)|barcode|sample|cell", re.I)


@dataclass(frozen=True, eq=False)
class Grid:
    """The columns of a table with their headings, and its rows for error messages.

    `headings` is empty if the file has none. A first heading that is an empty text means that the
    first column holds names.
    `records` yields the place of each row in the file, such as "line 7", and its cells.
    """

    path: Path
    headings: list[str]
    records: Callable[[], Records]
    remarks: tuple[str, ...] = ()
    columns: list[Any] = field(default_factory=list)

    def error(
        self, first: int | None = None, problem: object = "a cell is not a number"
    ) -> ReadError:
        """Return the error for the first row with a wrong number of cells or with an invalid count.

        Counts are checked from column `first` on; None means that they are not checked.
        """
        expected = 0
        for place, cells in self.records():
            # R writes no heading over the names of the rows.
            by_r = len(cells) == len(self.headings) + 1
            expected = expected or (len(cells) if by_r else len(self.headings) or len(cells))
            if len(cells) != expected:
                return ReadError(
                    f"{self.path}, {place}, has {len(cells)} cells, expected {expected}."
                )
            for at in range(expected if first is None else first, expected):
                cell_problem = count_problem(str(cells[at]))
                if cell_problem:
                    name = f"{shorten(self.headings[at])!r}" if self.headings else str(at + 1)
                    return ReadError(f"{self.path}, {place}, column {name}: {cell_problem}.")
        return ReadError(f"{self.path} is not a table of counts: {shorten(problem)}.")

    def check_counts(self, counts: NDArray[Any], first: int) -> None:
        """Reject numbers that are not counts, in the columns from `first` on."""
        if not ((counts >= 0) & (counts < np.inf)).all():
            raise self.error(first)

    def place(self, row: int) -> str:
        """Return the place of a row in the file."""
        return next(islice(self.records(), row, None))[0]


# ---- parquet -------------------------------------------------------------------------------------


def open_parquet(path: Path, layout: str | None = None) -> OpenCounts:
    """Open a parquet file; if pandas stored an index in it, the index names the rows."""
    parquet, pandas = (import_library(name, path) for name in ("pyarrow.parquet", "pandas"))
    with report_damage(path, "a parquet file"):
        frame = pandas.read_parquet(path, read_dictionary=_text_columns(path, parquet))
    headings = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    if not isinstance(frame.index, pandas.RangeIndex):
        headings, columns = ["", *headings], [frame.index.to_series(), *columns]
    for at, column in enumerate(columns):
        if column.dtype == "category":  # as Python objects, which pandas 3 does not copy
            shared = column.cat.categories.astype(object)
            columns[at] = column.cat.rename_categories(shared)

    def records() -> Records:
        for number, cells in enumerate(zip(*columns, strict=True), 1):
            yield f"row {number}", cells

    return _open_grid(Grid(path, headings, records, columns=columns), layout)


def _text_columns(path: Path, parquet: Any) -> list[str]:
    """Return the names of the text columns, to be read as categories.

    A dictionary-encoded file of a few bytes can repeat a long text a million times. As a category
    each distinct text is in memory only once.
    """
    types, head = import_library("pyarrow.types", path), parquet.read_metadata(path)
    columns = list(head.schema.to_arrow_schema())
    for column in columns:
        if types.is_nested(column.type):
            name = shorten(column.name)
            raise ReadError(f"{path}, column {name!r}: lists and structures are not counts.")
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    fixed = [c.type.byte_width for c in columns if types.is_fixed_size_binary(c.type)]
    check_size(path, head.num_rows * (8 * len(columns) + sum(fixed)), path.stat().st_size)
    return [c.name for c in columns if any(is_kind(c.type) for is_kind in kinds)]


# ---- text ----------------------------------------------------------------------------------------


def open_csv(path: Path, layout: str | None = None) -> OpenCounts:
    """Open a text file of cells separated by commas, semicolons or tabs."""
    pandas = import_library("pandas", path)
    try:
        return _open_grid(_parse(path, pandas), layout)
    except (UnicodeDecodeError, csv.Error) as problem:
        read_lines(path)  # reports the line that is not UTF-8
        raise ReadError(f"{path} is not a table: {shorten(problem)}.") from None


def _open_cells(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_text(path), encoding="utf-8-sig", newline="")


def _parse(path: Path, pandas: Any) -> Grid:
    with Lines(path) as lines:  # rejects lines that are too long
        first = (lines.one() or b"").decode("utf-8")
        block = [first.encode()]
        while block:
            for number, line in enumerate(block, lines.number - len(block) + 1):
                if b"\0" in line:  # pandas would silently end the cell there
                    raise ReadError(f"{path}, line {number}, holds the character NUL: remove it.")
            block = lines.block()
    usual = "," if ".csv" in path.name.lower() else "\t"
    separator = next((c for c in (usual, ",", ";", "\t") if c in first), usual)
    with _open_cells(path) as stream:  # a quoted heading may continue in the next line
        headings = next(csv.reader(stream, delimiter=separator), [])
    if not any(headings):
        raise ReadError(f"{path}, line 1, is empty, expected headings.")
    remarks, no_headings = _heading_remarks(path, headings)
    records = partial(_records, path, separator, 0 if no_headings else 1)
    grid = Grid(path, [] if no_headings else headings, records, remarks)
    old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    options = {"float_precision": "round_trip"} if old else {}  # the default of newer versions
    try:
        with _open_cells(path) as stream:
            frame = pandas.read_csv(
                stream,
                sep=separator,
                header=None,
                skiprows=0 if no_headings else 1,
                # Names stay as they are written: 007 is not read as 7.
                dtype=dict.fromkeys(range(2 if len(headings) == 3 else 1), str),
                keep_default_na=False,
                low_memory=False,
                **options,
            )
    except pandas.errors.EmptyDataError:
        raise ReadError(f"{path} has headings and no rows.") from None
    except (pandas.errors.ParserError, OverflowError) as problem:
        raise grid.error(problem=problem) from None
    missing = frame.shape[1] - len(headings)
    if missing not in (0, 1) or (missing and no_headings):
        raise grid.error()
    columns = [frame[at] for at in frame]
    return replace(grid, headings=[""] * missing + grid.headings, columns=columns)


def _records(path: Path, separator: str, skipped: int) -> Records:
    with _open_cells(path) as stream:
        rows = csv.reader(stream, delimiter=separator)
        for cells in islice(rows, skipped, None):
            if cells:
                yield f"line {rows.line_num}", cells


def _heading_remarks(path: Path, cells: list[str]) -> tuple[tuple[str, ...], bool]:
    """Return remarks on the first line, and whether it holds counts in place of headings."""
    counts = [count_problem(cell) is None for cell in cells]
    if all(counts):
        return (f"The first line of {path.name} holds numbers only and was read as counts.",), True
    if len(cells) > 1 and cells[0].strip() and all(counts[1:]):
        remark = f"The first line of {path.name} was read as headings, but most are numbers."
        return (remark,), False
    return (), False


# ---- layouts -------------------------------------------------------------------------------------


def _open_grid(grid: Grid, layout: str | None) -> OpenCounts:
    if layout is None and len(grid.columns) == 3 and (grid.headings or ["-"])[0]:
        first, second = (_is_text(column) for column in grid.columns[:2])
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
    has_names = headings[:1] == [""] or _is_text(columns[0])
    if len(columns) == has_names:
        raise ReadError(f"{grid.path} has names of samples and no counts.")
    counts = np.column_stack([_numbers(column) for column in columns[has_names:]])
    grid.check_counts(counts, int(has_names))
    up = len(counts) > 2 and bool((np.diff(counts[:, 0]) == 1).all())
    if not has_names and (up or (headings and _IDENTIFIER.fullmatch(headings[0].strip()))):
        why = "counts up by one" if up else f"is headed {shorten(headings[0])}"
        remark = (
            f"The first column of {grid.path.name} {why} and was read as counts: if it names the "
            "samples, leave its heading empty."
        )
        remarks = (*remarks, remark)
    samples = tuple(map(str, columns[0])) if has_names else None
    features = tuple(headings[has_names:]) if headings else None
    return OpenCounts(Dense(grid.path, counts), samples, features, remarks)


def _open_long(grid: Grid) -> OpenCounts:
    if len(grid.columns) != 3:
        raise ReadError(
            f"{grid.path} has {len(grid.columns)} columns, expected sample, feature and count."
        )
    counts = _numbers(grid.columns[2])
    grid.check_counts(counts, 2)
    if grid.headings and count_problem(grid.headings[2]) is None:
        raise ReadError(
            f"{grid.path}, line 1, holds a count where headings are expected: put a line such as "
            "sample, feature, count above it."
        )
    (rows, samples), (columns, features) = (column.factorize() for column in grid.columns[:2])
    if min(rows.min(), columns.min()) < 0:
        place = grid.place(int(np.argmax((rows < 0) | (columns < 0))))
        raise ReadError(f"{grid.path}, {place}, has an empty sample or feature name.")
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


def _is_text(column: Any) -> bool:
    """Return whether most cells of a column are not numbers; negative numbers are numbers."""
    return bool(np.isnan(_numbers(column)).mean() > 0.5)


def _numbers(column: Any) -> NDArray[Any]:
    """Return the cells as numbers, with NaN for other cells; each category is parsed only once."""
    if column.dtype == "category":
        numbers = _numbers(column.cat.categories)
        values: NDArray[Any] = np.append(numbers, np.nan)[column.cat.codes]
        return values
    cells = np.asarray(column)
    if cells.dtype.kind in "iuf":
        return cells
    if cells.dtype.kind in "mM":  # dates and times, which would become nanoseconds
        return np.full(len(cells), np.nan)
    # pandas.to_numeric is not used: it reads out of bounds if an exponent has many digits.
    values = np.array([parse_number(str(cell)) for cell in cells], np.float64)
    exact = (np.abs(values) < 2**53).all()
    return values.astype(np.int64) if exact and (values % 1 == 0).all() else values
