# SPDX-License-Identifier: BSD-3-Clause
"""Damage to a file that reaches its parser: inside archives, behind sums, in heads and in numbers.

`damaged(name, content, source)` chooses by the ending of the name. A container is opened, one of
its parts is damaged as a file of its own, and all is packed again.
"""

from __future__ import annotations

import ast
import gzip
import io
import struct
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pandas as pd
from strange import ARRAYS, DESCRIPTIONS, NUMBERS, SHAPES, column
from text_mutations import Source, document, other_bytes, text

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def damaged(name: str, content: bytes, source: Source) -> bytes:
    """Return another content for a file, from nearly right to nonsense."""
    ending = name.rpartition(".")[2]
    # HDF5 with wrong bytes may never end: it is read by a process with limits, of which
    # tests/io/test_corruption.py tries thousands; here it is read in this one.
    if source.random() < 0.1 and not content.startswith(b"\x89HDF"):
        return other_bytes(content, source)
    return (
        _DAMAGES.get(ending, text)(content, source)
        if ending != "gz"
        else gzip.compress(
            damaged(name.removesuffix(".gz"), gzip.decompress(content), source), 1, mtime=0
        )
    )


# ---- NumPy ---------------------------------------------------------------------------------------


def array(content: bytes, source: Source) -> bytes:
    """Change the head of a .npy file, or its numbers with or without the head."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    (size,) = struct.unpack("<H", stream.read(2))
    head, body = stream.read(size), stream.read()
    if body.startswith(b'{"') and source.random() < 0.9:
        return _saved(np.frombuffer(document(body, source), np.uint8))
    match source.randrange(6):
        case 0 | 1:
            return _headed(version, _other_head(head, body, source), body)
        case 2:
            return _headed(version, text(head, source), body)
        case 3:
            return _saved(source.choice(ARRAYS))
        case 4:
            return content[: -len(body) or None] + other_bytes(body, source)
    kind = ast.literal_eval(head.decode())["descr"]
    return content[: -len(body) or None] + _with_another_number(np.frombuffer(body, kind), source)


def _with_another_number(numbers: np.ndarray, source: Source) -> bytes:
    if numbers.size == 0 or numbers.dtype.kind not in "iuf":
        return numbers.tobytes()
    numbers = numbers.copy()
    for _ in range(source.choice((1, 1, 3))):
        number = source.choice((*NUMBERS, float("nan"), float("inf"), 1e300, 5e-324, -0.5))
        with np.errstate(all="ignore"):
            numbers[source.randrange(numbers.size)] = np.array(number).astype(numbers.dtype)
    return numbers.tobytes()


def _other_head(head: bytes, body: bytes, source: Source) -> bytes:
    facts = ast.literal_eval(head.decode())
    match source.randrange(4):
        case 0:
            facts["descr"] = source.choice(DESCRIPTIONS)
        case 1:
            facts["shape"] = source.choice(SHAPES)
        case 2:  # as many numbers as there are, in another shape
            count = len(body) // np.dtype(facts["descr"]).itemsize
            facts["shape"] = source.choice(((-1, -count), (count, 1, 1), (1, count), (count,)))
        case 3:
            facts["fortran_order"] = source.choice((True, 1, None))
    return repr(facts).encode() + b"\n"


def _headed(version: tuple[int, int], head: bytes, body: bytes) -> bytes:
    return np.lib.format.magic(*version) + struct.pack("<H", len(head) & 0xFFFF) + head + body


def _saved(numbers: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, numbers, allow_pickle=True)
    return stream.getvalue()


def archive(content: bytes, source: Source) -> bytes:
    """Damage a member of an archive, or its name, and pack all again."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        members = [(name, packed.read(name)) for name in packed.namelist()]
    at = source.randrange(len(members))
    name, member = members[at]
    match source.randrange(10):
        case 0:
            del members[at]
        case 1:
            members[at] = source.choice((name.removesuffix(".npy"), "../x.npy", "é", "")), member
        case 2:
            members.append((source.choice(members)[0], member))
        case _:
            members[at] = name, damaged(name, member, source)
    stream = io.BytesIO()
    with (
        warnings.catch_warnings(),
        zipfile.ZipFile(stream, "w", source.choice(_PACKINGS)) as packed,
    ):
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, member in members:
            packed.writestr(zipfile.ZipInfo(name), member, packed.compression)
    return other_bytes(stream.getvalue(), source) if source.random() < 0.2 else stream.getvalue()


# ---- HDF5 and parquet ----------------------------------------------------------------------------


def hierarchy(content: bytes, source: Source) -> bytes:
    """Replace an element of an HDF5 file by another; the file itself stays sound.

    Bytes at random are for a process of its own: HDF5 can crash on them.
    """
    stream = io.BytesIO(content)
    with h5py.File(stream, "r+") as file:
        places: list[str] = []
        file.visit(places.append)
        place = source.choice(places)
        if source.random() < 0.3:
            _other_attribute(file[place].attrs, source)
        else:
            _other_element(file, place, source)
    return stream.getvalue()


def _other_attribute(attributes: Any, source: Source) -> None:
    name = source.choice([*attributes, "shape", "encoding-type", "_index"])
    if name in attributes:
        del attributes[name]
    match source.randrange(3):
        case 0:
            attributes[name] = source.choice(("csr_matrix", "csc", "", "array", "_index", "é"))
        case 1:
            attributes[name] = np.array(source.choice((*NUMBERS, 12, 9)), np.int64).repeat(2)


def _other_element(file: Any, place: str, source: Source) -> None:
    element = file[place]
    good = element[()] if hasattr(element, "shape") else None
    del file[place]
    match source.randrange(8):
        case 0:
            file.create_group(place)
        case 1:
            file[place] = h5py.SoftLink(source.choice(("/nowhere", f"/{place}", "/")))
        case 2:
            file[place] = h5py.Empty(source.choice(("f4", "i8")))
        case 3:
            size = source.choice(((10**6, 10**6), (10**12,), (0, 5), (0,)))
            file.create_dataset(place, size, "f4", chunks=True)
        case 4:
            texts = ["a", "é", "", "b\n"] * 3
            file.create_dataset(
                place, data=texts[: source.randrange(13)], dtype=h5py.string_dtype()
            )
        case 5 | 6 if good is not None and np.asarray(good).dtype.kind in "iuf":
            raw = _with_another_number(np.ravel(good), source)
            file[place] = np.frombuffer(raw, good.dtype).reshape(good.shape)
        case _:
            strange = source.choice([a for a in ARRAYS if a.dtype.kind in "biufcSV" and a.size])
            file[place] = strange


def table(content: bytes, source: Source) -> bytes:
    """Replace columns of a parquet file by strange ones of the same length."""
    if source.random() < 0.3:
        return other_bytes(content, source)
    frame = pd.read_parquet(io.BytesIO(content))
    for _ in range(source.choice((1, 1, 2))):
        at = source.randrange(frame.shape[1] + 1)
        strange = column(len(frame), source)
        if at == frame.shape[1]:
            frame.index = pd.Index(strange, dtype=object)
        else:
            frame.isetitem(at, strange)
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


_DAMAGES: dict[str, Callable[[bytes, Source], bytes]] = {
    "json": document,
    "npy": array,
    "npz": archive,
    "h5": hierarchy,
    "h5ad": hierarchy,
    "parquet": table,
}
