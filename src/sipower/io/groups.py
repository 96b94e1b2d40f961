# SPDX-License-Identifier: BSD-3-Clause
"""`GroupedFile`: an open file of nested groups of arrays, HDF5 or Zarr, of which none is trusted.

Elements of such a file are those of h5py or zarr, which agree in most of what readers need: groups
have keys, arrays have a shape, both have `attrs` and a `name`. A subclass supplies the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sipower._files import shorten
from sipower.io.base import ReadError, check_size, report_damage
from sipower.io.sources import Compressed, Dense, Source


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

    @abstractmethod
    def check_place(self, *elements: Any) -> None:
        """Reject links to other files, so that opening one file never reads another."""

    @abstractmethod
    def stored_bytes(self, array: Any) -> int:
        """Return the number of bytes that the file has for an array, or for its group."""

    @abstractmethod
    def decode(self, array: Any) -> NDArray[Any]:
        """Read an array of texts or numbers."""

    def read_index(self, frame: Any) -> list[str]:
        """Read the names of the rows of a data frame."""
        self.check_place(frame)
        return self.texts(frame[frame.attrs["_index"]])

    def dataset(self, array: Any) -> Dataset:
        """Return an array that is read in parts."""
        return Dataset(self, array)

    def texts(self, element: Any) -> list[str]:
        """Read an array of texts without anndata, which would follow links to other files."""
        self.check_place(element)
        if hasattr(element, "shape"):
            size = self.path.stat().st_size if self.path.is_file() else self.stored_bytes(element)
            check_size(f"{self.path}, {element.name},", 8 * int(element.size or 0), size)
            return list(map(str, self.decode(element).ravel().tolist()))
        self.check_place(*(element[name] for name in element))
        encoding = str(element.attrs.get("encoding-type"))
        if encoding.startswith("nullable"):
            names, missing = self.texts(element["values"]), self.decode(element["mask"])
            return ["<NA>" if no else name for name, no in zip(names, missing, strict=True)]
        if encoding != "categorical":
            raise ValueError(f"{element.name} holds no names")  # e.g. a link to the root group
        names, codes = self.texts(element["categories"]), self.decode(element["codes"]).tolist()
        if any(code < -1 for code in codes):
            raise ValueError(f"{element.name} has codes below -1")
        return ["nan" if code == -1 else names[code] for code in codes]

    def matrix(self, element: Any) -> Source:
        """Open a dense or sparse matrix as anndata writes it."""
        if hasattr(element, "shape"):
            return Dense(self.path, self.dataset(element))
        # Files of anndata before 0.7 have the older attributes.
        attributes = element.attrs
        kind = str(attributes.get("encoding-type", attributes.get("h5sparse_format", "")))[:3]
        shape = attributes.get("shape", attributes.get("h5sparse_shape"))
        if kind not in ("csr", "csc") or shape is None:
            raise ReadError(f"{self.path}, {element.name}, is not a matrix that sipower can read.")
        return self.compressed(element, shape, by_columns=kind == "csc")

    def compressed(self, group: Any, shape: Any, *, by_columns: bool = False) -> Compressed:
        """Open a group of data, indices and indptr."""
        data, indices, starts = (self.dataset(group[n]) for n in ("data", "indices", "indptr"))
        sizes = self.read_shape(shape)
        return Compressed(self.path, data, indices, starts[()], sizes, by_columns)

    def read_shape(self, shape: Any) -> tuple[int, int]:
        """Return the shape of a matrix, which must be two integers."""
        sizes = np.asarray(shape).ravel()
        if len(sizes) != 2 or sizes.dtype.kind not in "iu":
            raise ReadError(
                f"{self.path} is damaged: the shape of its matrix is {shorten(repr(shape))}."
            )
        return int(sizes[0]), int(sizes[1])


class Dataset:
    """An array in a file, read when it is indexed; damage raises `ReadError`."""

    def __init__(self, file: GroupedFile, array: Any) -> None:
        file.check_place(array)
        declared = int(array.size or 0) * array.dtype.itemsize
        check_size(f"{file.path}, {array.name},", declared, file.stored_bytes(array))
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
