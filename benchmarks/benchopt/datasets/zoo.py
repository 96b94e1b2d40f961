# SPDX-License-Identifier: BSD-3-Clause
"""The generated problems of benchmarks/zoo: no downloads, the same data on every machine."""

from __future__ import annotations

from typing import Any

import benchmark_utils  # noqa: F401 - makes `zoo` importable
from benchopt import BaseDataset
from zoo.problems import ZOO

PROBLEMS = {problem.name: problem for problem in ZOO if problem.kind != "paper"}


class Dataset(BaseDataset):
    """Generated counts, weights and spectra of 18 kinds."""

    name = "zoo"
    parameters = {"problem": list(PROBLEMS)}

    def get_data(self) -> dict[str, Any]:
        """Generate the data."""
        problem = PROBLEMS[self.problem]
        return {"V": problem.make(), "rank": problem.rank}
