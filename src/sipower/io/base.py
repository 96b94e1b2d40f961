# SPDX-License-Identifier: BSD-3-Clause
"""The result type, the error type and helper functions that the readers share."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray
from scipy import sparse

from sipower._files import DamagedError, is_plausible_size, printable, shorten

# Quoted, because the array types of older SciPy versions cannot be subscripted.
Counts: TypeAlias = "NDArray[Any] | sparse.csr_array[Any, tuple[int, int]]"
Names = tuple[str, ...]


class ReadError(ValueError):
    """An error for a file that cannot be read: what is wrong, where, and what to do.

    Control and invisible characters of its message are escaped, since files choose their names.
    """

    def __init__(self, message: object) -> None:
        super().__init__(printable(str(message)))


class MissingLayerError(ReadError):
    """An error for an AnnData file that does not have a layer."""


@dataclass(frozen=True, eq=False)
class Table:
    """A matrix of counts, samples (rows) by features (columns), with names.

    Parameters
    ----------
    counts
        Finite and non-negative, in the dtype of the file: an array, or a CSR array with sorted
        indices, no zeros and no duplicates.
    samples, features
        Names of the rows and of the columns, where the file has them. Those of the samples may
        repeat; those of the features are made unique (`unique_names`).
    remarks
        Sentences for the user about assumptions that were made and content that looks unusual.
    feature_ids
        Ids of the features, such as ENSG00000284770, where the file has them beside their names.
    text_options
        The settings that words were counted with, if the file holds texts; see `read_texts`.
    """

    counts: Counts
    samples: Names | None = None
    features: Names | None = None
    remarks: tuple[str, ...] = ()
    feature_ids: Names | None = None
    text_options: dict[str, Any] | None = None


def unique_names(names: Sequence[str], ids: Sequence[str] | None = None) -> Names:
    """Return names of which none repeats; names that do not repeat stay as they are.

    A name that repeats gets its id, as in "TBCE (ENSG00000284770)". Without ids, or where these
    repeat too, the second feature of a name is "TBCE (2)", the third "TBCE (3)".

    Examples
    --------
    >>> from sipower.io.base import unique_names
    >>> unique_names(["TBCE", "ACTB", "TBCE"], ["ENSG01", "ENSG02", "ENSG03"])
    ('TBCE (ENSG01)', 'ACTB', 'TBCE (ENSG03)')
    >>> unique_names(["TBCE", "ACTB", "TBCE"])
    ('TBCE', 'ACTB', 'TBCE (2)')
    """
    uses = Counter(names)
    if len(uses) == len(names):
        return tuple(names)
    keys = [""] * len(names) if ids is None else ids
    longer = [
        f"{name} ({key})" if uses[name] > 1 and key not in ("", name) else name
        for name, key in zip(names, keys, strict=True)
    ]
    taken, seen, unique = set(longer), set[str](), []
    numbers: Counter[str] = Counter()
    for name in longer:
        new = name
        while new in seen:
            numbers[name] += 1
            numbered = f"{name} ({numbers[name] + 1})"
            new = numbered if numbered not in taken else new
        seen.add(new)
        unique.append(new)
    return tuple(unique)


def import_library(name: str, path: Path) -> Any:
    """Import an optional library that a file needs."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ReadError(
            f"{path} needs the package {package}: install it, for example with pip install "
            f"{package}."
        ) from None


@contextmanager
def report_damage(path: Path, kind: str) -> Iterator[None]:
    """Raise `ReadError` if a file is damaged or of another kind."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about old file layouts, which users cannot change
            yield
    except (ReadError, MemoryError, PermissionError):
        raise
    except DamagedError as problem:
        raise ReadError(f"{path} {problem}.") from None
    # Damage makes libraries raise nearly anything, from KeyError to RuntimeError.
    except Exception as problem:
        raise ReadError(f"{path} is damaged or not {kind}: {shorten(problem)}.") from None


def check_size(place: Path | str, declared: int, stored: int) -> None:
    """Reject content whose declared size is implausible for the number of bytes stored."""
    if not is_plausible_size(declared, stored):
        raise ReadError(
            f"{place} declares {declared} bytes and stores {stored}: it is damaged, write it again."
        )


def exact_floats(pandas: Any) -> dict[str, str]:
    """Return the options of `pandas.read_csv` that read every float to its last bit."""
    is_default = tuple(map(int, pandas.__version__.split(".")[:2])) >= (3, 1)
    return {} if is_default else {"float_precision": "round_trip"}
