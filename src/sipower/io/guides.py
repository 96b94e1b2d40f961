# SPDX-License-Identifier: BSD-3-Clause
"""`read_guides`: sets of features, such as marker genes, that guide components of a fit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from sipower._files import quote, shorten
from sipower.io.base import ReadError
from sipower.io.grid import Grid, is_text, report_malformed
from sipower.io.item_values import grid_rows, parse_grid
from sipower.io.text import parse_number, read_lines

__all__ = ["Guides", "read_guides"]

Guides: TypeAlias = dict[str, dict[str, float]]  # weights of features by the name of a guide
ENDINGS = (".gmt", ".json", ".csv", ".tsv", ".txt", ".parquet")


def read_guides(path: str | PathLike[str]) -> Guides:
    r"""Read guides: the name of each, and the features in it with their weights.

    Parameters
    ----------
    path
        One of these files; all but parquet may be compressed, with a name that ends in ``.gz``:

        ``.gmt``
            A line for each guide: name, description, features, separated by tabs.
        ``.json``
            ``{"name": ["feature", ...]}`` or ``{"name": {"feature": weight}}``.
        ``.csv``, ``.tsv``, ``.txt``, ``.parquet``
            With headings, and either two or three columns, guide, feature and weight, or a row for
            each guide and a column for each feature, with weights as cells.

    Returns
    -------
    dict
        The weights of the features of each guide; features without a weight have the weight 1.

    Raises
    ------
    ReadError
        If the content is malformed. The message names the file, and the line of a text file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sipower.io import read_guides
    >>> file = pathlib.Path(tempfile.mkdtemp(), "cells.gmt")
    >>> _ = file.write_text("T cell\tmarkers\tCD3D\tCD3E\n")
    >>> read_guides(file)
    {'T cell': {'CD3D': 1.0, 'CD3E': 1.0}}
    """
    file = Path(path)
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    if ending not in ENDINGS:
        raise ReadError(f"{file} must end in {', '.join(ENDINGS)} to be read as guides.")
    if not file.is_file():
        raise ReadError(f"{file} does not exist, or is a folder.")
    if ending == ".gmt":
        guides = _read_gmt(file)
    elif ending == ".json":
        guides = _read_json(file)
    else:
        guides = _read_table(file)
    if not guides:
        raise ReadError(f"{file} has no guides.")
    return guides


def _read_gmt(path: Path) -> Guides:
    guides: Guides = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        name, features = cells[0], cells[2:]
        place = f"{path}, line {number}"
        if not name or not any(features):
            raise ReadError(
                f"{place}, must have a name, a description and features, separated by tabs."
            )
        if name in guides:
            raise ReadError(f"{place}, repeats the guide {quote(name)}: rename or join the two.")
        guides[name] = {feature: 1.0 for feature in features if feature}
    return guides


# ---- JSON ----------------------------------------------------------------------------------------


def _read_json(path: Path) -> Guides:
    try:
        content = json.loads("\n".join(read_lines(path)), object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as problem:
        raise ReadError(f"{path}, line {problem.lineno}, is not JSON: {problem.msg}.") from None
    except _RepeatedKeyError as problem:
        raise ReadError(f"{path} {problem}.") from None
    except (RecursionError, ValueError):  # a ValueError is an integer of thousands of digits
        raise ReadError(f"{path} is nested too deeply, or has a number that is too long.") from None
    if not isinstance(content, dict):
        raise ReadError(f'{path} must hold a JSON object such as {{"T cell": ["CD3D", "CD3E"]}}.')
    return {name: _json_guide(path, name, value) for name, value in content.items()}


class _RepeatedKeyError(ValueError):
    """An error for a key that an object of a JSON file has twice."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise _RepeatedKeyError(f"has the key {quote(repeated)} twice in one object")
    return content


def _json_guide(path: Path, name: str, value: Any) -> dict[str, float]:
    place = f"{path}, guide {quote(name)}"
    if isinstance(value, list) and all(isinstance(feature, str) for feature in value):
        weights = dict.fromkeys(value, 1.0)
    elif isinstance(value, dict):
        weights = {
            feature: _check_weight(f"{place}, feature {quote(feature)}", weight)
            for feature, weight in value.items()
        }
    else:
        raise ReadError(f"{place}, must be a list of features, or an object of their weights.")
    if not weights:
        raise ReadError(f"{place}, has no features.")
    return weights


# ---- tables --------------------------------------------------------------------------------------


def _read_table(path: Path) -> Guides:
    grid = parse_grid(path)
    with report_malformed(path):
        is_long = len(grid.columns) == 2 or (
            len(grid.columns) == 3 and all(map(is_text, grid.columns[:2]))
        )
        if not grid.headings or len(grid.columns) < 2:
            raise ReadError(
                f"{path} must have headings, and columns of guides, features and weights."
            )
        return _read_long(grid) if is_long else _read_wide(grid)


def _read_long(grid: Grid) -> Guides:
    guides: Guides = {}
    for place, cells in _rows(grid):
        name, feature = (str(cell).strip() for cell in cells[:2])
        if not name or not feature:
            raise ReadError(f"{grid.path}, {place}, has an empty guide or feature.")
        weights = guides.setdefault(name, {})
        if feature in weights:
            raise ReadError(
                f"{grid.path}, {place}, repeats {quote(feature)} of {quote(name)}: drop "
                "one of the two."
            )
        weight = cells[2] if len(cells) == 3 else 1.0
        weights[feature] = _check_weight(f"{grid.path}, {place}", weight)
    return guides


def _rows(grid: Grid) -> Iterator[tuple[str, list[Any]]]:
    """Yield the rows; a first line that begins with the name of a guide is not one of headings."""
    rows = [(place, list(cells)) for place, cells in grid_rows(grid)]
    if any(cells[0] == grid.headings[0] for _, cells in rows):
        yield "line 1", list(grid.headings)
    yield from rows


def _read_wide(grid: Grid) -> Guides:
    features, guides = [str(name).strip() for name in grid.headings[1:]], Guides()
    for place, cells in grid_rows(grid):
        name = str(cells[0]).strip()
        if not name or name in guides:
            raise ReadError(f"{grid.path}, {place}, must begin with the name of another guide.")
        where = f"{grid.path}, {place}"
        weights = [
            _check_weight(f"{where}, column {quote(feature)}", cell, allow_zero=True)
            for feature, cell in zip(features, cells[1:], strict=True)
        ]
        pairs = zip(features, weights, strict=True)
        guides[name] = {feature: weight for feature, weight in pairs if weight > 0}
        if not guides[name]:
            raise ReadError(f"{where}, has no feature with a positive weight.")
    return guides


def _check_weight(place: str, value: Any, *, allow_zero: bool = False) -> float:
    """Return a weight, which must be a positive number; an empty cell of a table means 0."""
    text = "" if isinstance(value, bool) else str(value).strip()
    is_empty = allow_zero and value in ("", None)
    weight = 0.0 if is_empty else parse_number(text)
    if not math.isfinite(weight) or weight < 0 or (weight == 0 and not allow_zero):
        raise ReadError(f"{place}: the weight {shorten(repr(value))} must be a positive number.")
    return weight
