# SPDX-License-Identifier: BSD-3-Clause
"""Non-negative data as row blocks, in memory or on disk, and their validation."""
