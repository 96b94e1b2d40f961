# SPDX-License-Identifier: BSD-3-Clause
"""Values of single samples or features, such as size factors, read by name or by order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import open_regular, quote, read_array, shorten
from sipower.data.names import Items, match_all
from sipower.io.base import Names, ReadError, report_damage
from sipower.io.grid import Grid, parse_csv, parse_parquet, report_malformed
from sipower.io.text import parse_number

__all__ = ["ItemValues", "grid_rows", "match_items", "parse_grid", "read_item_values"]

ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".npy")
_BOOLEANS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False)
class ItemValues:
    """Values with the names of their items, as they are in a file.

    Parameters
    ----------
    source
        The file, or a column of it, for messages.
    cells
        Values as texts.
    names
        Names of the items; None: the values are in the order of the items.
    heading
        First line of the file, which may hold an item in place of headings; empty: it cannot.
    remarks
        Sentences for the user about the file.
    """

    source: str
    cells: tuple[str, ...]
    names: Names | None = None
    heading: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def align(self, items: Items) -> tuple[list[str], list[str]]:
        """Return the values in the order of the items, and remarks for the user."""
        names, cells = self.names, self.cells
        if names is not None and items.names is not None:
            if len(self.heading) == 2 and self.heading[0] in {*items.names, *(items.ids or ())}:
                names, cells = (self.heading[0], *names), (self.heading[1], *cells)
            places, remarks = match_items(self.source, names, items)
            return [cells[at] for at in places], [*self.remarks, *remarks]
        if len(cells) != items.count:
            raise ReadError(
                f"{self.source} has {len(cells)} values, expected one for each of the "
                f"{items.count} {items.kind}s, in their order."
            )
        if names is not None:
            match_items(self.source, names, items, "the values alone, in a table of one column,")
        return list(cells), list(self.remarks)

    def align_numbers(self, items: Items) -> tuple[NDArray[np.float64], list[str]]:
        """Return the values as numbers, True as 1 and False as 0, and remarks."""
        cells, remarks = self.align(items)
        numbers = np.array([_as_number(cell) for cell in cells])
        if np.isnan(numbers).any():
            at = int(np.argmax(np.isnan(numbers)))
            item = f"{items.kind} {at}" if items.names is None else shorten(repr(items.names[at]))
            raise ReadError(
                f"{self.source}: the value {quote(cells[at])} of {item} is not a number."
            )
        return numbers, remarks


def _as_number(cell: str) -> float:
    text = cell.strip()
    return _BOOLEANS.get(text.lower(), parse_number(text))


def match_items(
    source: str, names: Sequence[str], items: Items, plain_form: str = "a file without names"
) -> tuple[NDArray[np.intp], list[str]]:
    """Return the position in the names of a file of every item of the data, and remarks.

    Every item must be among the names. `plain_form` says what to use instead if the data have none.
    """
    side = Items(items.kind, len(names), tuple(names), title=source, plain_form=plain_form)
    try:
        return match_all(items, side)
    except ValueError as problem:
        raise ReadError(str(problem)) from None


def read_item_values(path: str | PathLike[str]) -> ItemValues:
    """Read a table of names and values with headings, or values alone in the order of the items."""
    file = Path(path)
    if file.suffix.lower() == ".npy":
        with open_regular(file) as stream, report_damage(file, "a NumPy array"):
            array = read_array(stream, file.stat().st_size)
        if array.ndim != 1:
            raise ReadError(f"{file} must hold one value for each item, got shape {array.shape}.")
        return ItemValues(str(file), tuple(map(str, array.tolist())))
    grid = parse_grid(file)
    with report_malformed(file):
        if len(grid.columns) not in (1, 2):
            raise ReadError(
                f"{file} has {len(grid.columns)} columns, expected two: names and values."
            )
        rows = [[str(cell) for cell in cells] for _, cells in grid_rows(grid)]
    cells = tuple(row[-1] for row in rows)
    if len(grid.columns) == 1:
        return ItemValues(str(file), cells)
    return ItemValues(str(file), cells, tuple(row[0] for row in rows), tuple(grid.headings))


def parse_grid(path: Path) -> Grid:
    """Parse a table of text or parquet, chosen by the ending of its name."""
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending not in ENDINGS:
        raise ReadError(f"{path} must be a table that ends in {', '.join(ENDINGS[:-1])}.")
    if not path.is_file():
        raise ReadError(f"{path} does not exist, or is a folder.")
    if path.stat().st_size == 0:
        raise ReadError(f"{path} is empty.")
    return parse_parquet(path) if ending == ".parquet" else parse_csv(path)


def grid_rows(grid: Grid) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the place and the cells of every row, all of which must have the same length."""
    for place, cells in grid.records():
        if len(cells) != len(grid.columns):
            raise ReadError(
                f"{grid.path}, {place}, has {len(cells)} cells, expected {len(grid.columns)}."
            )
        yield place, cells
