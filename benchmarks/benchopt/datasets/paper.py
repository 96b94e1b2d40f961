# SPDX-License-Identifier: BSD-3-Clause
"""The four sets of the paper, read from the folder that SIPOWER_DATA names."""

from __future__ import annotations

from typing import Any

import benchmark_utils  # noqa: F401 - makes `zoo` importable
from benchopt import BaseDataset
from zoo.problems import ZOO

PROBLEMS = {problem.name: problem for problem in ZOO if problem.kind == "paper"}
# The lowest D that any of 20 packages reached from the start of seed 0 (docs/benchmarks.md).
LOWEST = {"kos": 1_119_947.6, "nips": 3_193_958.0, "mitf": 1_190_937.4, "wt": 3_028_037.0}


class Dataset(BaseDataset):
    """KOS and NIPS (words of documents), MITF (faces) and WT (images)."""

    name = "paper"
    parameters = {"set": list(LOWEST)}

    def get_data(self) -> dict[str, Any]:
        """Read one of the sets without its empty rows and columns; V is None if it is absent."""
        problem = PROBLEMS[self.set]
        V = problem.make() if problem.is_present else None
        return {"V": V, "rank": problem.rank, "lowest": LOWEST[self.set]}
