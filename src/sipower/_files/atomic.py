# SPDX-License-Identifier: BSD-3-Clause
"""Atomic file replacement and file locks."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, BinaryIO

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["atomic_write", "file_lock", "name_in_errors", "remove_unfinished"]

TEMPORARY = ".sipower-tmp"


@contextmanager
def name_in_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Name `path` in the errors of the system, such as that of a full disk."""
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
    with name_in_errors(path), _replacement(target) as file:
        yield file


@contextmanager
def _replacement(target: Path) -> Iterator[BinaryIO]:
    handle, temporary = tempfile.mkstemp(TEMPORARY, f".{target.name}.", target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            with suppress(AttributeError):  # Windows has no fchmod
                os.fchmod(file.fileno(), 0o666 & ~_umask())  # mkstemp's files are private
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)  # it can be read only by setting it; this one exposes no file
    os.umask(mask)
    return mask


def remove_unfinished(path: str | PathLike[str]) -> None:
    """Remove the temporary files of killed writers of `path`; the caller must hold its lock."""
    target = Path(path).resolve()
    for unfinished in target.parent.glob(f".{glob.escape(target.name)}.*{TEMPORARY}"):
        unfinished.unlink()


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Keep other processes away from a file until the block ends, where the system has locks."""
    if not file.parent.is_dir():
        raise ValueError(f"The folder {str(file.parent)!r} does not exist: make it first.")
    path = file.with_name(f".{file.name}.sipower-lock")
    # No link is followed that somebody else has put there.
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
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return
