# SPDX-License-Identifier: BSD-3-Clause
"""The one loop: `solve`, when it stops, what it records and saves, what it asks of a problem."""
