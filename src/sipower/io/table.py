# SPDX-License-Identifier: BSD-3-Clause
"""What every reader returns, and the one error it raises."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower._files import shorten as shown

__all__ = ["Counts", "ReadError", "Table", "library", "shown"]

# Quoted: an older SciPy cannot index its arrays' types.
Counts: TypeAlias = "NDArray[Any] | sparse.csr_array[Any, tuple[int, int]]"


class ReadError(ValueError):
    """A file that cannot be read: one sentence that says what is wrong, where, and what to do."""


@dataclass(frozen=True, eq=False)
class Table:
    """Counts of samples (rows) by features (columns).

    Parameters
    ----------
    counts
        Finite and not negative, in the file's type of number: an array, or a CSR array with sorted
        indices, no zeros and no duplicates.
    samples, features
        Names of the rows and of the columns, where the file has them; they may repeat.
    remarks
        Sentences for the user: what was assumed, and what looks odd.
    """

    counts: Counts
    samples: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    remarks: tuple[str, ...] = ()

    def turned(self) -> Table:
        """Exchange samples and features."""
        counts = self.counts.T
        if isinstance(counts, np.ndarray):
            return Table(counts, self.features, self.samples, self.remarks)
        return Table(sparse.csr_array(counts), self.features, self.samples, self.remarks)


def library(name: str, path: Path) -> Any:
    """Import an optional library that a file needs."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ReadError(
            f"{path} needs the package {package}: install it, for example with pip install "
            f"{package}."
        ) from None
