# SPDX-License-Identifier: BSD-3-Clause
"""Readers of single-cell HDF5 files: AnnData (.h5ad) and 10x Genomics (.h5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sipower._files import check_regular, shorten
from sipower.io.anndata_files import is_anndata, open_anndata
from sipower.io.base import ReadError, import_library, report_damage
from sipower.io.groups import GroupedFile, MissingChunk, link_error
from sipower.io.sources import OpenCounts
from sipower.io.tenx import feature_type_remark

_HARD_LINK, _SOFT_LINK = 0, 1  # as HDF5 numbers them; all others lead to other files
_MAX_LINKS = 16  # links that are followed to one element, as many as HDF5 itself follows


class Hdf5File(GroupedFile):
    """An open HDF5 file."""

    kind = "an HDF5 file"

    def child(self, group: Any, name: str) -> Any:
        """Open a member of a group, which can be a soft link; see `member`.

        Links are read with the functions of HDF5 for links. `name in group` of h5py follows them.
        """
        return self._follow(group, name, iter(range(_MAX_LINKS)))

    def _follow(self, group: Any, name: str, links_left: Iterator[int]) -> Any:
        links, key = group.id.links, name.encode("utf-8", "surrogateescape")
        if not name or not links.exists(key):
            raise KeyError(f"{group.name} has no {name}")
        kind = links.get_info(key).type
        if kind == _HARD_LINK:
            element = group[name]
            # First, because the shape of a virtual dataset can depend on other files.
            if getattr(element, "external", None) or getattr(element, "is_virtual", False):
                raise link_error(self.path, element.name)
            return element
        place = f"{group.name.rstrip('/')}/{name}"
        if kind != _SOFT_LINK:
            raise link_error(self.path, place)
        if next(links_left, None) is None:
            raise ReadError(
                f"{self.path}: {shorten(place)} is a link to more than {_MAX_LINKS} links; write "
                "its content in its place."
            )
        target = links.get_val(key).decode("utf-8", "surrogateescape")
        element = self.root if target.startswith("/") else group
        for part in filter(None, target.split("/")):
            element = self._follow(element, part, links_left)
        return group[name]  # the same element, with the name of the link

    def names(self, group: Any) -> list[str]:
        """Return the names of all members of a group, none of which is opened."""
        return list(group)

    def missing_chunks(self, array: Any) -> Iterator[MissingChunk]:
        """Yield nothing: HDF5 files are whole or cannot be opened."""
        yield from ()

    def stored_bytes(self, array: Any) -> int:
        """Return the number of bytes that the file has for an array."""
        return int(array.id.get_storage_size())

    def decode(self, array: Any) -> NDArray[Any]:
        """Read an array of texts or numbers."""
        return array.asstr()[()] if array.dtype.kind in "OS" else array[()]  # type: ignore[no-any-return]

    def read_index(self, frame: Any) -> list[str]:
        """Read the names of the rows of a data frame, a table in files of anndata before 0.7."""
        if getattr(getattr(frame, "dtype", None), "names", None):
            return list(map(str, import_library("anndata.io", self.path).read_elem(frame).index))
        return super().read_index(frame)


@contextmanager
def open_hdf5_file(path: Path) -> Iterator[Hdf5File]:
    """Open an HDF5 file."""
    h5py = import_library("h5py", path)
    check_regular(path)
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


def _find_tenx_group(file: Hdf5File) -> Any:
    """Open the only group with barcodes; links to other files are left out."""
    names, places, errors = file.names(file.root), [], []
    for name in names:
        try:
            places += [name] if file.has(file.root, f"{name}/barcodes") else []
        except ReadError as error:
            errors.append(error)
    if errors and not places:
        raise errors[0]
    if len(places) != 1:
        raise ReadError(
            f"{file.path} has {len(places)} 10x matrices, expected one; it holds: "
            f"{shorten(', '.join(names))}."
        )
    return file.member(file.root, places[0])


def _open_tenx(file: Hdf5File) -> OpenCounts:
    path = file.path
    group = _find_tenx_group(file)
    rows, columns = file.read_shape(file.dataset(file.member(group, "shape"))[()])
    # 10x stores features x barcodes by column, which is the same as barcodes x features by row.
    source = file.compressed(group, (columns, rows))
    genes = "features/name" if file.has(group, "features") else "gene_names"
    key = next((name for name in ("features/id", "genes") if file.has(group, name)), genes)
    barcodes, features, ids = (
        file.texts(file.member(group, name)) for name in ("barcodes", genes, key)
    )
    if (len(barcodes), len(features)) != source.shape or len(ids) != len(features):
        raise ReadError(
            f"{path} is damaged: it has {len(barcodes)} barcodes and {len(features)} features for "
            f"a matrix of {columns} x {rows}."
        )
    types = set()
    if file.has(group, "features/feature_type"):
        types = set(file.texts(file.member(group, "features/feature_type")))
    notes = feature_type_remark(types)
    return OpenCounts(source, tuple(barcodes), tuple(features), notes, feature_ids=tuple(ids))
