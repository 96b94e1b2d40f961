# SPDX-License-Identifier: BSD-3-Clause
"""What every reader returns, and the one error it raises."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Counts", "ReadError", "Table", "fingerprint", "library", "shown"]

Counts = NDArray[Any] | sparse.csr_array[Any, tuple[int, int]]
_ROWS_AT_A_TIME = 4096


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


def fingerprint(table: Table) -> str:
    """Hash shape and counts: the same counts have the same hash, whatever file they come from.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits of the shape, of the number of nonzeros in each row, and of
        the columns and values of the nonzeros row by row, as little-endian int64 and float64.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from sipower.io import Table, fingerprint
    >>> V = np.array([[0, 2, 1], [3, 0, 0]])
    >>> fingerprint(Table(V)) == fingerprint(Table(sparse.csr_array(V.astype(float))))
    True
    """
    counts = table.counts
    lengths, columns, values = (hashlib.sha256() for _ in range(3))
    for start in range(0, counts.shape[0], _ROWS_AT_A_TIME):
        block = sparse.csr_array(counts[start : start + _ROWS_AT_A_TIME])
        block.sum_duplicates()
        block.eliminate_zeros()
        lengths.update(np.diff(block.indptr).astype("<i8").tobytes())
        columns.update(block.indices.astype("<i8").tobytes())
        values.update(block.data.astype("<f8").tobytes())
    whole = hashlib.sha256(np.array(counts.shape, "<i8").tobytes())
    for part in (lengths, columns, values):
        whole.update(part.digest())
    return whole.hexdigest()


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


def shown(what: object) -> str:
    """Short form of anything for a sentence: one line, at most 60 characters."""
    text = " ".join(str(what).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
