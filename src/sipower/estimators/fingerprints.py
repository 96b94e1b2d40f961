# SPDX-License-Identifier: BSD-3-Clause
"""Fingerprints of arguments, for checkpoints, saved fits and the record of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["fingerprint", "fingerprints"]


def fingerprints(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the values of all keyword arguments that are not None."""
    return {name: fingerprint(value) for name, value in arguments.items() if value is not None}


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of an array, a sparse array or anything that NumPy makes an array of."""
    sha256 = hashlib.sha256()
    is_sparse: bool = sp.issparse(value)
    csr: Any = sp.csr_array(value) if is_sparse else None
    for part in (value,) if csr is None else (csr.indptr, csr.indices, csr.data):
        array = np.asarray(part)
        array = array.astype(str) if array.dtype.kind == "O" else array
        sha256.update(np.ascontiguousarray(array).tobytes())
    return sha256.hexdigest()
