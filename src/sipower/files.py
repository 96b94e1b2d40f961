# SPDX-License-Identifier: BSD-3-Clause
"""Files that are there whole or not at all, and locks on them."""

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

__all__ = ["locked", "naming", "remove_unfinished", "replacing"]

ENDING = ".sipower-tmp"


@contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """Have what the system refuses, such as space on a full disk, name what was to be written."""
    try:
        yield
    except OSError as problem:
        if problem.errno is not None and str(problem.filename or ENDING).endswith(ENDING):
            problem.filename = str(path)
        raise


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file for writing that takes the place of `path` once it is on the disk."""
    target = Path(path).resolve()  # what a link points to is replaced, not the link
    if target.exists() and not target.is_file():  # a folder, or a device such as /dev/null
        raise ValueError(f"{path} is there already and no file: choose another name.")
    with naming(path), _replacing(target) as file:
        yield file


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    handle, temporary = tempfile.mkstemp(ENDING, f".{target.name}.", target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            with suppress(AttributeError):  # a file for others too, as any other; not on Windows
                os.fchmod(file.fileno(), 0o666 & ~_umask())
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)  # it can only be read by a change: no file of another thread is exposed
    os.umask(mask)
    return mask


def remove_unfinished(path: str | PathLike[str]) -> None:
    """Remove what a killed session has left of its writing to a file; nobody may be writing now."""
    target = Path(path).resolve()
    for unfinished in target.parent.glob(f".{glob.escape(target.name)}.*{ENDING}"):
        unfinished.unlink()


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep other sessions away from a file, where the system has locks."""
    if not file.parent.is_dir():
        raise ValueError(f"The folder {file.parent} does not exist: make it first.")
    path = file.with_name(f".{file.name}.sipower-lock")
    flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)  # no link that others laid there
    with os.fdopen(os.open(path, flags, 0o666), "a") as lock:
        try:
            _take(lock)
            if not path.exists() or path.stat().st_ino != os.fstat(lock.fileno()).st_ino:
                raise BlockingIOError  # the session that had it has just removed it
        except OSError:
            raise ValueError(f"Another session is at work on {file}: wait for it.") from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _take(lock: IO[str]) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # file systems of clusters may have no locks: that is no reason not to work
        return
