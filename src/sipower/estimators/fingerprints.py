# SPDX-License-Identifier: BSD-3-Clause
"""Fingerprints of arguments, for checkpoints, saved fits and the record of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["ARRAY", "describe_value", "fingerprint", "fingerprints"]

ARRAY = "array"  # the description of an array or a mapping begins with this word
MAX_NUMBERS = 256  # length of an array that is described by its numbers


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


def describe_value(value: Any) -> Any:
    """Return a form for JSON: numbers, texts and short lists themselves, else a fingerprint."""
    if isinstance(value, bool | int | float | str | None):
        return value
    if isinstance(value, Mapping):
        text = json.dumps(value, default=_as_list)
        return (
            f"{ARRAY} of {len(value)} guides, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"
        )
    is_array = isinstance(value, list | tuple) or hasattr(value, "__array__")
    if not is_array or isinstance(value, np.generic):
        return str(value)
    if np.ndim(value) == 1 and len(value) <= MAX_NUMBERS:
        return [float(number) for number in value]
    names = [str(name) for side in ("index", "columns") for name in getattr(value, side, ())]
    digest = fingerprint([fingerprint(value), *names]) if names else fingerprint(value)
    return f"{ARRAY} of shape {np.shape(value)}, SHA-256 {digest}"


def _as_list(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else np.asarray(value).tolist()
