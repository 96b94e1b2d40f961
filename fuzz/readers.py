# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz the readers: a damaged file must give an error in one sentence, or valid content.

python fuzz/readers.py --inputs 60000 --seed 0
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "tests")]

import driver  # noqa: E402 - the line above makes these imports possible
from kinds import Kind, kinds  # noqa: E402
from mutations import damage_file  # noqa: E402

import systems  # noqa: E402
from sipower.data.formats import NewerFormatError  # noqa: E402
from sipower.io import ReadError  # noqa: E402
from sipower.store.layout import DamagedStoreError  # noqa: E402

OWN_ERRORS = (ValueError, ReadError, DamagedStoreError, NewerFormatError)
MEMORY = 2 << 30  # bytes that a process may allocate
MAX_LENGTH = 800  # longest message, without the names of files


class ReaderTarget:
    """The target, which writes its files into a folder, with a subfolder for each process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, source: random.Random) -> str:
        """Damage a file of a random kind, and read it."""
        name = source.choice(list(kinds()))
        kind, folder = kinds()[name], self.folder / str(os.getpid()) / name
        if not folder.exists():
            for file, content in kind.files.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(content)
        file = source.choice(list(kind.files))
        (folder / file).write_bytes(damage_file(file, kind.files[file], source))
        outcome = read(kind, folder / kind.path)
        (folder / file).write_bytes(kind.files[file])
        return f"{name}: {outcome}"


def read(kind: Kind, path: Path) -> str:
    """Read a path; return "valid", or "refused" if the error is one sentence that names it."""
    outcome = "valid"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            kind.read(path)
        except ValueError as problem:
            # No other subclass of ValueError: those of libraries say nothing to the user.
            if type(problem) not in ((ReadError,) if kind.has_counts else OWN_ERRORS):
                raise
            outcome, message = "refused", str(problem)
            assert str(path) in message, message
            assert message.endswith("."), message
            assert len(message.splitlines()) == 1, message
            assert len(message.replace(str(path), "")) < MAX_LENGTH, message
            # The files have less than a megabyte, so only a false size can need more memory.
            assert "more memory" not in message or may_declare_memory(path), message
            assert not message.endswith((": .", " .")), message
    assert not warned, [str(warning.message) for warning in warned]
    return outcome


def may_declare_memory(path: Path) -> bool:
    """Return whether a decoder allocates what the file declares: codecs of Zarr, or LZMA."""
    if path.suffix != ".npz":
        return path.suffix == ".zarr"
    with zipfile.ZipFile(path) as archive:
        return any(entry.compress_type == zipfile.ZIP_LZMA for entry in archive.infolist())


def limit_memory() -> None:
    """Make allocations of several gigabytes fail."""
    systems.limit_memory(MEMORY)


if __name__ == "__main__":
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as place:
        kinds()  # once for all children
        driver.main(ReaderTarget(Path(place)), limit_memory)
