# SPDX-License-Identifier: BSD-3-Clause
"""Weights and masks of single entries, read from files and matched to the data by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sipower._files import quote
from sipower.data.names import Items
from sipower.io.base import ReadError, Table
from sipower.io.dispatch import read
from sipower.io.grid import Grid, cell_numbers, is_text, report_malformed
from sipower.io.item_values import grid_rows, match_items, parse_grid, read_item_values
from sipower.io.tables import open_table

__all__ = ["read_dense_table", "read_mask", "read_weights"]

_TABLES = (".csv", ".tsv", ".txt", ".parquet")
_BOOLEANS = {"true": 1, "false": 0}


def read_mask(path: Path, samples: Items, features: Items) -> tuple[Any, list[str]]:
    """Read which entries are observed, and return remarks for the user as well.

    A value other than zero means observed. A table of two columns has a value for each feature, and
    the result then has the shape (features,); otherwise it has the shape (samples, features). Of a
    long table or a sparse matrix, entries that are not stored are not observed.
    """
    if _is_table(path):
        grid = parse_grid(path)
        if len(grid.columns) == 2 and features.count > 2:
            values, remarks = read_item_values(path).align_numbers(features)
            return values != 0, remarks
        if _is_long(grid):
            rows, columns, values = _read_long(grid, samples, features)
            mask = np.zeros((samples.count, features.count), bool)
            mask[rows, columns] = values != 0
            return mask, []
    mask, remarks = _align(path, read_dense_table(path), samples, features)
    return mask != 0, remarks


def read_weights(path: Path, samples: Items, features: Items) -> tuple[Any, list[str]]:
    """Read weights of entries, (samples, features), and return remarks for the user as well.

    A long table has the weights of some entries, and all others have the weight 1; the result is
    then sparse. A sparse matrix is refused: readers of counts do not keep its zeros.
    """
    if _is_table(path):
        grid = parse_grid(path)
        if _is_long(grid):
            rows, columns, values = _read_long(grid, samples, features)
            shape = samples.count, features.count
            return sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape)), []
    table = read_dense_table(path)
    if sparse.issparse(table.counts):
        raise ReadError(
            f"{path} is a sparse matrix, which does not say what weights the other entries have: "
            "use a dense matrix, or a table of sample, feature and weight."
        )
    return _align(path, table, samples, features)


def read_dense_table(path: Path) -> Table:
    """Read a matrix with names, where True is 1 and False is 0; tables are read as wide."""
    if not _is_table(path):
        return read(path)
    grid = parse_grid(path)
    grid = replace(grid, columns=[_without_booleans(column) for column in grid.columns])
    return open_table(grid, "wide").read(path)


def _is_table(path: Path) -> bool:
    return Path(path.name.lower().removesuffix(".gz")).suffix in _TABLES


def _without_booleans(column: Any) -> Any:
    """Return a column of True and False as 1 and 0, and any other column unchanged."""
    if column.dtype == bool:
        return column.astype(np.int8)
    if column.dtype.kind in "iuf" or str(column.iloc[0]).strip().lower() not in _BOOLEANS:
        return column
    values = column.map(lambda cell: _BOOLEANS.get(str(cell).strip().lower()))
    return column if values.isna().any() else values.astype(np.int8)


def _is_long(grid: Grid) -> bool:
    return len(grid.columns) == 3 and all(map(is_text, grid.columns[:2]))


def _read_long(grid: Grid, samples: Items, features: Items) -> tuple[Any, Any, Any]:
    """Return rows, columns and values of the entries in a long table."""
    sides = []
    for items in (samples, features):
        if items.names is None:
            raise ReadError(
                f"{grid.path} names {items.kind}s, but the data have no names of {items.kind}s: "
                "use a matrix with the shape of the data."
            )
        sides.append({name: at for at, name in enumerate(items.names)})
    with report_malformed(grid.path):
        values = cell_numbers(_without_booleans(grid.columns[2])).astype(np.float64)
        grid.check_counts(values, 2)
        pairs: dict[tuple[int, int], str] = {}
        for place, cells in grid_rows(grid):
            pair = []
            for items, positions, cell in zip((samples, features), sides, cells[:2], strict=True):
                if str(cell) not in positions:
                    raise ReadError(
                        f"{grid.path}, {place}: {quote(str(cell))} is not a {items.kind} of "
                        "the data."
                    )
                pair.append(positions[str(cell)])
            if pairs.setdefault((pair[0], pair[1]), place) != place:
                raise ReadError(
                    f"{grid.path}, {place}, has the same sample and feature as "
                    f"{pairs[pair[0], pair[1]]}: drop one of the two."
                )
    rows, columns = np.array(list(pairs), np.intp).T
    return rows, columns, values


def _align(path: Path, table: Table, samples: Items, features: Items) -> tuple[Any, list[str]]:
    """Return the values of a table as a dense array in the order of the data, and remarks."""
    counts: Any = table.counts
    values = np.asarray(counts) if isinstance(counts, np.ndarray) else counts.toarray()
    remarks: list[str] = []
    sides = ((samples, table.samples), (features, table.features))
    for axis, (items, names) in enumerate(sides):
        if names is not None:
            places, more = match_items(str(path), names, items)
            values, remarks = values.take(places, axis), remarks + more
        elif values.shape[axis] != items.count:
            raise ReadError(
                f"{path} has {values.shape[axis]:,} {items.kind}s, expected the {items.count:,} "
                "of the data in the same order."
            )
    return values, remarks
