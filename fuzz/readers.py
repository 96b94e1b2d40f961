# SPDX-License-Identifier: BSD-3-Clause
"""Every reader of files is given damaged ones: one sentence or valid content, and nothing else.

python fuzz/readers.py --inputs 60000 --seed 0
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "tests")]

import driver  # noqa: E402 - found by the line above, as those below
from kinds import Kind, kinds  # noqa: E402
from mutations import damaged  # noqa: E402

from sipower.io import ReadError  # noqa: E402

MEMORY = 2 << 30  # that a process may take beyond what it has
LONGEST = 800  # letters of a sentence, names of files not counted


class Readers:
    """The target: it writes its files into a folder, of which each process has a part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, source: random.Random) -> str:
        """Damage a file of some kind, and read it."""
        name = source.choice(list(kinds()))
        kind, folder = kinds()[name], self.folder / str(os.getpid()) / name
        if not folder.exists():
            for file, content in kind.files.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(content)
        file = source.choice(list(kind.files))
        (folder / file).write_bytes(damaged(file, kind.files[file], source))
        outcome = read(kind, folder / kind.given)
        (folder / file).write_bytes(kind.files[file])
        return f"{name}: {outcome}"


def read(kind: Kind, path: Path) -> str:
    """Read what lies at a path: "valid", or "refused" in one sentence that names it."""
    outcome = "valid"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            kind.read(path)
        except ValueError as problem:
            if type(problem) not in (ValueError, ReadError)[kind.counts :]:
                raise
            outcome, said = "refused", str(problem)
            assert str(path) in said, said
            assert said.endswith("."), said
            assert len(said.splitlines()) == 1, said
            assert len(said.replace(str(path), "")) < LONGEST, said
            # There is content for less than a megabyte: memory is short for lies only.
            assert "more memory" not in said, said
            assert not said.endswith((": .", " .")), said
    assert not warned, [str(warning.message) for warning in warned]
    return outcome


def limit_memory() -> None:
    """Make an allocation of gigabytes fail."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


if __name__ == "__main__":
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as place:
        kinds()  # once for all children
        driver.main(Readers(Path(place)), limit_memory)
