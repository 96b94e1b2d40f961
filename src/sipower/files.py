# SPDX-License-Identifier: BSD-3-Clause
"""Files that are there whole or not at all, and locks on them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked", "replacing"]


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file for writing that takes the place of `path` once it is on the disk."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
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
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep other sessions away from a file, where the system has locks."""
    with file.with_suffix(".lock").open("w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(f"Another session is at work on {file}: wait for it.") from None
        yield
