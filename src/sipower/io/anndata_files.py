# SPDX-License-Identifier: BSD-3-Clause
"""The matrix, names and columns of an AnnData file, in HDF5 (.h5ad) or Zarr."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from sipower._files import quote, shorten
from sipower.data.plausibility import ValueOrigin, anndata_origin
from sipower.io.base import MissingLayerError, ReadError
from sipower.io.groups import GroupedFile, is_group
from sipower.io.sources import OpenCounts

# Columns of var in which scanpy, CELLxGENE and others keep the ids of the features.
_ID_COLUMNS = ("gene_ids", "gene_id", "feature_id", "feature_ids", "ensembl_id", "ensembl_ids")
_VALUES_LOOKED_AT = 2**16  # of another layer


def is_anndata(file: GroupedFile) -> bool:
    """Return whether a file was written by anndata, whatever its name."""
    return file.has(file.root, "obs") and file.has(file.root, "var")


def open_anndata(file: GroupedFile, layer: str | None) -> OpenCounts:
    """Open X, a layer or .raw (the layer "raw"); samples are obs, features are var."""
    path, root = file.path, file.root
    place, var = "X" if layer is None else f"layers/{layer}", "var"
    if place == "layers/raw" and not file.has(root, place) and _has_raw(file):
        place, var = "raw/X", "raw/var"
    if not file.has(root, place):
        layers = ", ".join([*_names(file, "layers"), *(["raw"] if _has_raw(file) else [])])
        raise MissingLayerError(
            f"{path} has no {shorten(place)}: its layers are {shorten(layers or 'none')}."
        )
    source = file.matrix(file.member(root, place))
    samples, features = (tuple(file.read_index(file.member(root, axis))) for axis in ("obs", var))
    if (len(samples), len(features)) != source.shape:
        raise ReadError(
            f"{path} is damaged: obs and var have {len(samples)} and {len(features)} names for a "
            f"matrix of {source.shape[0]} x {source.shape[1]}."
        )
    ids = _read_ids(file, file.member(root, var), len(features))
    notes = tuple(file.remarks)
    return OpenCounts(
        source, samples, features, notes, feature_ids=ids, origin=_origin(file, layer)
    )


def read_column_texts(file: GroupedFile, axis: str, name: str) -> tuple[str, ...]:
    """Read a column of obs, var or raw/var as texts, one for each item."""
    if not file.has(file.root, axis):
        raise ReadError(f"{file.path} is not an AnnData file with {axis}, so it has no columns.")
    frame = file.member(file.root, axis)
    members = file.names(frame) if is_group(frame) else []
    columns = [key for key in members if key != frame.attrs["_index"]]
    if name not in columns:
        raise ReadError(
            f"{file.path} has no column {quote(name)} in {axis}, which has: "
            f"{shorten(', '.join(columns)) or 'none'}."
        )
    return tuple(file.texts(file.member(frame, name)))


def _has_raw(file: GroupedFile) -> bool:
    with suppress(ReadError):  # if another file holds it, it is not read
        return file.has(file.root, "raw/X")
    return False


def _names(file: GroupedFile, place: str) -> list[str]:
    """Return the names of the members of a group; none if another file holds it."""
    with suppress(ReadError, KeyError):
        group = file.member(file.root, place)
        return file.names(group) if is_group(group) else []
    return []


def _read_ids(file: GroupedFile, var: Any, count: int) -> tuple[str, ...] | None:
    """Read the ids of the features, or return None if var has no column of them."""
    column = next((name for name in _ID_COLUMNS if is_group(var) and file.has(var, name)), None)
    ids = [] if column is None else file.texts(file.member(var, column))
    return tuple(ids) if len(ids) == count else None


def _origin(file: GroupedFile, layer: str | None) -> ValueOrigin:
    """Return what the file says about its values, and where it has counts."""
    layers, uns = (_names(file, name) for name in ("layers", "uns"))
    others = {name: f"layers/{name}" for name in layers if name != layer}
    if layer != "raw" and _has_raw(file):
        others.setdefault("raw", "raw/X")
    values = {}
    for name, place in others.items():
        with suppress(Exception):  # damage there concerns nobody who does not read it
            values[name] = _first_values(file, file.member(file.root, place))
    is_log = layer is None and "log1p" in uns
    return anndata_origin("file", layer, values, is_log=is_log)


def _first_values(file: GroupedFile, element: Any) -> NDArray[Any]:
    """Read the first values of a matrix."""
    if not hasattr(element, "shape"):
        return file.dataset(file.member(element, "data"))[:_VALUES_LOOKED_AT]
    rows = max(1, _VALUES_LOOKED_AT // max(1, element.shape[1]))
    return file.dataset(element)[:rows]
