# SPDX-License-Identifier: BSD-3-Clause
"""Readers of common file formats: counts of samples by features, with names."""

from sipower.data.from_store import open_store as open_store
from sipower.io.base import ReadError, Table
from sipower.io.convert import convert
from sipower.io.dispatch import FORMATS, read
from sipower.io.guides import read_guides
from sipower.io.known_components import read_components, write_components
from sipower.io.on_disk import open_on_disk
from sipower.io.words import read_texts
from sipower.store import write_store

__all__ = [
    "FORMATS",
    "ReadError",
    "Table",
    "convert",
    "open_on_disk",
    "read",
    "read_components",
    "read_guides",
    "read_texts",
    "write_components",
    "write_store",
]
