# SPDX-License-Identifier: BSD-3-Clause
"""Atomic file replacement, space for it, file locks, opening of files, .npy and .npz files.

NumPy parses the headers of arrays. Their sizes are checked before memory is allocated, and pickled
objects are rejected. A file that is damaged or declares wrong sizes raises `DamagedError`.
"""

from __future__ import annotations

import errno
import glob
import io
import math
import os
import secrets
import shutil
import stat
import time
import warnings
import zipfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # Windows has msvcrt instead
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

TEMPORARY = ".sipower-tmp"
# The errors for which a file has no room, and why.
NO_ROOM = {
    getattr(errno, "EDQUOT", errno.ENOSPC): "the quota of the user is used up",  # not on Windows
    errno.ENOSPC: "the disk is full",
    errno.EFBIG: "the system allows no file of that size",
}
ALWAYS_ALLOWED = 1 << 28  # bytes; a file may declare this size, however small it is
MAX_DEFLATE_RATIO = 1032
LOCK_POLL_SECONDS = 0.05  # time between two attempts to lock a file on Windows
MAX_HEADER_SIZE = 2000  # bytes; enough for 64 dimensions of 20 digits each


# ---- writing -------------------------------------------------------------------------------------


@contextmanager
def name_in_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Add the file name `path` to operating-system errors, such as the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and str(error.filename or TEMPORARY).endswith(TEMPORARY):
            error.filename = str(path)
        raise


@contextmanager
def atomic_write(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file for writing, which replaces `path` when the block ends."""
    target = Path(path).resolve()  # replaces the file that a link points to, not the link
    if target.exists() and not target.is_file():  # a folder, or a device such as /dev/null
        raise ValueError(f"{path} exists and is not a file: choose another name.")
    # Mode "x" does not follow links, and the umask sets the permissions of the file.
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


@contextmanager
def reserve_space(path: str | PathLike[str], size: int) -> Iterator[None]:
    """Hold `size` bytes on the disk of `path`, for a file that is written after the block.

    What cannot be held raises OSError, as a write that finds the disk full does. Systems and file
    systems that hold no space for later only compare the size with what is free.
    """
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with ExitStack() as stack:
            with name_in_errors(path):
                file = stack.enter_context(temporary.open("xb"))
                _allocate(file, size)
            yield
    finally:
        temporary.unlink(missing_ok=True)


def _allocate(file: IO[bytes], size: int) -> None:
    """Allocate the blocks of a file, or raise OSError if the disk has not so many."""
    try:
        if size > 0:
            os.posix_fallocate(file.fileno(), 0, size)
        return
    except AttributeError:  # Windows and macOS
        pass
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
    if shutil.disk_usage(Path(file.name).parent).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)


def remove_unfinished(path: str | PathLike[str]) -> None:
    """Remove the temporary files that killed processes left behind while writing `path`.

    The caller must hold the lock of `path`, so that no other process is writing it.
    """
    target = Path(path).resolve()
    for unfinished in target.parent.glob(f".{glob.escape(target.name)}.*{TEMPORARY}"):
        unfinished.unlink()


@contextmanager
def file_lock(file: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a file against other processes until the block ends, if the system supports locks.

    If another process holds the lock, wait for it or, unless `wait` is true, raise an error.
    """
    if not file.parent.is_dir():
        raise ValueError(f"The folder {str(file.parent)!r} does not exist: create it first.")
    path = file.with_name(f".{file.name}.sipower-lock")
    lock = _open_lock(path, wait=wait)
    while lock is None and wait:
        lock = _open_lock(path, wait=True)
    if lock is None:
        raise ValueError(f"{file} is in use by another process: wait until it has finished.")
    try:
        yield
    finally:
        _remove_lock(path, lock)


def _remove_lock(path: Path, lock: IO[bytes]) -> None:
    """Remove and unlock a lock file."""
    with lock:
        if fcntl is not None:  # before it is unlocked, so that no process locks a removed file
            path.unlink(missing_ok=True)
    if fcntl is None:  # Windows removes only files that no process has open
        with suppress(PermissionError):
            path.unlink(missing_ok=True)


def _open_lock(path: Path, *, wait: bool) -> IO[bytes] | None:
    """Open and lock a lock file; return None if another process has locked or removed it."""
    # Do not follow a link that somebody else may have put there.
    flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    lock = os.fdopen(os.open(path, flags, 0o666), "ab")
    try:
        _acquire(lock, wait=wait)
        is_current = path.exists() and path.stat().st_ino == os.fstat(lock.fileno()).st_ino
    except OSError:
        is_current = False
    except BaseException:
        lock.close()
        raise
    if is_current:
        return lock
    lock.close()
    return None


def _acquire(lock: IO[bytes], *, wait: bool) -> None:
    """Lock an open file. On file systems without locks, as on some clusters, do nothing."""
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        elif msvcrt is not None:
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
    except BlockingIOError:
        raise
    except OSError as error:
        if fcntl is None and error.errno == errno.EACCES:  # another process has locked it
            time.sleep(LOCK_POLL_SECONDS if wait else 0)
            raise


# ---- reading -------------------------------------------------------------------------------------

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def check_regular(path: str | PathLike[str]) -> None:
    """Raise OSError unless `path` is a regular file or a link to one.

    To open anything else can wait forever, as for a named pipe that nobody writes to. Every reader
    calls this function or `open_regular` first.
    """
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind != stat.S_IFREG:
        text = f"it is {_KINDS.get(kind, 'not a file')}, expected a regular file"
        raise OSError(errno.EINVAL, text, str(path))


def open_regular(path: str | PathLike[str]) -> BinaryIO:
    """Open a regular file, or a link to one, for reading in binary mode."""
    check_regular(path)
    return open(path, "rb")


# ---- arrays --------------------------------------------------------------------------------------


class DamagedError(ValueError):
    """An error for a damaged file of arrays; callers put the file name before its message."""


def read_archive(path: str | PathLike[str], names: Collection[str] | None = None) -> dict[str, Any]:
    """Read the arrays of an .npz file into a dict, with None for those that `names` leaves out."""
    stored, arrays = Path(path).stat().st_size, dict[str, Any]()
    with (
        _report_damage("an .npz file"),
        open_regular(path) as file,
        zipfile.ZipFile(file) as archive,
    ):
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if name in arrays:
                raise DamagedError(
                    f"holds two arrays with the name {quote(name)}: write it again with one"
                )
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
    """Read the header of a .npy file: shape, whether it is in Fortran order, and dtype."""
    # NumPy warns about headers written by Python 2, and Python about syntax in damaged ones.
    with _report_damage("a NumPy array"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = npy.read_magic(stream) == (1, 0)
        read = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
        length = stream.read(2 if old else 4)
        declared = int.from_bytes(length, "little")
        if declared > MAX_HEADER_SIZE:  # NumPy would allocate as many bytes and then refuse
            raise ValueError(f"its header declares {declared} bytes")
        header = io.BytesIO(length + stream.read(declared))
        shape, fortran_order, dtype = read(header, max_header_size=MAX_HEADER_SIZE)
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
    with _report_damage("a NumPy array"):  # fails for dtypes of size 0
        return content.view(dtype).reshape(shape, order="F" if fortran_order else "C")


def is_plausible_size(declared: int, stored: int) -> bool:
    """Return whether `stored` bytes can decompress to the declared number of bytes."""
    return declared <= max(ALWAYS_ALLOWED, MAX_DEFLATE_RATIO * stored)


# ---- messages ------------------------------------------------------------------------------------


def shorten(value: object) -> str:
    """Return a value as text for a message: one line, printable, about 60 characters at most."""
    return printable(_first_words(value))


def quote(value: object) -> str:
    """Return a value as a quoted text for a message, shortened like those of `shorten`."""
    return repr(_first_words(value))


def printable(text: str) -> str:
    """Return the text on one line, with control and invisible characters escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _first_words(value: object) -> str:
    text = " ".join(str(value).split())
    if not text and isinstance(value, Exception):
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"


# ---- errors --------------------------------------------------------------------------------------


@contextmanager
def _report_damage(kind: str) -> Iterator[None]:
    """Turn any exception that reading a damaged file may raise into `DamagedError`."""
    try:
        yield
    except (DamagedError, OSError, MemoryError):
        raise
    except Exception as error:
        raise DamagedError(f"is damaged or not {kind}: {shorten(error)}") from None
