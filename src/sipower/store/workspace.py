# SPDX-License-Identifier: BSD-3-Clause
"""`Workspace`: the memory limit, temporary folders and progress reports of a conversion."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MIN_MEMORY", "Progress", "SpaceError", "Workspace", "byte_size"]

MIN_MEMORY = 1_000_000
Progress = Callable[[str, int, int], None]
# Memory for an entry while it is read, sorted, converted to CSR, checked, hashed and written.
_BYTES_PER_ENTRY = 80
_CACHED_ENTRIES = 1 << 19  # few enough to sort within the processor's cache
_UNITS = {"": 1, "b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgt", 1)
    for ending, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)")


def byte_size(size: str | int) -> int:
    """Return the number of bytes of a size such as 300_000_000, "300MB", "1.5GB" or "2GiB".

    Examples
    --------
    >>> from sipower.store import byte_size
    >>> byte_size("1.5GB"), byte_size("2GiB")
    (1500000000, 2147483648)
    """
    parsed = _SIZE.fullmatch(str(size).strip().lower())
    if isinstance(size, bool) or parsed is None or parsed[2] not in _UNITS:
        raise ValueError(
            f"`memory_limit` must be a number of bytes or a size such as 512MB, got {size!r}."
        )
    count = int(float(parsed[1]) * _UNITS[parsed[2]])
    if count < 1:
        raise ValueError(f"`memory_limit` must be at least 1 byte, got {size!r}.")
    return count


class SpaceError(ValueError):
    """An error for a disk that has too little free space."""


@dataclass(frozen=True)
class Workspace:
    """The memory limit, temporary folders and progress callback for writing a store.

    Temporary folders are created beside `target`, the path of the store. `memory` is in bytes.
    `on_progress` is called with three arguments: "entries", "rows" or "columns", how many of them
    are done, and how many nonzeros these have.
    """

    target: Path
    memory: int
    on_progress: Progress | None = None

    @property
    def max_entries(self) -> int:
        """The number of entries that may be in memory at a time."""
        return max(self.memory // _BYTES_PER_ENTRY, 1)

    @property
    def cached_entries(self) -> int:
        """The number of entries to sort or move at a time, chosen for speed."""
        return min(self.max_entries, _CACHED_ENTRIES)

    def check_space(self, needed: int) -> None:
        """Raise `SpaceError` unless the disk of the store has `needed` bytes left."""
        place = self.target.absolute().parent
        while not place.exists():
            place = place.parent
        free = shutil.disk_usage(place).free
        if free < needed:
            raise SpaceError(
                f"{self.target} needs about {_as_text(needed)} while it is written, but the disk "
                f"has {_as_text(free)} left: free some space."
            )

    @contextmanager
    def temporary_folder(self) -> Iterator[Path]:
        """Create a folder beside the store that is removed when the block ends."""
        place, prefix = self.target.parent, f".{self.target.name}."
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=prefix) as folder:
            yield Path(folder)

    def report(self, what: str, items: int, nonzeros: int) -> None:
        """Call `on_progress` with these arguments, unless it is None."""
        if self.on_progress is not None:
            self.on_progress(what, items, nonzeros)


def _as_text(size: int) -> str:
    """Return a size in bytes in words, such as 1.5 GB."""
    power = max((p for p in range(5) if size >= 1000**p), default=0)
    return f"{size / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
