# SPDX-License-Identifier: BSD-3-Clause
"""Reader of AnnData files in Zarr, formats 2 and 3: folders that by convention end in .zarr."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower._files import check_regular
from sipower.io.anndata_files import is_anndata, open_anndata
from sipower.io.base import ReadError, check_size, import_library, report_damage
from sipower.io.groups import GroupedFile, MissingChunk, link_error
from sipower.io.sources import OpenCounts

_MARKS = ("zarr.json", ".zgroup")  # of which one is in the folder of a group
_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
_NUMBER = re.compile(r"[0-9]+")
_BLOSC_HEADER = 16  # bytes, of which the last four are the size of the chunk
_SPARSE = ("data", "indices", "indptr")
# Codecs that only decode bytes. Others may run code: `pickle` loads objects.
_CODECS = {
    "blosc", "bytes", "bz2", "crc32c", "delta", "gzip", "lz4", "lzma", "sharding_indexed",
    "shuffle", "transpose", "vlen-bytes", "vlen-utf8", "zlib", "zstd",
}  # fmt: skip


class ZarrFile(GroupedFile):
    """An open Zarr folder."""

    kind = "a Zarr file"

    def child(self, group: Any, name: str) -> Any:
        """Open a member of a group; see `member`."""
        folder = self._folder(group) / name
        if name in ("", ".", "..") or folder.name != name:
            raise link_error(self.path, name)
        if not os.path.lexists(folder):
            raise KeyError(f"{group.name} has no {name}")
        _check_metadata(self.path, folder)
        element = group[name]
        if hasattr(element, "shape"):
            self._check_array(element, folder)
        return element

    def names(self, group: Any) -> list[str]:
        """Return the names of all members of a group, none of which is opened."""
        with os.scandir(self._folder(group)) as entries:
            return sorted(e.name for e in entries if not e.is_file(follow_symlinks=False))

    def missing_chunks(self, array: Any) -> Iterator[MissingChunk]:
        """Yield the chunks of an array, or its shards, that have no file."""
        folder, size = self._folder(array), array.shards or array.chunks
        counts = [-(-n // step) for n, step in zip(array.shape, size, strict=True)]
        total, encode = math.prod(counts), array.metadata.encode_chunk_key
        stored = set()
        for entry in _entries(folder):
            key = entry.path[len(str(folder)) + 1 :].replace(os.sep, "/")
            place = tuple(map(int, _NUMBER.findall(key)))
            if len(place) == len(counts) and key == encode(place):
                stored.add(place)
        missing = total - sum(all(map(operator.lt, place, counts)) for place in stored)
        for place in product(*map(range, counts)) if counts and missing else ():
            if place not in stored:
                begin = place[0] * size[0]
                yield MissingChunk(encode(place), begin, begin + size[0], missing, total)

    def _check_array(self, array: Any, folder: Path) -> None:
        codecs = list(_codec_names(array.metadata.to_dict()))
        for codec in codecs:
            if codec not in _CODECS or {codec, *codecs} >= {"blosc", "sharding_indexed"}:
                raise ReadError(
                    f"{self.path}, {array.name}, uses the codec {codec!r}, which sipower does not "
                    "read: write it again with anndata."
                )
        for place in _entries(folder):
            if place.is_symlink():
                raise link_error(self.path, array.name)
            if not place.is_file() and not place.is_dir():
                _check_file(place)
            if "blosc" in codecs and place.is_file() and not place.name.endswith(_METADATA):
                _check_blosc(place)
        chunk = math.prod(array.chunks) * array.dtype.itemsize
        check_size(f"{self.path}, {array.name}, in a chunk", chunk, self.stored_bytes(array))

    def stored_bytes(self, array: Any) -> int:
        """Return the number of bytes of an array, or of all arrays of its sparse matrix.

        Equal values compress to next to nothing, but the indices of a sparse matrix do not.
        """
        folder = self._folder(array)
        folder = folder.parent if folder.name in _SPARSE else folder
        return sum(entry.stat().st_size for entry in _entries(folder) if entry.is_file())

    def decode(self, array: Any) -> NDArray[Any]:
        """Read an array of texts or numbers."""
        content = np.asarray(array[...])
        return np.char.decode(content, "utf-8") if content.dtype.kind == "S" else content

    def _folder(self, element: Any) -> Path:
        return self.path / str(element.path)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield all files and folders below a folder."""
    for parent, *_ in os.walk(folder):
        with os.scandir(parent) as entries:
            yield from entries


def _check_metadata(path: Path, folder: Path) -> None:
    """Reject the folder of an element if it or its metadata are links or no regular files.

    `path` is the folder of the whole file, which itself may be a link.
    """
    for place in (folder, *(folder / name for name in _METADATA)):
        if place.is_symlink() and place != path:
            raise link_error(path, str(place.relative_to(path)))
        if place != folder and place.exists():
            _check_file(place)


def _check_file(place: os.PathLike[str]) -> None:
    try:
        check_regular(place)
    except OSError as problem:
        raise ReadError(f"{os.fspath(place)} cannot be read: {problem.strerror}.") from None


def _check_blosc(chunk: os.DirEntry[str]) -> None:
    """Reject an incomplete chunk, beyond whose end blosc would read."""
    with open(chunk.path, "rb") as file:
        header = file.read(_BLOSC_HEADER)
    size = int.from_bytes(header[12:], "little")
    if len(header) != _BLOSC_HEADER or size != chunk.stat().st_size:
        raise ValueError(f"the chunk {chunk.name} is incomplete")


def _codec_names(metadata: Any) -> Iterator[str]:
    """Yield the names of all codecs in the metadata of an array, those of shards included."""
    lists = [metadata.get(key) for key in ("codecs", "filters", "index_codecs")]
    lists.append([metadata.get("compressor")])
    for codec in (codec for codecs in lists for codec in codecs or () if codec is not None):
        settings = codec if isinstance(codec, dict) else codec.get_config()
        yield str(settings.get("name", settings.get("id"))).removeprefix("numcodecs.")
        yield from _codec_names(settings.get("configuration") or {})


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a Zarr group."""
    return path.is_dir() and any((path / mark).is_file() for mark in _MARKS)


@contextmanager
def open_zarr_file(path: Path) -> Iterator[ZarrFile]:
    """Open a Zarr folder."""
    zarr = import_library("zarr", path)
    with report_damage(path, ZarrFile.kind):
        _check_metadata(path, path)
        root = zarr.open_group(path, mode="r", use_consolidated=False)
    yield ZarrFile(path, root)


@contextmanager
def open_zarr(path: Path, layer: str | None = None) -> Iterator[OpenCounts]:
    """Open X, a layer or .raw (the layer "raw") of an AnnData file in Zarr."""
    with open_zarr_file(path) as file:
        with report_damage(path, file.kind):
            if not is_anndata(file):
                raise ReadError(
                    f"{path} is not an AnnData file: it must have the groups obs and var."
                )
            stream = open_anndata(file, layer)
        yield stream
