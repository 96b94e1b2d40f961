# SPDX-License-Identifier: BSD-3-Clause
"""The on-disk format: CSR arrays of data larger than memory and of their transpose."""

from sipower.store.layout import Layout, is_store, read_layout
from sipower.store.workspace import byte_size
from sipower.store.writer import write_store

__all__ = ["Layout", "byte_size", "is_store", "read_layout", "write_store"]
