# SPDX-License-Identifier: BSD-3-Clause
"""The result type, the error type and helper functions that the readers share."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray
from scipy import sparse

from sipower._files import DamagedError, is_plausible_size, shorten

# Quoted, because the array types of older SciPy versions cannot be subscripted.
Counts: TypeAlias = "NDArray[Any] | sparse.csr_array[Any, tuple[int, int]]"
Names = tuple[str, ...]
_BARCODE = re.compile(r"[ACGT]{8,}(-\d+)?")
_FEATURES = {
    "genes": re.compile(r"ENS[A-Z]*[GT]\d{6,}(\.\d+)?"),
    "kinds of mutation": re.compile(r"[ACGT]\[[CT]>[ACGT]\][ACGT]"),
}
_MAX_NAMES_CHECKED = 200


class ReadError(ValueError):
    """An error for a file that cannot be read: what is wrong, where, and what to do."""


@dataclass(frozen=True, eq=False)
class Table:
    """A matrix of counts, samples (rows) by features (columns), with names.

    Parameters
    ----------
    counts
        Finite and non-negative, in the dtype of the file: an array, or a CSR array with sorted
        indices, no zeros and no duplicates.
    samples, features
        Names of the rows and of the columns, where the file has them; they may repeat.
    remarks
        Sentences for the user about assumptions that were made and content that looks unusual.
    """

    counts: Counts
    samples: Names | None = None
    features: Names | None = None
    remarks: tuple[str, ...] = ()


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


def orientation_remark(samples: Names | None, features: Names | None) -> tuple[str, ...]:
    """Return a remark if features are named like cells, or samples like features."""
    looks = [("features", "barcodes of cells")] if _mostly(_BARCODE, features) else []
    looks += [("samples", kind) for kind, p in _FEATURES.items() if _mostly(p, samples)]
    return tuple(
        f"The {side} look like {kind}: if samples and features are swapped, set transpose."
        for side, kind in looks[:1]
    )


def _mostly(pattern: re.Pattern[str], names: Names | None) -> bool:
    first = list(islice(names or (), _MAX_NAMES_CHECKED))
    return sum(bool(pattern.fullmatch(name)) for name in first) > len(first) / 2
