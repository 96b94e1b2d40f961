# SPDX-License-Identifier: BSD-3-Clause
"""Files that all packages share: atomic replacement, locks, and arrays in .npy and .npz files.

The sizes of arrays are checked before memory is allocated, and NumPy reads their headers, never
with pickle. A file that is damaged or declares wrong sizes raises `DamagedError`.
"""

from __future__ import annotations

import glob
import math
import os
import secrets
import warnings
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = ".sipower-tmp"
ALWAYS_ALLOWED = 1 << 28  # bytes that a file of any size may declare
MAX_DEFLATE_RATIO = 1032
MAX_HEADER_SIZE = 2000  # bytes; 64 dimensions of 20 digits fit


# ---- writing -------------------------------------------------------------------------------------


@contextmanager
def name_in_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Add `path` to operating-system errors, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and str(error.filename or TEMPORARY).endswith(TEMPORARY):
            error.filename = str(path)
        raise


@contextmanager
def atomic_write(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file for writing that replaces `path` once it is on the disk."""
    target = Path(path).resolve()  # a link stays, and the file that it points to is replaced
    if target.exists() and not target.is_file():  # a folder, or a device such as /dev/null
        raise ValueError(f"{path} exists and is not a file: choose another name.")
    # Mode "x" follows no link and gives the file the permissions of the umask.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}{TEMPORARY}")
    with name_in_errors(path):
        file = temporary.open("xb")
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def remove_unfinished(path: str | PathLike[str]) -> None:
    """Remove the temporary files of killed writers of `path`; the caller must hold its lock."""
    target = Path(path).resolve()
    for unfinished in target.parent.glob(f".{glob.escape(target.name)}.*{TEMPORARY}"):
        unfinished.unlink()


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Lock a file against other processes until the block ends, if the system has locks."""
    if not file.parent.is_dir():
        raise ValueError(f"The folder {str(file.parent)!r} does not exist: make it first.")
    path = file.with_name(f".{file.name}.sipower-lock")
    # Do not follow a link that somebody else may have put there.
    flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o666), "a") as lock:
        try:
            _acquire(lock)
            if not path.exists() or path.stat().st_ino != os.fstat(lock.fileno()).st_ino:
                raise BlockingIOError  # the process that held it has just removed it
        except OSError:
            raise ValueError(
                f"{file} is in use by another process: wait until it has finished."
            ) from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _acquire(lock: IO[str]) -> None:
    """Lock an open file, unless the file system has no locks, as on some clusters."""
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


# ---- arrays --------------------------------------------------------------------------------------


class DamagedError(ValueError):
    """An error in a file of arrays; the message is meant to follow the file name."""


def read_archive(path: str | PathLike[str], names: Collection[str] | None = None) -> dict[str, Any]:
    """Read the arrays of an .npz file by name; those that are not among `names` are None."""
    stored, arrays = Path(path).stat().st_size, dict[str, Any]()
    with _report_damage("an .npz file"), zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if name != entry.filename:
                is_wanted = names is None or name in names
                arrays[name] = _read_member(archive, entry, stored) if is_wanted else None
    return arrays


def _read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, stored: int) -> NDArray[Any]:
    if not is_plausible_size(entry.file_size, stored):
        name = shorten(entry.filename.removesuffix(".npy"))
        raise DamagedError(
            f"declares {entry.file_size} bytes for the array {name} and stores {stored}: it is "
            "damaged, write it again"
        )
    with archive.open(entry) as stream:
        return read_array(stream, entry.file_size)


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a .npy file; return shape, whether it is in Fortran order, and dtype."""
    # NumPy warns of headers that Python 2 wrote, Python of strange strings in damaged ones.
    with _report_damage("a NumPy array"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = npy.read_magic(stream) == (1, 0)
        read = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
        shape, fortran_order, dtype = read(stream, max_header_size=MAX_HEADER_SIZE)
        if min(shape, default=0) < 0 or dtype.fields is not None:
            raise ValueError(f"its shape is {shape}, its type {dtype}")
        return shape, fortran_order, dtype


def read_array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from a stream of `size` bytes, which must match its header."""
    shape, fortran_order, dtype = read_header(stream)
    if dtype.hasobject:
        raise DamagedError("holds Python objects, expected numbers")
    declared = math.prod(shape) * dtype.itemsize
    available = size - stream.tell()
    content = np.empty(declared if declared == available else 0, np.uint8)
    # Reading one byte beyond the end makes zipfile compare the checksum.
    if declared != available or stream.readinto(content) != declared or stream.read(1):  # type: ignore[attr-defined]
        raise DamagedError(
            f"declares {declared} bytes and has {available}: it is incomplete, or its header "
            "is wrong"
        )
    with _report_damage("a NumPy array"):  # types without a size
        return content.view(dtype).reshape(shape, order="F" if fortran_order else "C")


def is_plausible_size(declared: int, stored: int) -> bool:
    """Return whether `stored` bytes can decompress to the declared number of bytes."""
    return declared <= max(ALWAYS_ALLOWED, MAX_DEFLATE_RATIO * stored)


def shorten(value: object) -> str:
    """Return a value as text for a message: one line, at most 60 characters."""
    text = " ".join(str(value).split())
    if not text and isinstance(value, Exception):
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"


@contextmanager
def _report_damage(kind: str) -> Iterator[None]:
    """Raise `DamagedError` for anything that a damaged file makes its readers raise."""
    try:
        yield
    except (DamagedError, OSError, MemoryError):
        raise
    except Exception as error:
        raise DamagedError(f"is damaged or not {kind}: {shorten(error)}") from None
