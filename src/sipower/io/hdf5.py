# SPDX-License-Identifier: BSD-3-Clause
"""HDF5 files of single cells: the matrices of 10x Genomics (.h5) and AnnData (.h5ad)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.io.counts import Compressed, Dense, affordable
from sipower.io.streams import Source, Stream
from sipower.io.table import ReadError, library, shown
from sipower.io.tenx import kinds_remark, told_apart
from sipower.io.texts import own, texts_of

__all__ = ["open_hdf5"]

_COMPRESSED = ("data", "indices", "indptr")


@contextmanager
def open_hdf5(path: Path, layer: str | None = None) -> Iterator[Stream]:
    """Open an AnnData file, its X or a layer, or a matrix of 10x; what it is its content says.

    In AnnData files samples are obs and features var. In those of 10x, of the layout before or
    since Cell Ranger 3, samples are barcodes and features are named by gene.
    """
    h5py = library("h5py", path)
    with ExitStack() as stack:
        with _sound(path):
            file = stack.enter_context(h5py.File(path, "r"))
            stream = _stream(path, file, layer)
        yield stream


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Say in one sentence that a file is damaged."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about old layouts, which the reader cannot mend
            yield
    except (ReadError, MemoryError):
        raise
    # Damage makes the library raise nearly anything, from KeyError to RuntimeError.
    except Exception as problem:
        raise ReadError(f"{path} is damaged or no HDF5 file: {shown(problem)}.") from None


def _stream(path: Path, file: Any, layer: str | None) -> Stream:
    if "obs" in file and "var" in file:
        return _anndata(path, file, layer)
    if layer is not None:
        raise ReadError(f"{path} is no AnnData file and has no layer {layer!r}.")
    return _tenx(path, file)


# ---- AnnData -------------------------------------------------------------------------------------


def _anndata(path: Path, file: Any, layer: str | None) -> Stream:
    place = "X" if layer is None else f"layers/{layer}"
    if place not in file:
        layers = ", ".join(file.get("layers", ())) or "none"
        raise ReadError(f"{path} has no {place}: its layers are {shown(layers)}.")
    texts = texts_of(path, place, "obs", "var")
    source = _matrix(path, file[place], texts[""])
    for axis, size in zip(("obs", "var"), source.shape, strict=True):
        if len(texts[axis]) != size:
            raise ReadError(f"{path} is damaged: {axis} names {len(texts[axis])} of {size}.")
    return Stream(source, tuple(texts["obs"]), tuple(texts["var"]))


def _matrix(path: Path, element: Any, encoding: str) -> Source:
    if hasattr(element, "shape"):
        return Dense(path, _Numbers(path, element))
    # Files of anndata before 0.7 have the older attribute.
    shape = element.attrs.get("shape", element.attrs.get("h5sparse_shape"))
    kind = encoding[:3]
    if kind not in ("csr", "csc") or shape is None:
        raise ReadError(f"{path} holds in {element.name} no matrix that sipower reads.")
    return _compressed(path, element, shape, by_columns=kind == "csc")


# ---- 10x -----------------------------------------------------------------------------------------


def _tenx(path: Path, file: Any) -> Stream:
    groups = [group for group in file.values() if hasattr(group, "keys") and "barcodes" in group]
    if len(groups) != 1:
        raise ReadError(
            f"{path} has {len(groups)} matrices of 10x, expected one: {shown(', '.join(file))}."
        )
    group = groups[0]
    rows, columns = _shape(path, _Numbers(path, group["shape"])[()])
    # 10x stores features x barcodes column after column: that is barcodes x features by rows.
    source = _compressed(path, group, (columns, rows))
    genes = "features/name" if "features" in group else "gene_names"
    kinds = "features/feature_type" if "features/feature_type" in group else genes
    ids = next((name for name in ("features/id", "genes") if name in group), genes)
    places = [f"{group.name}/{name}" for name in ("barcodes", genes, kinds, ids)]
    texts = texts_of(path, group.name, *places)
    barcodes, names = (tuple(texts[place]) for place in places[:2])
    if (len(barcodes), len(names)) != source.shape or len(texts[places[3]]) != len(names):
        raise ReadError(
            f"{path} is damaged: {len(barcodes)} barcodes and {len(names)} features name a matrix "
            f"of {columns} x {rows}."
        )
    remarks = () if kinds == genes else kinds_remark(set(texts[places[2]]))
    return Stream(source, barcodes, told_apart(names, texts[places[3]]), remarks)


# ---- both ----------------------------------------------------------------------------------------


class _Numbers:
    """Numbers in a file, read when they are asked for; damage becomes one sentence."""

    def __init__(self, path: Path, dataset: Any) -> None:
        own(str(path), dataset)
        promised = int(dataset.size or 0) * dataset.dtype.itemsize
        affordable(f"{path}, {dataset.name},", promised, dataset.id.get_storage_size())
        self.path, self.dataset = path, dataset
        self.shape: tuple[int, ...] = dataset.shape or ()  # nothing at all has the shape None
        self.dtype = dataset.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: Any) -> NDArray[Any]:
        with _sound(self.path):
            return np.asarray(self.dataset[part])


def _compressed(path: Path, group: Any, shape: Any, *, by_columns: bool = False) -> Compressed:
    data, indices, starts = (_Numbers(path, group[name]) for name in _COMPRESSED)
    if any(len(part.shape) != 1 for part in (data, indices, starts)):
        raise ReadError(f"{path} is damaged: a part of its matrix is no list of numbers.")
    return Compressed(path, data, indices, starts[()], _shape(path, shape), by_columns)


def _shape(path: Path, shape: Any) -> tuple[int, int]:
    sizes = np.asarray(shape).ravel()
    if len(sizes) != 2 or sizes.dtype.kind not in "iu":
        raise ReadError(f"{path} is damaged: the shape of its matrix is {shown(repr(shape))}.")
    return int(sizes[0]), int(sizes[1])
