# SPDX-License-Identifier: BSD-3-Clause
"""`Fingerprint`: a hash of data that is the same for dense and sparse data and any file format.

It is the SHA-256 of the shape and of three other SHA-256 digests: that of the number of nonzeros in
each row, that of the columns of all nonzeros and that of their values. Rows and columns are in
ascending order. All numbers are little-endian int64, or float64 for the values. `RowBlocks.sha256`
is the hash in hexadecimal form.

>>> import numpy as np
>>> from scipy import sparse
>>> from sipower import as_matrix
>>> V = np.array([[0, 2, 1], [3, 0, 0]])
>>> as_matrix(V).sha256 == as_matrix(sparse.csr_array(V)).sha256
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

ROWS_HASHED_AT_ONCE = 4096


class Fingerprint:
    """The hash of rows that are added block by block."""

    def __init__(self) -> None:
        self._parts = [(hashlib.sha256(), kind) for kind in ("<i8", "<i8", "<f8")]

    def add(self, rows: Any) -> None:
        """Add the next rows of the data, given as a canonical CSR array."""
        arrays = np.diff(rows.indptr), rows.indices, rows.data
        for (digest, kind), array in zip(self._parts, arrays, strict=True):
            digest.update(np.ascontiguousarray(array, kind).data)

    def hexdigest(self, shape: tuple[int, int]) -> str:
        """Return the hexadecimal hash of data of this shape with the rows added so far."""
        whole = hashlib.sha256(np.array(shape, "<i8").data)
        for digest, _ in self._parts:
            whole.update(digest.digest())
        return whole.hexdigest()


def hash_rows(rows: Callable[[int, int], Any], shape: tuple[int, int]) -> str:
    """Return the hash of data; rows(begin, end) returns a part as an array or in CSR."""
    digest, n = Fingerprint(), shape[0]
    for begin in range(0, n, ROWS_HASHED_AT_ONCE):
        digest.add(sparse.csr_array(rows(begin, min(begin + ROWS_HASHED_AT_ONCE, n))))
    return digest.hexdigest(shape)
