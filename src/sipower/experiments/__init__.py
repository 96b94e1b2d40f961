# SPDX-License-Identifier: BSD-3-Clause
"""The paper's experiments: protocol, runs, table, figures and verdicts."""

from sipower.experiments.page import page, table1, write
from sipower.experiments.protocol import BUDGETS, EXPERIMENTS, Budget
from sipower.experiments.run import execute, reproduce
from sipower.experiments.table import Run, read
from sipower.experiments.verdict import verdicts

__all__ = [
    "BUDGETS",
    "EXPERIMENTS",
    "Budget",
    "Run",
    "execute",
    "page",
    "read",
    "reproduce",
    "table1",
    "verdicts",
    "write",
]
