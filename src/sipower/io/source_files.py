# SPDX-License-Identifier: BSD-3-Clause
"""The files that hold the counts and names of a data file, and whether they have changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sipower.io.base import ReadError
from sipower.io.dispatch import STREAMED, file_kind
from sipower.io.docword import find_vocabulary, is_docword
from sipower.io.tenx import find_tenx_files, is_tenx


def is_streamed(path: Path) -> bool:
    """Return whether a file is converted in blocks, so that it may be larger than memory."""
    kind = file_kind(path)
    if kind == ".txt":
        return is_docword(path)
    return kind in STREAMED or (kind == "folder" and is_tenx(path))


def describe_source(path: Path, layer: str | None) -> dict[str, Any]:
    """Return what identifies the present content of a file: its path, size and time of change."""
    if not path.exists():
        raise ReadError(f"{path} does not exist.")
    states = [os.stat(file) for file in _source_files(path)]
    return {
        "file": str(path.resolve()),
        "layer": layer,
        "files": len(states),
        "bytes": sum(state.st_size for state in states),
        "modified": max((state.st_mtime_ns for state in states), default=0),
    }


def _source_files(path: Path) -> list[Path]:
    kind = file_kind(path)
    if kind == ".zarr":
        return [Path(parent, name) for parent, _, names in os.walk(path) for name in names]
    if kind in ("folder", ".mtx"):
        return find_tenx_files(path)
    if kind == ".txt":
        vocabulary = find_vocabulary(path)
        return [path] if vocabulary is None else [path, vocabulary]
    return [path]
