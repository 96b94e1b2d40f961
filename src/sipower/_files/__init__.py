# SPDX-License-Identifier: BSD-3-Clause
"""Files that other packages share: atomic replacement, locks, archives of arrays."""

from sipower._files.archive import (
    Archive,
    DamagedError,
    is_plausible_size,
    read_array,
    read_header,
    shorten,
)
from sipower._files.atomic import atomic_write, file_lock, name_in_errors, remove_unfinished

__all__ = [
    "Archive",
    "DamagedError",
    "atomic_write",
    "file_lock",
    "is_plausible_size",
    "name_in_errors",
    "read_array",
    "read_header",
    "remove_unfinished",
    "shorten",
]
