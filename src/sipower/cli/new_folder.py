# SPDX-License-Identifier: BSD-3-Clause
"""`make_folder`: a folder for results that disappears again if nothing is written to it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def make_folder(folder: Path) -> Iterator[None]:
    """Create a folder and its missing parents; when the block ends, remove those still empty."""
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for path in created:
            with suppress(OSError):  # it is not empty
                path.rmdir()
