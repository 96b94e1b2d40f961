# SPDX-License-Identifier: BSD-3-Clause
"""Known components, such as a catalogue of signatures, read and matched to the data by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import shorten
from sipower.io.base import Names, ReadError
from sipower.io.entry_values import read_dense_table
from sipower.io.item_values import Items, match_items

__all__ = ["KnownComponents", "read_known_components"]

_NUMBERED = re.compile(r"(component )?\d+")  # names that runs give to components by their size


@dataclass(frozen=True, eq=False)
class KnownComponents:
    """Components with the names of their features, as they are in a file.

    Parameters
    ----------
    source
        The file or folder, for messages.
    values
        The components, (components, features), non-negative.
    names, features
        Names, or None if the file has none.
    """

    source: Path
    values: NDArray[Any]
    names: Names | None = None
    features: Names | None = None

    def align(self, features: Items) -> tuple[NDArray[Any], list[str]]:
        """Return the components with the features of the data in their order, and remarks.

        Every feature of the data must be in the file.
        """
        if self.features is None or features.names is None:
            if self.values.shape[1] != features.count:
                raise ReadError(
                    f"{self.source} has {self.values.shape[1]:,} features, expected the "
                    f"{features.count:,} of the data in the same order."
                )
            return self.values, []
        places, remarks = match_items(str(self.source), self.features, features)
        return np.ascontiguousarray(self.values[:, places]), remarks

    def unambiguous_names(self) -> Names:
        """Return the names, with the name of the file before a mere number.

        Runs number their components by size, so "component 2" of a file may be number 5 of a fit.
        """
        stem = self.source.resolve().name.partition(".")[0]
        names = self.names or tuple(f"component {k + 1}" for k in range(len(self.values)))
        return tuple(f"{stem} {name}" if _NUMBERED.fullmatch(name) else name for name in names)


def read_known_components(path: Path, features: Items) -> KnownComponents:
    """Read a table of components by features, or of features by components.

    The names of the features say which of the two it is or, if the data have none, the shape.
    """
    table = read_dense_table(path)
    counts: Any = table.counts
    values = np.asarray(counts) if isinstance(counts, np.ndarray) else counts.toarray()
    by_rows = KnownComponents(path, values, table.samples, table.features)
    by_columns = KnownComponents(path, values.T, table.features, table.samples)
    if features.names is None:
        is_turned = values.shape[1] != features.count == values.shape[0]
        return by_columns if is_turned else by_rows
    keys = {*features.names, *(features.ids or ())}
    shared = [len(keys.intersection(names or ())) for names in (table.features, table.samples)]
    if not any(shared):
        if table.features is None and values.shape[1] == features.count:
            return by_rows
        example = (table.features or table.samples or ("none",))[0]
        raise ReadError(
            f"{path} has no feature of the data, such as {shorten(features.names[0])!r}: its names "
            f"are like {shorten(example)!r}; use the names of the features in the data."
        )
    return by_rows if shared[0] >= shared[1] else by_columns
