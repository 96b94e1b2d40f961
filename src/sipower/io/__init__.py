# SPDX-License-Identifier: BSD-3-Clause
"""The files people have, read as counts of samples by features with their names."""

from sipower.data.on_disk import open_store
from sipower.io.backed import open_h5ad
from sipower.io.conversion import convert
from sipower.io.dispatch import FORMATS, read
from sipower.io.table import ReadError, Table
from sipower.store import write_store

__all__ = [
    "FORMATS",
    "ReadError",
    "Table",
    "convert",
    "open_h5ad",
    "open_store",
    "read",
    "write_store",
]
