# SPDX-License-Identifier: BSD-3-Clause
"""Known components, such as a catalogue of signatures: read, matched to the data, and written."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import atomic_write, quote
from sipower.data.names import Items
from sipower.inference.profiles import as_profiles
from sipower.inference.sbs96 import sbs96_order
from sipower.io.base import Names, ReadError, import_library
from sipower.io.entry_values import read_dense_table
from sipower.io.item_values import match_items

__all__ = [
    "KnownComponents",
    "open_components",
    "read_components",
    "read_known_components",
    "write_components",
]

ENDINGS = (".csv", ".tsv", ".parquet")

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
        if self.features is None:
            if self.values.shape[1] != features.count:
                raise ReadError(
                    f"{self.source} has {self.values.shape[1]:,} features, expected the "
                    f"{features.count:,} of the data in the same order."
                )
            return self.values, []
        places, remarks = match_items(str(self.source), self.features, features)
        return np.ascontiguousarray(self.values[:, places]), remarks

    def items(self) -> Items:
        """Return the features as one side that is matched."""
        forms = "components with names", "a file of components without names"
        return Items("feature", self.values.shape[1], self.features, None, str(self.source), *forms)

    def to_frame(self) -> Any:
        """Return the components as a pandas DataFrame, with a row for each of them."""
        pd: Any = import_library("pandas", self.source)
        features = None if self.features is None else list(self.features)
        return pd.DataFrame(self.values, list(self.unambiguous_names()), features)

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
    by_rows, by_columns = _read_both(path)
    shape = by_rows.values.shape
    if features.names is None:
        is_turned = shape[1] != features.count == shape[0]
        return by_columns if is_turned else by_rows
    keys = {*features.names, *(features.ids or ())}
    shared = [len(keys.intersection(each.features or ())) for each in (by_rows, by_columns)]
    if not any(shared):
        if by_rows.features is None and shape[1] == features.count:
            return by_rows
        example = (by_rows.features or by_rows.names or ("none",))[0]
        raise ReadError(
            f"{path} has no feature of the data, such as {quote(features.names[0])}: its names "
            f"are like {quote(example)}; use the names of the features in the data."
        )
    return by_rows if shared[0] >= shared[1] else by_columns


def _read_both(path: Path) -> tuple[KnownComponents, KnownComponents]:
    """Return a table with the components in rows, and with the components in columns."""
    table = read_dense_table(path)
    counts: Any = table.counts
    values = np.asarray(counts) if isinstance(counts, np.ndarray) else counts.toarray()
    return (
        KnownComponents(path, values, table.samples, table.features),
        KnownComponents(path, values.T, table.features, table.samples),
    )


def read_components(
    path: str | Path, *, features: Sequence[str] | None = None, transpose: bool = False
) -> Any:
    r"""Read known components, such as a catalogue of signatures, with their names.

    Parameters
    ----------
    path
        A table of text (.csv, .tsv, .txt) or parquet, or any other file that `read` accepts.
    features
        Names of the features of the data, which say whether the components are rows or columns.
        None: the names of the 96 channels of single-base substitutions do.
    transpose
        Whether the components are columns, if no names say so.

    Returns
    -------
    DataFrame
        A row for each component and a column for each feature.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sipower.io import read_components
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "known.csv")
    ...     _ = file.write_text("name,apples,pears\nautumn,0.4,0.6\n")
    ...     read_components(file, features=["apples", "pears"]).loc["autumn"].tolist()
    [0.4, 0.6]
    """
    path = Path(path)
    if features is not None:
        return read_known_components(
            path, Items("feature", len(features), tuple(features))
        ).to_frame()
    return open_components(path, transpose=transpose).to_frame()


def open_components(path: Path, *, transpose: bool = False) -> KnownComponents:
    """Read a table of components by features or, if `transpose`, of features by components.

    The names of the 96 channels of single-base substitutions take precedence over `transpose`.
    """
    by_rows, by_columns = _read_both(path)
    if sbs96_order(by_columns.features) is not None:
        return by_columns
    is_turned = transpose and sbs96_order(by_rows.features) is None
    return by_columns if is_turned else by_rows


def write_components(path: str | Path, H: Any, *, transpose: bool = False) -> None:
    """Write components with their names to a .csv, .tsv or .parquet file.

    Parameters
    ----------
    path
        The file, which is replaced if it exists.
    H
        Components, (K, n_features): an array, a data frame with a row for each component, a fitted
        `KLNMF`, or a run. Every component is written as a profile that sums to 1.
    transpose
        Whether to write the features as rows, as in the catalogues of COSMIC and SigProfiler.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sipower.io import read_components, write_components
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "profiles.csv")
    ...     write_components(file, [[3.0, 1.0], [0.0, 2.0]])
    ...     read_components(file).to_numpy().tolist()  # every profile sums to 1
    [[0.75, 0.25], [0.0, 1.0]]
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{path} must end in {', '.join(ENDINGS)}.")
    pd: Any = import_library("pandas", path)
    profiles = as_profiles("H", H)
    features = profiles.features or [f"feature {j + 1}" for j in range(profiles.values.shape[1])]
    frame = pd.DataFrame(profiles.values, pd.Index(profiles.names, name="name"), list(features))
    frame = frame.T.rename_axis("name") if transpose else frame
    with atomic_write(path) as to:
        if ending == ".parquet":
            frame.to_parquet(to)
        else:
            separator = "\t" if ending == ".tsv" else ","
            frame.to_csv(to, sep=separator, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        to.flush()
