# SPDX-License-Identifier: BSD-3-Clause
"""Plain data that stand for the content of a file: exact numbers, and digests of arrays."""

import hashlib
import json
import math
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import issparse

STAMP = ("format", "sipower")  # the version of the format and the sipower that wrote the file


def as_facts(value):
    """Return any result of the library as data that JSON stores exactly."""
    if is_dataclass(value):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): as_facts(part) for key, part in value.items() if key not in STAMP}
    value = value.toarray() if issparse(value) else value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return _digest(value)
    if isinstance(value, np.ndarray | np.generic):  # texts, or a single number
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [as_facts(part) for part in value]
    is_exact = isinstance(value, bool | int | float | str | None)
    is_plain = is_exact and not (isinstance(value, float) and not math.isfinite(value))
    return value if is_plain else str(value)


def _digest(array):
    data = np.ascontiguousarray(array)
    data = data.astype(data.dtype.newbyteorder("<"))
    digest = hashlib.sha256(data.tobytes()).hexdigest()
    return {"dtype": data.dtype.str, "shape": list(data.shape), "sha256": digest}


def file_facts(folder):
    """Return the content of every file of a folder, without what differs between equal files."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): _content(path)
        for path in paths
        if path.name not in ("expected.json", "CACHEDIR.TAG")
    }


def _content(path):
    ending = path.suffix
    if ending == ".json":
        return as_facts(json.loads(path.read_text(encoding="utf-8")))
    if ending == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            content = {name: array for name, array in arrays.items() if name not in STAMP}
        if "header" in content:  # of a checkpoint
            content["header"] = json.loads(content["header"].tobytes())
        return as_facts(content)
    if ending == ".parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415

        table = pq.read_table(path)
        return as_facts({"columns": table.schema.names, "rows": table.to_pylist()})
    return hashlib.sha256(path.read_bytes()).hexdigest()
