# SPDX-License-Identifier: BSD-3-Clause
"""The cache: stores of files that were converted once, so that later fits read them from disk.

Each file, or layer of a file, has a folder of its own in the cache folder:

================  ==============================================================================
counts.sipower    the store
source.json       which file was converted, its size and time of change, and remarks on its
                  values; written last, and touched at each use
================  ==============================================================================

Nothing outside these folders is ever removed, and nothing in them that the library did not write.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from sipower._files import TEMPORARY, atomic_write, file_lock
from sipower.data.formats import CACHE
from sipower.io.source_files import describe_source
from sipower.store import read_layout

__all__ = ["CacheEntry", "cache_entries", "cache_folder", "remove_entry"]

VARIABLE = "SIPOWER_CACHE"
STORE, LABEL = "counts.sipower", "source.json"
_FOLDER = re.compile(r".+-[0-9a-f]{16}")
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"  # tells backup programs to leave it out


def cache_folder(folder: str | PathLike[str] | None = None) -> Path:
    """Return the cache folder: `folder`, else $SIPOWER_CACHE, else that of the system."""
    named = folder or os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData/Local")) / "sipower" / "Cache"
    if sys.platform == "darwin":
        return home / "Library/Caches/sipower"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else home / ".cache") / "sipower"


@dataclass(frozen=True)
class CacheEntry:
    """The folder of a converted file in the cache; it need not exist."""

    folder: Path

    @staticmethod
    def of_file(path: Path, layer: str | None, folder: Path) -> CacheEntry:
        """Return the entry of a file, or of a layer of it, in a cache folder."""
        key = json.dumps([str(path.resolve()), layer]).encode()
        parts = [path.name] if layer is None else [path.name, layer]
        name = re.sub(r"[^\w.-]+", "-", ".".join(parts)).lstrip(".")[:60]
        return CacheEntry(folder / f"{name or 'counts'}-{sha256(key).hexdigest()[:16]}")

    @property
    def store(self) -> Path:
        """The store."""
        return self.folder / STORE

    @property
    def label(self) -> dict[str, Any]:
        """The content of source.json; empty if it is missing or damaged."""
        try:
            return dict(json.loads((self.folder / LABEL).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError):
            return {}

    @property
    def source(self) -> dict[str, Any]:
        """What was converted; see `describe_source`. Empty if it is not known."""
        source = self.label.get("source")
        return source if isinstance(source, dict) else {}

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences for the user about the file; none if they are damaged."""
        remarks = self.label.get("remarks")
        return tuple(map(str, remarks)) if isinstance(remarks, list) else ()

    @cached_property
    def status(self) -> str:
        """Whether the store can be used: "current", or why it cannot."""
        source = self.source
        if not CACHE.is_readable(self.label):
            return "of a newer sipower"
        if not isinstance(source.get("file"), str):
            return "unfinished"
        if not Path(source["file"]).exists():
            return "file is gone"
        try:
            now = describe_source(Path(source["file"]), source.get("layer"))
        except (OSError, ValueError):
            return "file is gone"
        return self._store_status if now == source else "file has changed"

    @property
    def _store_status(self) -> str:
        try:
            read_layout(self.store)
        except (OSError, ValueError):
            return "damaged"
        return "current"

    @property
    def size(self) -> int:
        """The number of bytes on disk."""
        files = (Path(p, name) for p, _, names in os.walk(self.folder) for name in names)
        return sum(file.lstat().st_size for file in files)

    @property
    def last_used(self) -> datetime | None:
        """When the store was last opened, or made; None if it is unfinished."""
        label = self.folder / LABEL
        return datetime.fromtimestamp(label.stat().st_mtime, UTC) if label.is_file() else None

    def write_label(self, source: dict[str, Any], remarks: tuple[str, ...]) -> None:
        """Write source.json, which makes the store valid."""
        made = datetime.now(UTC).isoformat()
        with atomic_write(self.folder / LABEL) as file:
            text = json.dumps({**CACHE.stamp(), "source": source, "made": made, "remarks": remarks})
            file.write(text.encode())

    def touch(self) -> None:
        """Record that the store is used, if the folder may be written."""
        try:
            os.utime(self.folder / LABEL)
        except OSError:
            return

    def clear(self) -> None:
        """Remove the content of the folder; raise an error if it holds other files.

        The caller must hold the lock of the folder.
        """
        if self.folder.is_symlink():
            raise ValueError(f"{self.folder} is a symbolic link, not part of the cache: remove it.")
        content = list(self.folder.iterdir()) if self.folder.is_dir() else []
        foreign = [place for place in content if not _is_own(place)]
        if foreign:
            raise ValueError(f"{foreign[0]} is not part of the cache: move it somewhere else.")
        for place in sorted(content, key=lambda place: place.name != LABEL):  # first the label
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink()


def _is_own(place: Path) -> bool:
    """Return whether the library wrote a file or folder of an entry."""
    name = place.name
    is_temporary = name.startswith(f".{LABEL}.") and name.endswith(TEMPORARY)
    return name in (LABEL, STORE) or name.startswith(f".{STORE}.") or is_temporary


def make_cache_folder(folder: Path) -> None:
    """Create the cache folder with a mark for backup programs, unless it exists."""
    folder.mkdir(parents=True, exist_ok=True)
    tag = folder / "CACHEDIR.TAG"
    if not tag.exists() and not any(folder.iterdir()):  # a folder of the user is not marked
        with atomic_write(tag) as file:
            file.write(_TAG.encode())


def cache_entries(folder: Path) -> Iterator[CacheEntry]:
    """Yield the entries of a cache folder, in the order of their names."""
    if folder.is_dir():
        for place in sorted(folder.iterdir()):
            if _FOLDER.fullmatch(place.name) and place.is_dir() and not place.is_symlink():
                content = list(place.iterdir())
                if all(map(_is_own, content)) and (content or not any(place.iterdir())):
                    yield CacheEntry(place)


def remove_entry(entry: CacheEntry) -> None:
    """Remove an entry of the cache; raise an error if another process is making it."""
    with file_lock(entry.folder):
        entry.clear()
        entry.folder.rmdir()
