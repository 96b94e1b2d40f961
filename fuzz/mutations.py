# SPDX-License-Identifier: BSD-3-Clause
"""Damage to files that reaches their parsers: inside of archives, in headers and in numbers.

`damage_file(name, content, source)` chooses by the ending of the name. A container is opened, one
of its members is damaged like a file, and all are packed again.
"""

from __future__ import annotations

import ast
import gzip
import io
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pandas as pd
from strange_values import ARRAYS, DESCRIPTIONS, NUMBERS, SHAPES, draw_column
from text_mutations import Source, damage_bytes, damage_json, damage_text

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def damage_file(name: str, content: bytes, source: Source) -> bytes:
    """Return other content for a file, from nearly valid to nonsense."""
    ending = name.rpartition(".")[2]
    # Reading HDF5 with wrong bytes may crash or never end, so its bytes are not changed here.
    if source.random() < 0.1 and not content.startswith(b"\x89HDF"):
        return damage_bytes(content, source)
    if ending == "gz":
        inside = damage_file(name.removesuffix(".gz"), gzip.decompress(content), source)
        return gzip.compress(inside, 1, mtime=0)
    if ending in ("zarray", "zattrs", "zgroup", "zmetadata"):
        return damage_json(content, source)
    if "." not in name.rpartition("/")[2] or re.fullmatch(r"[0-9.]+", name.rpartition("/")[2]):
        return damage_bytes(content, source)  # a chunk of Zarr
    return _DAMAGES.get(ending, damage_text)(content, source)


# ---- NumPy ---------------------------------------------------------------------------------------


def damage_npy(content: bytes, source: Source) -> bytes:
    """Change the header of a .npy file, its numbers, or both."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    (size,) = struct.unpack("<H", stream.read(2))
    header, body = stream.read(size), stream.read()
    if body.startswith(b'{"') and source.random() < 0.9:
        return _save_array(np.frombuffer(damage_json(body, source), np.uint8))
    match source.randrange(6):
        case 0 | 1:
            return _add_header(version, _change_header(header, body, source), body)
        case 2:
            return _add_header(version, damage_text(header, source), body)
        case 3:
            return _save_array(source.choice(ARRAYS))
        case 4:
            return content[: -len(body) or None] + damage_bytes(body, source)
    kind = ast.literal_eval(header.decode())["descr"]
    return content[: -len(body) or None] + _change_number(np.frombuffer(body, kind), source)


def _change_number(numbers: np.ndarray, source: Source) -> bytes:
    if numbers.size == 0 or numbers.dtype.kind not in "iuf":
        return numbers.tobytes()
    numbers = numbers.copy()
    for _ in range(source.choice((1, 1, 3))):
        number = source.choice((*NUMBERS, float("nan"), float("inf"), 1e300, 5e-324, -0.5))
        with np.errstate(all="ignore"):
            numbers[source.randrange(numbers.size)] = np.array(number).astype(numbers.dtype)
    return numbers.tobytes()


def _change_header(header: bytes, body: bytes, source: Source) -> bytes:
    fields = ast.literal_eval(header.decode())
    match source.randrange(4):
        case 0:
            fields["descr"] = source.choice(DESCRIPTIONS)
        case 1:
            fields["shape"] = source.choice(SHAPES)
        case 2:  # as many numbers as there are, in another shape
            count = len(body) // np.dtype(fields["descr"]).itemsize
            fields["shape"] = source.choice(((-1, -count), (count, 1, 1), (1, count), (count,)))
        case 3:
            fields["fortran_order"] = source.choice((True, 1, None))
    return repr(fields).encode() + b"\n"


def _add_header(version: tuple[int, int], header: bytes, body: bytes) -> bytes:
    return np.lib.format.magic(*version) + struct.pack("<H", len(header) & 0xFFFF) + header + body


def _save_array(numbers: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, numbers, allow_pickle=True)
    return stream.getvalue()


def damage_archive(content: bytes, source: Source) -> bytes:
    """Damage a member of a ZIP archive, or its name, and pack all again."""
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
            members[at] = name, damage_file(name, member, source)
    stream = io.BytesIO()
    with (
        warnings.catch_warnings(),
        zipfile.ZipFile(stream, "w", source.choice(_PACKINGS)) as packed,
    ):
        warnings.simplefilter("ignore")  # warnings of duplicate names
        for name, member in members:
            packed.writestr(zipfile.ZipInfo(name), member, packed.compression)
    return damage_bytes(stream.getvalue(), source) if source.random() < 0.2 else stream.getvalue()


# ---- HDF5 and parquet ----------------------------------------------------------------------------


def damage_hdf5(content: bytes, source: Source) -> bytes:
    """Replace an element of an HDF5 file by another; the file itself stays valid.

    Random bytes are not tried here, because HDF5 can crash on them.
    """
    stream = io.BytesIO(content)
    with h5py.File(stream, "r+") as file:
        places: list[str] = []
        file.visit(places.append)
        place = source.choice(places)
        if source.random() < 0.3:
            _change_attribute(file[place].attrs, source)
        else:
            _change_element(file, place, source)
    return stream.getvalue()


def _change_attribute(attributes: Any, source: Source) -> None:
    name = source.choice([*attributes, "shape", "encoding-type", "_index"])
    if name in attributes:
        del attributes[name]
    match source.randrange(3):
        case 0:
            attributes[name] = source.choice(("csr_matrix", "csc", "", "array", "_index", "é"))
        case 1:
            attributes[name] = np.array(source.choice((*NUMBERS, 12, 9)), np.int64).repeat(2)


def _change_element(file: Any, place: str, source: Source) -> None:
    element = file[place]
    values = element[()] if hasattr(element, "shape") else None
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
        case 5 | 6 if values is not None and np.asarray(values).dtype.kind in "iuf":
            raw = _change_number(np.ravel(values), source)
            file[place] = np.frombuffer(raw, values.dtype).reshape(values.shape)
        case _:
            strange = source.choice([a for a in ARRAYS if a.dtype.kind in "biufcSV" and a.size])
            file[place] = strange


def damage_parquet(content: bytes, source: Source) -> bytes:
    """Replace columns of a parquet file by invalid ones of the same length."""
    if source.random() < 0.3:
        return damage_bytes(content, source)
    frame = pd.read_parquet(io.BytesIO(content))
    for _ in range(source.choice((1, 1, 2))):
        at = source.randrange(frame.shape[1] + 1)
        strange = draw_column(len(frame), source)
        if at == frame.shape[1]:
            frame.index = pd.Index(strange, dtype=object)
        else:
            frame.isetitem(at, strange)
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


_DAMAGES: dict[str, Callable[[bytes, Source], bytes]] = {
    "json": damage_json,
    "npy": damage_npy,
    "npz": damage_archive,
    "h5": damage_hdf5,
    "h5ad": damage_hdf5,
    "parquet": damage_parquet,
}
