# SPDX-License-Identifier: BSD-3-Clause
"""Readers of single-cell HDF5 files: AnnData (.h5ad) and 10x Genomics (.h5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sipower._files import shorten
from sipower.io.anndata_files import is_anndata, open_anndata
from sipower.io.base import ReadError, import_library, report_damage
from sipower.io.groups import GroupedFile
from sipower.io.sources import OpenCounts
from sipower.io.tenx import feature_type_remark


class Hdf5File(GroupedFile):
    """An open HDF5 file."""

    kind = "an HDF5 file"

    def check_place(self, *elements: Any) -> None:
        """Reject external links, virtual datasets and raw files."""
        for element in elements:
            elsewhere = getattr(element, "external", None) or getattr(element, "is_virtual", False)
            if elsewhere or element.file.filename != str(self.path):
                raise ValueError(f"another file holds {element.name}")  # the caller shortens it

    def stored_bytes(self, array: Any) -> int:
        """Return the number of bytes that the file has for an array."""
        return int(array.id.get_storage_size())

    def decode(self, array: Any) -> NDArray[Any]:
        """Read an array of texts or numbers."""
        return array.asstr()[()] if array.dtype.kind in "OS" else array[()]  # type: ignore[no-any-return]

    def read_index(self, frame: Any) -> list[str]:
        """Read the names of the rows of a data frame, a table in files of anndata before 0.7."""
        self.check_place(frame)
        if getattr(getattr(frame, "dtype", None), "names", None):
            return list(map(str, import_library("anndata.io", self.path).read_elem(frame).index))
        return super().read_index(frame)


@contextmanager
def open_hdf5_file(path: Path) -> Iterator[Hdf5File]:
    """Open an HDF5 file."""
    h5py = import_library("h5py", path)
    with report_damage(path, Hdf5File.kind):
        root = h5py.File(path, "r")
    with root:
        yield Hdf5File(path, root)


@contextmanager
def open_hdf5(path: Path, layer: str | None = None) -> Iterator[OpenCounts]:
    """Open X, a layer or .raw (the layer "raw") of an AnnData file, or the matrix of a 10x file.

    The content of the file, not its name, decides which of the two it is.

    In AnnData files the samples are obs and the features are var. In 10x files, written by any
    version of Cell Ranger, the samples are barcodes and the features are named by gene.
    """
    with open_hdf5_file(path) as file:
        with report_damage(path, file.kind):
            if is_anndata(file):
                stream = open_anndata(file, layer)
            elif layer is not None:
                raise ReadError(f"{path} is not an AnnData file and has no layer {layer!r}.")
            else:
                stream = _open_tenx(file)
        yield stream


def _open_tenx(file: Hdf5File) -> OpenCounts:
    path, root = file.path, file.root
    groups = [group for group in root.values() if hasattr(group, "keys") and "barcodes" in group]
    if len(groups) != 1:
        raise ReadError(
            f"{path} has {len(groups)} 10x matrices, expected one; it holds: "
            f"{shorten(', '.join(root))}."
        )
    group = groups[0]
    rows, columns = file.read_shape(file.dataset(group["shape"])[()])
    # 10x stores features x barcodes by column, which is the same as barcodes x features by row.
    source = file.compressed(group, (columns, rows))
    genes = "features/name" if "features" in group else "gene_names"
    key = next((name for name in ("features/id", "genes") if name in group), genes)
    barcodes, names, ids = (file.texts(group[name]) for name in ("barcodes", genes, key))
    if (len(barcodes), len(names)) != source.shape or len(ids) != len(names):
        raise ReadError(
            f"{path} is damaged: it has {len(barcodes)} barcodes and {len(names)} features for a "
            f"matrix of {columns} x {rows}."
        )
    types = set()
    if "features/feature_type" in group:
        types = set(file.texts(group["features/feature_type"]))
    notes = feature_type_remark(types)
    return OpenCounts(source, tuple(barcodes), tuple(names), notes, feature_ids=tuple(ids))
