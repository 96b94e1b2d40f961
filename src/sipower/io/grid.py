# SPDX-License-Identifier: BSD-3-Clause
"""`Grid`: the columns of a csv, tsv or parquet file with their headings, before they are counts."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import check_regular, quote, shorten
from sipower.io.base import ReadError, check_size, exact_floats, import_library, report_damage
from sipower.io.text import (
    Lines,
    count_problem,
    hidden_character,
    open_text,
    parse_number,
    read_lines,
    rounding_problem,
)

Records = Iterator[tuple[str, Sequence[Any]]]
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
# Columns with these headings usually identify the samples and do not hold counts.
IDENTIFIER = re.compile(r"(.*[ _.-])?(id|ids|index|key|unnamed: 0)|barcode|sample|cell", re.I)


@dataclass(frozen=True, eq=False)
class Grid:
    """The columns of a table with their headings, and its rows for error messages.

    `headings` is empty if the file has none. A first heading that is an empty text means that the
    first column holds names.
    `records` yields the place of each row in the file, such as "line 7", and its cells.
    `separator` is the character between cells; empty if the file is no text.
    """

    path: Path
    headings: list[str]
    records: Callable[[], Records]
    remarks: tuple[str, ...] = ()
    columns: list[Any] = field(default_factory=list)
    separator: str = ""

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
            if self.separator and len(cells) == expected + 1 and not cells[-1]:
                return self.separator_error(place)
            if self.separator and len(cells) == expected - 1 and self.headings[-1:] == [""]:
                return self.separator_error("line 1")
            if len(cells) != expected:
                return ReadError(
                    f"{self.path}, {place}, has {len(cells)} cells, expected {expected}."
                )
            for at in range(expected if first is None else first, expected):
                cell_problem = count_problem(str(cells[at])) or rounding_problem(str(cells[at]))
                if cell_problem:
                    name = f"{quote(self.headings[at])}" if self.headings else str(at + 1)
                    advice = self._text_advice(at, str(cells[at]))
                    return ReadError(
                        f"{self.path}, {place}, column {name}: {cell_problem}{advice}."
                    )
        return ReadError(f"{self.path} is not a table of counts: {shorten(problem)}.")

    def separator_error(self, place: str) -> ReadError:
        """Return the error for a line that ends with a separator."""
        name = _SEPARATORS[self.separator]
        return ReadError(
            f"{self.path}, {place}, ends with a {name}: remove it from the end of every line."
        )

    def _text_advice(self, at: int, cell: str) -> str:
        """Return what to do with a column that holds texts; an empty string for other columns."""
        is_known = bool(self.headings) and at < len(self.columns)
        if not is_known or hidden_character(cell) or not is_text(self.columns[at]):
            return ""
        name = shorten(self.headings[at])
        return f"; drop the column or, if it holds texts, count their words by text_column={name!r}"

    def check_counts(self, counts: NDArray[Any], first: int) -> None:
        """Reject numbers that are not counts, in the columns from `first` on.

        Of whole numbers beyond 2^53 only the file still has all digits.
        """
        if not ((counts >= 0) & (counts < np.inf)).all():
            raise self.error(first)
        if counts.max(initial=0) >= 2**53 and self._is_rounded(first):
            raise self.error(first)

    def _is_rounded(self, first: int) -> bool:
        rows = (cells[first:] for _, cells in self.records())
        return any(rounding_problem(str(cell)) for cells in rows for cell in cells)

    def place(self, row: int) -> str:
        """Return the place of a row in the file."""
        return next(islice(self.records(), row, None))[0]


# ---- parquet -------------------------------------------------------------------------------------


def parse_parquet(path: Path) -> Grid:
    """Read a parquet file; if pandas stored an index in it, the index names the rows."""
    parquet, pandas = (import_library(name, path) for name in ("pyarrow.parquet", "pandas"))
    check_regular(path)
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

    return Grid(path, headings, records, columns=columns)


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


def parse_csv(path: Path) -> Grid:
    """Read a text file of cells separated by commas, semicolons or tabs."""
    pandas = import_library("pandas", path)
    with report_malformed(path):
        return _parse(path, pandas)


@contextmanager
def report_malformed(path: Path) -> Iterator[None]:
    """Raise `ReadError` if a text file is not UTF-8 or its cells are not quoted correctly."""
    try:
        yield
    except (UnicodeDecodeError, csv.Error) as problem:
        read_lines(path)  # reports the line that is not UTF-8
        raise ReadError(f"{path} is not a table: {shorten(problem)}.") from None


def _open_cells(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_text(path), encoding="utf-8-sig", newline="")


def _parse(path: Path, pandas: Any) -> Grid:
    first, has_gaps, empty_lines = _inspect_lines(path)
    usual = "," if ".csv" in path.name.lower() else "\t"
    separator = next((c for c in (usual, ",", ";", "\t") if c in first), usual)
    _, headings = next(_read_cells(path, separator), (0, []))
    if not any(headings):
        raise ReadError(f"{path}, line 1, is empty, expected headings.")
    remarks, no_headings = _heading_remarks(path, headings)
    skipped = 0 if no_headings else 1
    records = partial(_records, path, separator, skipped, False)
    names = [] if no_headings else headings
    grid = Grid(path, names, records, remarks, separator=separator)
    frame = _read_frame(grid, pandas, skipped, len(headings))
    missing = frame.shape[1] - len(headings)
    if missing not in (0, 1) or (missing and no_headings):
        raise grid.error()
    if frame.shape[1] == 1:  # where an empty line is a row, whose cell is missing
        grid = replace(grid, records=partial(_records, path, separator, skipped, True))
        if has_gaps:
            frame = _read_frame(grid, pandas, skipped, 1, skip_blank_lines=False)
            frame = frame[: len(frame) - empty_lines]
    columns = [frame[at] for at in frame]
    if missing and (columns[-1].isna() | (columns[-1] == "")).all():
        raise grid.separator_error(next(grid.records())[0])
    return replace(grid, headings=[""] * missing + grid.headings, columns=columns)


def _read_frame(grid: Grid, pandas: Any, skipped: int, width: int, **options: bool) -> Any:
    """Read the rows below the headings, of which there are `width`, as a data frame."""
    try:
        with _open_cells(grid.path) as stream:
            return pandas.read_csv(
                stream,
                sep=grid.separator,
                header=None,
                skiprows=skipped,
                # Names stay as they are written: 007 is not read as 7.
                dtype=dict.fromkeys(range(2 if width == 3 else 1), str),
                keep_default_na=False,
                low_memory=False,
                **exact_floats(pandas),
                **options,
            )
    except pandas.errors.EmptyDataError:
        raise ReadError(f"{grid.path} has headings and no rows.") from None
    except (pandas.errors.ParserError, OverflowError) as problem:
        if "out of memory" in str(problem):
            raise MemoryError from None
        raise grid.error(problem=problem) from None


def _inspect_lines(path: Path) -> tuple[str, bool, int]:
    """Return the first line, whether lines are empty before the last that is not, and how many are
    empty after it; reject unusual content.
    """
    empty, has_gaps = 0, False
    with Lines(path) as lines:  # rejects lines that are too long
        first = (lines.one() or b"").decode("utf-8")
        block = [first.encode()]
        while block:
            for number, line in enumerate(block, lines.number - len(block) + 1):
                if b"\0" in line:  # pandas would silently end the cell there
                    raise ReadError(f"{path}, line {number}, holds the character NUL: remove it.")
                if not line.strip():
                    empty += 1
                elif empty:
                    empty, has_gaps = 0, True
            block = lines.block()
    return first, has_gaps, empty


def _read_cells(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line of each row, and its cells; empty lines have none."""
    with _open_cells(path) as stream:
        rows = csv.reader(stream, delimiter=separator)
        while True:
            try:
                cells = next(rows, None)
            except csv.Error as problem:
                if "field larger" not in str(problem):
                    raise
                raise ReadError(
                    f"{path}, line {rows.line_num}, has a cell of more than "
                    f"{csv.field_size_limit():,} characters: this is not a table of counts, or a "
                    "quotation mark is missing."
                ) from None
            if cells is None:
                return
            yield rows.line_num, cells


def _records(path: Path, separator: str, skipped: int, is_single: bool) -> Records:
    """Yield the rows; empty lines are rows of a table of one column, except at its end."""
    empty = []
    for number, cells in islice(_read_cells(path, separator), skipped, None):
        if is_single and (not cells or cells[0].isspace()):
            empty.append(number)
        elif cells:
            for at in empty:
                yield f"line {at}", [""]
            empty.clear()
            yield f"line {number}", cells


def _heading_remarks(path: Path, cells: list[str]) -> tuple[tuple[str, ...], bool]:
    """Return remarks on the first line, and whether it holds counts in place of headings."""
    counts = [count_problem(cell) is None for cell in cells]
    if all(counts):
        return (f"The first line of {path.name} holds numbers only and was read as counts.",), True
    if len(cells) > 1 and cells[0].strip() and all(counts[1:]):
        remark = f"The first line of {path.name} was read as headings, but most are numbers."
        return (remark,), False
    return (), False


# ---- columns -----------------------------------------------------------------------------------


def is_text(column: Any) -> bool:
    """Return whether most cells of a column are not numbers; negative numbers are numbers."""
    return bool(2 * np.isnan(cell_numbers(column)).sum() > len(column))


def cell_numbers(column: Any) -> NDArray[Any]:
    """Return the cells as numbers, with NaN for other cells; each category is parsed only once."""
    if column.dtype == "category":
        numbers = cell_numbers(column.cat.categories)
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
