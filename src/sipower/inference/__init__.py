# SPDX-License-Identifier: BSD-3-Clause
"""What the factors mean: differences between components and their certainty, and spectra."""

from sipower.inference.differences import Differences
from sipower.inference.differential import differential
from sipower.inference.replication import Replication
from sipower.inference.spectra import Spectra, spectra

__all__ = ["Differences", "Replication", "Spectra", "differential", "spectra"]
