# SPDX-License-Identifier: BSD-3-Clause
"""File locks between processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["file_lock"]


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Keep other processes away from a file until the block ends, where the system has locks."""
    if not file.parent.is_dir():
        raise ValueError(f"The folder {file.parent} does not exist: make it first.")
    path = file.with_name(f".{file.name}.sipower-lock")
    # No link is followed that somebody else has put there.
    flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o666), "a") as lock:
        try:
            _acquire(lock)
            if not path.exists() or path.stat().st_ino != os.fstat(lock.fileno()).st_ino:
                raise BlockingIOError  # the process that held it has just removed it
        except OSError:
            raise ValueError(f"Another session is at work on {file}: wait for it.") from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _acquire(lock: IO[str]) -> None:
    """Lock an open file; file systems without locks, as some clusters have, are worked on."""
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return
