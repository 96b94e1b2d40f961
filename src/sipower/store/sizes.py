# SPDX-License-Identifier: BSD-3-Clause
"""Memory sizes as people write them, such as "512MB"."""

from __future__ import annotations

import re

__all__ = ["byte_size"]

_UNITS = {"": 1, "b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgt", 1)
    for ending, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)")


def byte_size(size: str | int) -> int:
    """Return the bytes of a size such as 300_000_000, "300MB", "1.5GB" or "2GiB".

    Examples
    --------
    >>> from sipower.store import byte_size
    >>> byte_size("1.5GB"), byte_size("2GiB")
    (1500000000, 2147483648)
    """
    parsed = _SIZE.fullmatch(str(size).strip().lower())
    if isinstance(size, bool) or parsed is None or parsed[2] not in _UNITS:
        raise ValueError(f"`memory_limit` must be bytes or a size such as 512MB, got {size!r}.")
    count = int(float(parsed[1]) * _UNITS[parsed[2]])
    if count < 1:
        raise ValueError(f"`memory_limit` must be at least 1 byte, got {size!r}.")
    return count
