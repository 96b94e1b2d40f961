# SPDX-License-Identifier: BSD-3-Clause
"""A look at the texts inside an HDF5 file before the HDF5 library follows them.

Texts of any length lie in "global heaps": a head of 16 bytes, then one object after another, each
with a head of 16 bytes that tells its length. HDF5 2.0 trusts these lengths: where a damaged one is
too large it leaves its memory and crashes, and where a free one is zero it never ends.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from sipower.io.table import ReadError

__all__ = ["check_heaps"]

_MARK = b"GCOL\x01"
_HEAD = 16
_SMALLEST = 4096


def check_heaps(path: Path) -> None:
    """Refuse a file in which the lengths in a heap do not add up."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_MARK)
        while at >= 0:
            if not _adds_up(content, at):
                raise ReadError(
                    f"{path} is damaged at byte {at}, where its texts lie: copy it or write it "
                    "again."
                )
            at = content.find(_MARK, at + 1)


def _adds_up(content: mmap.mmap, start: int) -> bool:
    """Whether the objects of a heap fill it one after another."""
    size = _integer(content, start + 8, 8)
    place, end = start + _HEAD, start + size
    if size < _SMALLEST or end > len(content):
        return False
    while place + _HEAD <= end:
        is_used, length = _integer(content, place, 2), _integer(content, place + 8, 8)
        # What is free counts its own head, what is used does not and is rounded up to 8 bytes.
        place += _HEAD + (length + 7) // 8 * 8 if is_used else length
        if place > end or (length < _HEAD and not is_used):
            return False
    return True


def _integer(content: mmap.mmap, at: int, size: int) -> int:
    return int.from_bytes(content[at : at + size], "little")
