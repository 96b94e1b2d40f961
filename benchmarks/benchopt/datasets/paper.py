# SPDX-License-Identifier: BSD-3-Clause
"""The four sets of the paper, read from the folder that SIPOWER_DATA names."""

from __future__ import annotations

from typing import Any

import benchmark_utils  # noqa: F401 - makes `zoo` importable
from benchopt import BaseDataset
from zoo.problems import drop_empty

from sipower import datasets

RANK = 20
# The lowest D that any of 20 packages reached from the start of seed 0 (docs/benchmarks.md).
LOWEST = {"kos": 1_119_947.6, "nips": 3_193_958.0, "mitf": 1_190_937.4, "wt": 3_028_037.0}


class Dataset(BaseDataset):
    """KOS and NIPS (words of documents), MITF (faces) and WT (images)."""

    name = "paper"
    parameters = {"set": list(LOWEST)}

    def get_data(self) -> dict[str, Any]:
        """Read one of the sets and remove its empty rows and columns."""
        if not datasets.is_present(self.set):
            return {"V": None, "rank": RANK}
        V = drop_empty(datasets.load(self.set))
        return {"V": V, "rank": RANK, "lowest": LOWEST[self.set]}
