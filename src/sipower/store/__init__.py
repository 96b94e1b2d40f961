# SPDX-License-Identifier: BSD-3-Clause
"""Stores: data on disk as CSR arrays of both orientations, for what memory cannot hold."""

from sipower.store.layout import Layout, read_layout
from sipower.store.sizes import byte_size
from sipower.store.writer import write_store

__all__ = ["Layout", "byte_size", "read_layout", "write_store"]
