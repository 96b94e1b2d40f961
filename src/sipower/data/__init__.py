# SPDX-License-Identifier: BSD-3-Clause
"""Data as row blocks: in memory, on disk, and the one validation that makes them."""
