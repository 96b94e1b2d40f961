# SPDX-License-Identifier: BSD-3-Clause
"""What the factors mean: differences between components, and how certain they are."""

from sipower.inference.differences import Differences
from sipower.inference.differential import differential
from sipower.inference.replication import Replication

__all__ = ["Differences", "Replication", "differential"]
