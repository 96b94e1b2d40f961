# SPDX-License-Identifier: BSD-3-Clause
"""The fingerprint of data: the same numbers, the same hash, dense or sparse, from any file."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from sipower.data.memory import Matrix

__all__ = ["Fingerprint", "fingerprint"]

ROWS_AT_A_TIME = 4096


def fingerprint(V: Matrix) -> str:
    """SHA-256, in hexadecimal digits, of the shape and of the nonzeros row by row.

    Hashed are the numbers of nonzeros in the rows, their columns and their values, each as
    little-endian int64 or float64.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from sipower import as_matrix
    >>> from sipower.data.fingerprint import fingerprint
    >>> V = np.array([[0, 2, 1], [3, 0, 0]])
    >>> fingerprint(as_matrix(V)) == fingerprint(as_matrix(sparse.csr_array(V)))
    True
    """
    if V.sha256 is not None:
        return V.sha256
    digest = Fingerprint()
    for at in range(0, V.shape[0], ROWS_AT_A_TIME):
        digest.add(sparse.csr_array(V.rows(at, min(at + ROWS_AT_A_TIME, V.shape[0]))))
    V.sha256 = digest.of(V.shape)
    return V.sha256


class Fingerprint:
    """The same hash, of rows that come one after another."""

    def __init__(self) -> None:
        self._parts = [(hashlib.sha256(), kind) for kind in ("<i8", "<i8", "<f8")]

    def add(self, rows: Any) -> None:
        """Take up canonical CSR rows."""
        numbers = np.diff(rows.indptr), rows.indices, rows.data
        for (digest, kind), found in zip(self._parts, numbers, strict=True):
            digest.update(np.ascontiguousarray(found, kind).data)

    def of(self, shape: tuple[int, int]) -> str:
        """The hash of the rows so far as data of this shape."""
        whole = hashlib.sha256(np.array(shape, "<i8").data)
        for digest, _ in self._parts:
            whole.update(digest.digest())
        return whole.hexdigest()
