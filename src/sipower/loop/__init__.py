# SPDX-License-Identifier: BSD-3-Clause
"""The `solve` loop, its stopping rules, trace and checkpoints, and the protocols of problems."""
