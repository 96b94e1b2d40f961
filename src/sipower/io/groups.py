# SPDX-License-Identifier: BSD-3-Clause
"""`GroupedFile`: an open file of nested groups of arrays, HDF5 or Zarr, of which none is trusted.

Elements of such a file are those of h5py or zarr, which agree in most of what readers need: groups
have keys, arrays have a shape, both have `attrs` and a `name`. A subclass supplies the rest.
Readers open elements with `member` alone, which looks at links before it follows them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower._files import shorten
from sipower.io.base import ReadError, check_size, report_damage
from sipower.io.sources import Compressed, Dense, Source

_CHUNKS_LOOKED_AT = 100  # of those that are missing


class GroupedFile(ABC):
    """An open file of nested groups of arrays.

    Parameters
    ----------
    path
        The file, or the folder of a Zarr file.
    root
        Its root group.
    """

    kind: ClassVar[str]  # the format in error messages

    def __init__(self, path: Path, root: Any) -> None:
        self.path, self.root = path, root
        self.remarks: list[str] = []  # about arrays that are not stored whole

    def member(self, group: Any, place: str) -> Any:
        """Open a member of a group; `place` can lead through groups, as in "layers/counts".

        A member that another file holds raises `ReadError`, and that file is not opened. A missing
        one raises KeyError.
        """
        for name in place.split("/"):
            group = self.child(group, name)
        return group

    def has(self, group: Any, place: str) -> bool:
        """Return whether a group has a member, of which the last part is not opened."""
        parents, _, name = place.rpartition("/")
        if parents and not self.has(group, parents):
            return False
        parent = self.member(group, parents) if parents else group
        return is_group(parent) and name in self.names(parent)

    @abstractmethod
    def child(self, group: Any, name: str) -> Any:
        """Open the member of a group with this name; see `member`."""

    @abstractmethod
    def names(self, group: Any) -> list[str]:
        """Return the names of all members of a group, none of which is opened."""

    @abstractmethod
    def missing_chunks(self, array: Any) -> Iterator[MissingChunk]:
        """Yield the chunks of an array that the file does not store."""

    @abstractmethod
    def stored_bytes(self, array: Any) -> int:
        """Return the number of bytes that the file has for an array, or for its group."""

    @abstractmethod
    def decode(self, array: Any) -> NDArray[Any]:
        """Read an array of texts or numbers."""

    def read_index(self, frame: Any) -> list[str]:
        """Read the names of the rows of a data frame."""
        return self.texts(self.member(frame, frame.attrs["_index"]), whole=True)

    def dataset(self, array: Any) -> Dataset:
        """Return an array that is read in parts."""
        return Dataset(self, array)

    def texts(self, element: Any, *, whole: bool = False) -> list[str]:
        """Read an array of texts without anndata, which would follow links to other files.

        `whole` means that no chunk can be missing, because texts such as names are not empty.
        """
        if hasattr(element, "shape"):
            self.check_chunks(element, whole=whole)
            size = self.path.stat().st_size if self.path.is_file() else self.stored_bytes(element)
            check_size(f"{self.path}, {shorten(element.name)},", 8 * int(element.size or 0), size)
            return list(map(str, self.decode(element).ravel().tolist()))
        encoding = str(element.attrs.get("encoding-type"))
        if encoding.startswith("nullable"):
            names = self.texts(self.member(element, "values"), whole=whole)
            missing = self.decode(self.member(element, "mask"))
            return ["<NA>" if no else name for name, no in zip(names, missing, strict=True)]
        if encoding != "categorical":
            raise ValueError(f"{element.name} holds no names")  # e.g. a link to the root group
        categories, numbers = (self.member(element, name) for name in ("categories", "codes"))
        names = self.texts(categories, whole=getattr(categories, "shape", None) != (1,))
        self.check_chunks(numbers, whole=whole)
        codes = self.decode(numbers).tolist()
        if any(code < -1 for code in codes):
            raise ValueError(f"{element.name} has codes below -1")
        return ["nan" if code == -1 else names[code] for code in codes]

    def matrix(self, element: Any) -> Source:
        """Open a dense or sparse matrix as anndata writes it."""
        if hasattr(element, "shape"):
            self.check_chunks(element, whole=False)
            return Dense(self.path, self.dataset(element))
        # Files of anndata before 0.7 have the older attributes.
        attributes = element.attrs
        kind = str(attributes.get("encoding-type", attributes.get("h5sparse_format", "")))[:3]
        shape = attributes.get("shape", attributes.get("h5sparse_shape"))
        if kind not in ("csr", "csc") or shape is None:
            raise ReadError(
                f"{self.path}, {shorten(element.name)}, is not a matrix that sipower can read."
            )
        return self.compressed(element, shape, by_columns=kind == "csc")

    def compressed(self, group: Any, shape: Any, *, by_columns: bool = False) -> Compressed:
        """Open a group of data, indices and indptr."""
        parts = [self.member(group, name) for name in ("data", "indices", "indptr")]
        data, indices, starts = map(self.dataset, parts)
        self.check_chunks(parts[0], whole=True)
        if len(data):  # else all rows start at 0
            self.check_chunks(parts[2], whole=True)
        indptr = starts[()]
        matrix = Compressed(self.path, data, indices, indptr, self.read_shape(shape), by_columns)
        for chunk in islice(self.missing_chunks(parts[1]), _CHUNKS_LOOKED_AT):
            # Its indices would be 0, and a row has each index only once.
            if np.diff(np.clip(indptr, chunk.begin, chunk.end)).max() > 1:
                raise self.lost_chunk_error(parts[1], chunk)
        self.check_chunks(parts[1], whole=False)
        return matrix

    # ---- chunks that are not stored --------------------------------------------------------------

    def check_chunks(self, array: Any, *, whole: bool) -> None:
        """Look for missing chunks: an error if the array has no chunk of zeros, else a remark."""
        chunk = next(self.missing_chunks(array), None)
        if chunk is None:
            return
        if whole:
            raise self.lost_chunk_error(array, chunk)
        self.remarks.append(
            f"{self.path.name} does not store the chunk {chunk.name} of {shorten(array.name)}, "
            f"among {chunk.missing:,} of {chunk.chunks:,}: they were read as zeros or as empty "
            "texts. Zarr leaves out such chunks, so chunks that were lost would look the same."
        )

    def lost_chunk_error(self, array: Any, chunk: MissingChunk) -> ReadError:
        """Return the error about a chunk that is missing."""
        return ReadError(
            f"{self.path} is damaged: the chunk {chunk.name} of {shorten(array.name)} is missing; "
            "copy or download it again."
        )

    def read_shape(self, shape: Any) -> tuple[int, int]:
        """Return the shape of a matrix, which must be two integers."""
        sizes = np.asarray(shape).ravel()
        if len(sizes) != 2 or sizes.dtype.kind not in "iu":
            raise ReadError(
                f"{self.path} is damaged: the shape of its matrix is {shorten(repr(shape))}."
            )
        return int(sizes[0]), int(sizes[1])


def link_error(path: Path, name: str) -> ReadError:
    """Return the error about an element that another file holds."""
    return ReadError(
        f"{path}: another file holds {shorten(name)}, and a link to it is not followed; write its "
        "content into this file."
    )


def is_group(element: Any) -> bool:
    """Return whether an element of a file is a group."""
    return hasattr(element, "keys") and not hasattr(element, "shape")


class MissingChunk(NamedTuple):
    """A chunk of an array that the file does not store.

    `begin` and `end` are its items along the first axis. `missing` and `chunks` are the numbers of
    chunks that are missing and of all chunks of the array.
    """

    name: str
    begin: int
    end: int
    missing: int
    chunks: int


class Dataset:
    """An array in a file, read when it is indexed; damage raises `ReadError`."""

    def __init__(self, file: GroupedFile, array: Any) -> None:
        declared = int(array.size or 0) * array.dtype.itemsize
        check_size(f"{file.path}, {shorten(array.name)},", declared, file.stored_bytes(array))
        self.file, self.array, self.dtype = file, array, array.dtype
        self.shape: tuple[int, ...] = array.shape or ()  # an empty dataset has the shape None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: Any) -> NDArray[Any]:
        with report_damage(self.file.path, self.file.kind):
            return np.asarray(self.array[part])

    def read_into(self, out: NDArray[Any], part: slice) -> None:
        """Fill `out` with a part of a one-dimensional array, converted to its dtype."""
        with report_damage(self.file.path, self.file.kind):
            if hasattr(self.array, "read_direct"):  # h5py, without a copy
                self.array.read_direct(out, part)
            else:
                out[:] = self.array[part]
