# SPDX-License-Identifier: BSD-3-Clause
"""The fingerprint of data: the same numbers, the same hash, dense or sparse, from any file."""

from __future__ import annotations

import hashlib

import numpy as np
from scipy import sparse

from sipower.matrix import Matrix

__all__ = ["fingerprint"]

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
    >>> from sipower.fingerprint import fingerprint
    >>> V = np.array([[0, 2, 1], [3, 0, 0]])
    >>> fingerprint(as_matrix(V)) == fingerprint(as_matrix(sparse.csr_array(V)))
    True
    """
    parts = [(hashlib.sha256(), kind) for kind in ("<i8", "<i8", "<f8")]
    for at in range(0, V.shape[0], ROWS_AT_A_TIME):
        block = sparse.csr_array(V.array[at : at + ROWS_AT_A_TIME])
        numbers = np.diff(block.indptr), block.indices, block.data
        for (digest, kind), found in zip(parts, numbers, strict=True):
            digest.update(np.ascontiguousarray(found, kind).data)
    whole = hashlib.sha256(np.array(V.shape, "<i8").data)
    for digest, _ in parts:
        whole.update(digest.digest())
    return whole.hexdigest()
