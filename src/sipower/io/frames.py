# SPDX-License-Identifier: BSD-3-Clause
"""Tables of other programs: csv, tsv and parquet, wide (samples by features) or long."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.io.counts import affordable
from sipower.io.table import ReadError, Table, library, shown
from sipower.io.text import Lines, complaint, lines_of, opened
from sipower.store.external_sort import Entries, csr_from_entries, first_duplicate

__all__ = ["read_csv", "read_parquet"]

Records = Iterator[tuple[str, Sequence[Any]]]
# Headings of columns that name samples by numbers more often than they count anything.
_IDENTIFIER = re.compile(r"(.*[ _.-])?(id|ids|index|key|unnamed: 0)|barcode|sample|cell", re.I)
_TIMES = "mM"  # kinds of type that pandas would count in nanoseconds


@dataclass(frozen=True, eq=False)
class Grid:
    """Columns below headings, and for errors the same row by row.

    `headings` are empty where the file has none; one that is an empty text stands over names.
    `records` yields the place of each row in the file, such as "line 7", and its cells.
    """

    path: Path
    headings: list[str]
    records: Callable[[], Records]
    remarks: tuple[str, ...] = ()
    columns: list[Any] = field(default_factory=list)

    def fault(self, first: int | None = None, problem: object = "a cell is no number") -> ReadError:
        """Find the first row of another length or, from column `first` on, cell without a count."""
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
                said = complaint(str(cells[at]))
                if said:
                    return ReadError(f"{self.path}, {place}, column {self._column(at)}: {said}.")
        return ReadError(f"{self.path} is no table of counts: {shown(problem)}.")

    def _column(self, at: int) -> str:
        return f"{shown(self.headings[at])!r}" if self.headings else str(at + 1)


def read_csv(path: Path, layout: str | None = None) -> Table:
    """Read a text of cells separated by commas, semicolons or tabs."""
    pandas = library("pandas", path)
    try:
        return _table(_parsed(path, pandas), pandas, layout)
    except (UnicodeDecodeError, EOFError, OSError, zlib.error, csv.Error) as problem:
        lines_of(path)  # says in which line the text or its compression is damaged
        raise ReadError(f"{path} is no table: {shown(problem)}.") from None


def read_parquet(path: Path, layout: str | None = None) -> Table:
    """Read a parquet file; an index that pandas wrote into it names the rows."""
    parquet, pandas = library("pyarrow.parquet", path), library("pandas", path)
    try:
        texts = _texts_of_parquet(path, parquet)
        frame = pandas.read_parquet(path, read_dictionary=texts)
    except ReadError:
        raise
    # Damage makes the library raise nearly anything, from KeyError to errors of its own.
    except Exception as problem:
        raise ReadError(f"{path} is damaged or no parquet file: {shown(problem)}.") from None
    headings = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    if not isinstance(frame.index, pandas.RangeIndex):
        headings, columns = ["", *headings], [frame.index.to_series(), *columns]
    columns = [_shared(column) for column in columns]

    def records() -> Records:
        for number, cells in enumerate(zip(*columns, strict=True), 1):
            yield f"row {number}", cells

    return _table(Grid(path, headings, records, columns=columns), pandas, layout)


def _texts_of_parquet(path: Path, parquet: Any) -> list[str]:
    """Columns of texts, each of which is to be held once; refuse those that may unpack to anything.

    A dictionary in the file can stand for a long text a million times in a few bytes.
    """
    types, head = library("pyarrow.types", path), parquet.read_metadata(path)
    columns = list(head.schema.to_arrow_schema())
    for column in columns:
        if types.is_nested(column.type):
            name = shown(column.name)
            raise ReadError(f"{path}, column {name!r}: lists and structures are no counts.")
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    fixed = [c.type.byte_width for c in columns if types.is_fixed_size_binary(c.type)]
    affordable(path, head.num_rows * (8 * len(columns) + sum(fixed)), path.stat().st_size)
    return [c.name for c in columns if any(is_kind(c.type) for is_kind in kinds)]


def _shared(column: Any) -> Any:
    """Texts as objects, which all rows with the same one share; pandas 3 would copy them."""
    if column.dtype != "category":
        return column
    return column.cat.rename_categories(column.cat.categories.astype(object))


# ---- text ----------------------------------------------------------------------------------------


def _parsed(path: Path, pandas: Any) -> Grid:
    with Lines(path) as lines:
        first = (lines.one() or b"").decode("utf-8")
    separator = _separator(path, first)
    with _Text(path) as stream:  # a quoted heading may go on in the next line
        headings = next(csv.reader(stream, delimiter=separator), [])
    if not any(headings):
        raise ReadError(f"{path}, line 1, is empty, expected headings.")
    remarks, bare = _heading_remarks(path, headings)
    skipped = 0 if bare else 1
    records = partial(_records, path, separator, skipped)
    grid = Grid(path, [] if bare else headings, records, remarks)
    try:
        with _Text(path) as stream:
            frame = pandas.read_csv(
                stream,
                sep=separator,
                header=None,
                skiprows=skipped,
                # Names stay as they are written: 007 is no 7.
                dtype=dict.fromkeys(range(2 if len(headings) == 3 else 1), str),
                keep_default_na=False,
                low_memory=False,
                **_precise(pandas),
            )
    except pandas.errors.EmptyDataError:
        raise ReadError(f"{path} has headings and no rows.") from None
    except (pandas.errors.ParserError, OverflowError) as problem:
        raise grid.fault(problem=problem) from None
    missing = frame.shape[1] - len(headings)
    if missing not in (0, 1) or (missing and bare):
        raise grid.fault()
    columns = [frame[at] for at in frame]
    return replace(grid, headings=[""] * missing + grid.headings, columns=columns)


def _precise(pandas: Any) -> dict[str, str]:
    """Have the number that is nearest to a fraction, as everywhere else; pandas 3.1 always does."""
    old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    return {"float_precision": "round_trip"} if old else {}


def _records(path: Path, separator: str, skipped: int) -> Records:
    with _Text(path) as stream:
        rows = csv.reader(stream, delimiter=separator)
        for cells in islice(rows, skipped, None):
            if cells:
                yield f"line {rows.line_num}", cells


class _Text(io.TextIOWrapper):
    """A text without the character NUL, at which pandas would silently end a cell."""

    def __init__(self, path: Path) -> None:
        super().__init__(opened(path), encoding="utf-8-sig", newline="")
        self.path, self.line = path, 1

    def read(self, size: int | None = -1, /) -> str:
        """Read so many characters, or all."""
        text = super().read(size)
        before, found, _ = text.partition("\0")
        self.line += before.count("\n")
        if found:
            raise ReadError(f"{self.path}, line {self.line}, holds the character NUL: remove it.")
        return text


def _separator(path: Path, first: str) -> str:
    usual = "," if ".csv" in path.name.lower() else "\t"
    others = [other for other in ",;\t" if other in first]
    return usual if usual in first or not others else others[0]


def _heading_remarks(path: Path, cells: list[str]) -> tuple[tuple[str, ...], bool]:
    """What to tell of the first line, and whether it holds counts in place of headings."""
    counts = [complaint(cell) is None for cell in cells]
    if all(counts):
        return (f"The first line of {path.name} holds numbers only and was read as counts.",), True
    if len(cells) > 1 and cells[0].strip() and all(counts[1:]):
        remark = f"The first line of {path.name} was read as headings though most are numbers."
        return (remark,), False
    return (), False


# ---- layouts -------------------------------------------------------------------------------------


def _table(grid: Grid, pandas: Any, layout: str | None) -> Table:
    if layout is None and len(grid.columns) == 3 and (grid.headings or ["-"])[0]:
        first, second = (_is_text(column, pandas) for column in grid.columns[:2])
        if first and second:
            return _long(grid, pandas)
        if first:
            return _wide(grid, pandas)
        remark = (
            f"{grid.path.name} was read as wide: ask for the layout long if its three columns are "
            "sample, feature and count."
        )
        return _wide(replace(grid, remarks=(*grid.remarks, remark)), pandas)
    return _long(grid, pandas) if layout == "long" else _wide(grid, pandas)


def _wide(grid: Grid, pandas: Any) -> Table:
    columns, headings, remarks = grid.columns, grid.headings, grid.remarks
    named = headings[:1] == [""] or _is_text(columns[0], pandas)
    parts = [_counts(column, pandas) for column in columns[named:]]
    if not parts:
        raise ReadError(f"{grid.path} has names of samples and no counts.")
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        raise grid.fault(first=int(named))
    up = len(found[0]) > 2 and bool((np.diff(found[0]) == 1).all())
    if not named and (up or (headings and _IDENTIFIER.fullmatch(headings[0].strip()))):
        why = "counts up by one" if up else f"is headed {shown(headings[0])}"
        remark = (
            f"The first column of {grid.path.name} {why} and was read as counts: if it names the "
            "samples, leave its heading empty."
        )
        remarks = (*remarks, remark)
    samples = tuple(map(str, columns[0])) if named else None
    features = tuple(headings[named:]) if headings else None
    return Table(np.column_stack(found), samples, features, remarks)


def _long(grid: Grid, pandas: Any) -> Table:
    if len(grid.columns) != 3:
        raise ReadError(
            f"{grid.path} has {len(grid.columns)} columns, expected sample, feature and count."
        )
    counts = _counts(grid.columns[2], pandas)
    if counts is None:
        raise grid.fault(first=2)
    if grid.headings and complaint(grid.headings[2]) is None:
        raise ReadError(
            f"{grid.path}, line 1, holds a count where headings are expected: put a line such as "
            "sample, feature, count above it."
        )
    (rows, samples), (columns, features) = map(pandas.factorize, grid.columns[:2])
    if min(rows.min(), columns.min()) < 0:
        at = int(np.argmax((rows < 0) | (columns < 0)))
        raise ReadError(f"{grid.path}, {_place(grid, at)}, has no name of a sample or feature.")
    shape = len(samples), len(features)
    entries = Entries(rows.astype(np.int32), columns.astype(np.int32), counts)
    matrix = csr_from_entries(entries, shape)
    if matrix is None:
        earlier, later = first_duplicate(rows, columns)
        raise ReadError(
            f"{grid.path}, {_place(grid, later)}, has the same sample and feature as "
            f"{_place(grid, earlier)}: add up the two counts, or drop one."
        )
    return Table(matrix, tuple(map(str, samples)), tuple(map(str, features)), grid.remarks)


def _place(grid: Grid, row: int) -> str:
    return next(islice(grid.records(), row, None))[0]


def _is_text(column: Any, pandas: Any) -> bool:
    """Whether most cells of a column are no numbers, negative ones included."""
    if column.dtype.kind in _TIMES:
        return True
    return bool(pandas.isna(_numbers(column, pandas)).mean() > 0.5)


def _counts(column: Any, pandas: Any) -> NDArray[Any] | None:
    """Numbers of a column, or nothing if one is no count."""
    if column.dtype.kind in _TIMES:
        return None
    values = _numbers(column, pandas)
    if values.dtype.kind not in "iuf" or not ((values >= 0) & (values < np.inf)).all():
        return None
    return values


def _numbers(column: Any, pandas: Any) -> NDArray[Any]:
    """Cells as numbers, NaN for all others; a text that is there many times is read once."""
    repeats = column.dtype == "category"
    cells = column.cat.categories if repeats else column
    try:
        values = np.asarray(pandas.to_numeric(cells, errors="coerce"))
    except OverflowError:  # whole numbers beyond the range of floats, in pandas 3.1
        values = np.asarray(pandas.to_numeric(cells.astype(str), errors="coerce"))
    if not repeats:
        return values
    missing = column.cat.codes.min() < 0
    found = np.append(values, np.nan) if missing else values
    return np.asarray(found[column.cat.codes])
