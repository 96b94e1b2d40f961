# SPDX-License-Identifier: BSD-3-Clause
"""Values that options name: tables, columns of an AnnData file, and known components."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sipower.cli.options import InputOptions
from sipower.data.names import Items
from sipower.io import Table
from sipower.io.anndata_columns import has_columns, read_column
from sipower.io.item_values import ItemValues, read_item_values
from sipower.io.known_components import (
    KnownComponents,
    open_components,
    read_known_components,
)
from sipower.results import load_run


@dataclass(frozen=True)
class DataItems:
    """The samples and features of a data file, and where it has columns about them."""

    data: InputOptions
    table: Table

    @property
    def samples(self) -> Items:
        """The samples."""
        return Items("sample", self.table.counts.shape[0], self.table.samples)

    @property
    def features(self) -> Items:
        """The features."""
        table = self.table
        return Items("feature", table.counts.shape[1], table.features, table.feature_ids)

    @cached_property
    def has_columns(self) -> bool:
        """Whether the data are AnnData files, which have columns of samples and features."""
        return all(has_columns(file) for file in self.data.sources)

    def values(self, kind: str, text: str) -> ItemValues:
        """Return the values in a table or, if there is no such file, in a column of obs or var."""
        if Path(text).is_file():
            return read_item_values(text)
        if not self.has_columns:
            raise ValueError(f"{text} is not a file; only AnnData files have columns to name.")
        sources = self.data.sources if kind == "sample" else (self.data.source,)
        axis = "obs" if (kind == "sample") != bool(self.data.transpose) else "var"
        if axis == "var" and self.data.layer == "raw":
            axis = "raw/var"
        parts = [read_column(source, axis, text) for source in sources]
        cells = tuple(cell for texts, _ in parts for cell in texts)
        remarks = tuple(remark for _, more in parts for remark in more)
        source = f"{self.data.source}, column {text!r} of {axis}"
        return ItemValues(source, cells, remarks=remarks)


def read_numbers(items: DataItems, kind: str, text: str) -> tuple[Any, list[str]]:
    """Return a number for each sample or feature, and remarks."""
    values = items.values(kind, text)
    return values.align_numbers(items.samples if kind == "sample" else items.features)


def read_labels(items: DataItems, text: str) -> tuple[Any, list[str]]:
    """Return the label of every sample, and remarks."""
    values = items.values("sample", text)
    labels, remarks = values.align(items.samples)
    empty = next((at for at, label in enumerate(labels) if label.strip() in ("", "nan")), None)
    if empty is not None:
        names = items.table.samples
        sample = f"sample {empty}" if names is None else f"sample {names[empty]!r}"
        raise ValueError(f"{values.source} has no label for {sample}.")
    return np.array(labels), remarks


def read_fixed(items: DataItems, path: Path) -> tuple[Any, list[str]]:
    """Return known components as a data frame with their names, and remarks."""
    import pandas as pd  # noqa: PLC0415 - optional

    features = items.features
    known = read_catalogue(path, features)
    values, remarks = known.align(features)
    return pd.DataFrame(values, list(known.unambiguous_names()), features.names), remarks


def read_catalogue(path: Path, features: Items | None = None) -> KnownComponents:
    """Read known components from the folder of a run or from a table.

    `features` are those of the data, which say whether the components of a table are its rows or
    its columns; None: see `read_components`.
    """
    if path.is_dir():
        run = load_run(path)
        names = None if run.component_names is None else run.component_labels()
        return KnownComponents(path, run.H, names, run.features)
    return open_components(path) if features is None else read_known_components(path, features)
