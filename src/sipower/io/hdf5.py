# SPDX-License-Identifier: BSD-3-Clause
"""Readers of single-cell HDF5 files: AnnData (.h5ad) and 10x Genomics (.h5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import shorten
from sipower.data.plausibility import ValueOrigin, anndata_origin
from sipower.io.base import ReadError, check_size, import_library, report_damage
from sipower.io.sources import Compressed, Dense, OpenCounts, Source
from sipower.io.tenx import feature_type_remark

_KIND = "an HDF5 file"
# Columns of var in which scanpy, CELLxGENE and others keep the ids of the features.
_ID_COLUMNS = ("gene_ids", "gene_id", "feature_id", "feature_ids", "ensembl_id", "ensembl_ids")
_VALUES_LOOKED_AT = 2**16  # of another layer


@contextmanager
def open_hdf5(path: Path, layer: str | None = None) -> Iterator[OpenCounts]:
    """Open X, a layer or .raw (the layer "raw") of an AnnData file, or the matrix of a 10x file.

    The content of the file, not its name, decides which of the two it is.

    In AnnData files the samples are obs and the features are var. In 10x files, written by any
    version of Cell Ranger, the samples are barcodes and the features are named by gene.
    """
    h5py = import_library("h5py", path)
    with ExitStack() as stack:
        with report_damage(path, _KIND):
            file = stack.enter_context(h5py.File(path, "r"))
            if "obs" in file and "var" in file:
                stream = _open_anndata(path, file, layer)
            elif layer is not None:
                raise ReadError(f"{path} is not an AnnData file and has no layer {layer!r}.")
            else:
                stream = _open_tenx(path, file)
        yield stream


# ---- AnnData -------------------------------------------------------------------------------------


def _open_anndata(path: Path, file: Any, layer: str | None) -> OpenCounts:
    place, var = "X" if layer is None else f"layers/{layer}", "var"
    if place == "layers/raw" and place not in file and "raw/X" in file:
        place, var = "raw/X", "raw/var"
    if place not in file:
        layers = ", ".join([*file.get("layers", ()), *(["raw"] if "raw/X" in file else [])])
        raise ReadError(f"{path} has no {place}: its layers are {shorten(layers or 'none')}.")
    source = _open_matrix(path, file[place])
    samples, features = (tuple(_read_index(path, file[axis])) for axis in ("obs", var))
    if (len(samples), len(features)) != source.shape:
        raise ReadError(
            f"{path} is damaged: obs and var have {len(samples)} and {len(features)} names for a "
            f"matrix of {source.shape[0]} x {source.shape[1]}."
        )
    ids, origin = _read_ids(path, file[var], len(features)), _origin(path, file, layer)
    return OpenCounts(source, samples, features, feature_ids=ids, origin=origin)


def read_column(path: Path, axis: str, name: str) -> tuple[str, ...]:
    """Read a column of obs, var or raw/var of an AnnData file as texts, one for each item."""
    h5py = import_library("h5py", path)
    with report_damage(path, _KIND), h5py.File(path, "r") as file:
        if axis not in file:
            raise ReadError(f"{path} is not an AnnData file with {axis}, so it has no columns.")
        frame = file[axis]
        columns = [key for key in getattr(frame, "keys", list)() if key != frame.attrs["_index"]]
        if name not in columns:
            raise ReadError(
                f"{path} has no column {shorten(name)!r} in {axis}, which has: "
                f"{shorten(', '.join(columns)) or 'none'}."
            )
        return tuple(_read_texts(path, frame[name]))


def _read_ids(path: Path, var: Any, count: int) -> tuple[str, ...] | None:
    """Read the ids of the features, or return None if var has no column of them."""
    column = next((name for name in _ID_COLUMNS if hasattr(var, "keys") and name in var), None)
    ids = [] if column is None else _read_texts(path, var[column])
    return tuple(ids) if len(ids) == count else None


def _origin(path: Path, file: Any, layer: str | None) -> ValueOrigin:
    """Return what the file says about its values, and where it has counts."""
    groups = {name: file.get(name) for name in ("layers", "uns")}
    layers, uns = ([*group] if hasattr(group, "keys") else [] for group in groups.values())
    others = {name: f"layers/{name}" for name in layers if name != layer}
    if layer != "raw" and "raw/X" in file:
        others.setdefault("raw", "raw/X")
    values = {}
    for name, place in others.items():
        with suppress(Exception):  # damage there concerns nobody who does not read it
            values[name] = _first_values(path, file[place])
    is_log = layer is None and "log1p" in uns
    return anndata_origin("file", layer, values, is_log=is_log)


def _first_values(path: Path, element: Any) -> NDArray[Any]:
    """Read the first values of a matrix."""
    if not hasattr(element, "shape"):
        return _Dataset(path, element["data"])[:_VALUES_LOOKED_AT]
    rows = max(1, _VALUES_LOOKED_AT // max(1, element.shape[1]))
    return _Dataset(path, element)[:rows]


def _open_matrix(path: Path, element: Any) -> Source:
    if hasattr(element, "shape"):
        return Dense(path, _Dataset(path, element))
    # Files of anndata before 0.7 have the older attributes.
    kind = str(element.attrs.get("encoding-type", element.attrs.get("h5sparse_format", "")))[:3]
    shape = element.attrs.get("shape", element.attrs.get("h5sparse_shape"))
    if kind not in ("csr", "csc") or shape is None:
        raise ReadError(f"{path}, {element.name}, is not a matrix that sipower can read.")
    return _open_compressed(path, element, shape, by_columns=kind == "csc")


def _read_index(path: Path, element: Any) -> list[str]:
    """Read the names of obs or var."""
    _check_same_file(path, element)
    if getattr(getattr(element, "dtype", None), "names", None):  # a table of anndata before 0.7
        return list(map(str, import_library("anndata.io", path).read_elem(element).index))
    return _read_texts(path, element[element.attrs["_index"]])


# ---- 10x -----------------------------------------------------------------------------------------


def _open_tenx(path: Path, file: Any) -> OpenCounts:
    groups = [group for group in file.values() if hasattr(group, "keys") and "barcodes" in group]
    if len(groups) != 1:
        raise ReadError(
            f"{path} has {len(groups)} 10x matrices, expected one; it holds: "
            f"{shorten(', '.join(file))}."
        )
    group = groups[0]
    rows, columns = _read_shape(path, _Dataset(path, group["shape"])[()])
    # 10x stores features x barcodes by column, which is the same as barcodes x features by row.
    source = _open_compressed(path, group, (columns, rows))
    genes = "features/name" if "features" in group else "gene_names"
    key = next((name for name in ("features/id", "genes") if name in group), genes)
    barcodes, names, ids = (_read_texts(path, group[name]) for name in ("barcodes", genes, key))
    if (len(barcodes), len(names)) != source.shape or len(ids) != len(names):
        raise ReadError(
            f"{path} is damaged: it has {len(barcodes)} barcodes and {len(names)} features for a "
            f"matrix of {columns} x {rows}."
        )
    types = set()
    if "features/feature_type" in group:
        types = set(_read_texts(path, group["features/feature_type"]))
    notes = feature_type_remark(types)
    return OpenCounts(source, tuple(barcodes), tuple(names), notes, feature_ids=tuple(ids))


# ---- both ----------------------------------------------------------------------------------------


class _Dataset:
    """An array in a file, read when it is indexed; damage raises `ReadError`."""

    def __init__(self, path: Path, dataset: Any) -> None:
        _check_same_file(path, dataset)
        declared = int(dataset.size or 0) * dataset.dtype.itemsize
        check_size(f"{path}, {dataset.name},", declared, dataset.id.get_storage_size())
        self.path, self.dataset, self.dtype = path, dataset, dataset.dtype
        self.shape: tuple[int, ...] = dataset.shape or ()  # an empty dataset has the shape None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: Any) -> NDArray[Any]:
        with report_damage(self.path, _KIND):
            return np.asarray(self.dataset[part])


def _check_same_file(path: Path, *elements: Any) -> None:
    """Reject links to other files, so that opening one file never reads another."""
    for element in elements:
        elsewhere = getattr(element, "external", None) or getattr(element, "is_virtual", False)
        if elsewhere or element.file.filename != str(path):
            raise ValueError(f"another file holds {element.name}")  # `report_damage` shortens it


def _read_texts(path: Path, element: Any) -> list[str]:
    """Read an array of texts without anndata, which would follow links to other files."""
    _check_same_file(path, element)
    if hasattr(element, "shape"):
        check_size(f"{path}, {element.name},", 8 * int(element.size or 0), path.stat().st_size)
        content = element.asstr()[()] if element.dtype.kind in "OS" else element[()]
        return list(map(str, content.ravel().tolist()))
    _check_same_file(path, *element.values())
    encoding = str(element.attrs.get("encoding-type"))
    if encoding.startswith("nullable"):
        names, missing = _read_texts(path, element["values"]), element["mask"][()]
        return ["<NA>" if no else name for name, no in zip(names, missing, strict=True)]
    if encoding != "categorical":
        raise ValueError(f"{element.name} holds no names")  # e.g. a link to the root group
    names, codes = _read_texts(path, element["categories"]), element["codes"][()].tolist()
    if any(code < -1 for code in codes):
        raise ValueError(f"{element.name} has codes below -1")
    return ["nan" if code == -1 else names[code] for code in codes]


def _open_compressed(path: Path, group: Any, shape: Any, *, by_columns: bool = False) -> Compressed:
    data, indices, starts = (_Dataset(path, group[n]) for n in ("data", "indices", "indptr"))
    return Compressed(path, data, indices, starts[()], _read_shape(path, shape), by_columns)


def _read_shape(path: Path, shape: Any) -> tuple[int, int]:
    sizes = np.asarray(shape).ravel()
    if len(sizes) != 2 or sizes.dtype.kind not in "iu":
        raise ReadError(f"{path} is damaged: the shape of its matrix is {shorten(repr(shape))}.")
    return int(sizes[0]), int(sizes[1])
