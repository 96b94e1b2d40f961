# SPDX-License-Identifier: BSD-3-Clause
"""Columns of obs and var of AnnData files, in HDF5 or Zarr."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from sipower.io.anndata_files import is_anndata, read_column_texts
from sipower.io.base import report_damage
from sipower.io.groups import GroupedFile
from sipower.io.hdf5 import open_hdf5_file
from sipower.io.zarr_files import is_zarr, open_zarr_file


def has_columns(path: Path) -> bool:
    """Return whether a path is an AnnData file, which has columns of samples and features."""
    if not is_zarr(path) and not (path.suffix.lower() in (".h5ad", ".h5") and path.is_file()):
        return False
    with _open(path) as file:
        return is_anndata(file)


def read_column(path: Path, axis: str, name: str) -> tuple[tuple[str, ...], list[str]]:
    """Read a column of obs, var or raw/var of an AnnData file as texts, and return remarks too."""
    with _open(path) as file, report_damage(path, file.kind):
        return read_column_texts(file, axis, name), file.remarks


def _open(path: Path) -> AbstractContextManager[GroupedFile]:
    return open_zarr_file(path) if is_zarr(path) else open_hdf5_file(path)
