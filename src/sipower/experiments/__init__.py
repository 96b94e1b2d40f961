# SPDX-License-Identifier: BSD-3-Clause
"""The paper's experiments: protocol, runs, table of results, figures and verdicts."""

from sipower.experiments.budgets import BUDGETS, EXPERIMENTS, Budget
from sipower.experiments.claims import judge_claims
from sipower.experiments.curves import Curves
from sipower.experiments.page import page, table1, write
from sipower.experiments.protocol import Case, Protocol
from sipower.experiments.run import execute, reproduce
from sipower.experiments.table import PlannedRun, read

__all__ = [
    "BUDGETS",
    "EXPERIMENTS",
    "Budget",
    "Case",
    "Curves",
    "PlannedRun",
    "Protocol",
    "execute",
    "judge_claims",
    "page",
    "read",
    "reproduce",
    "table1",
    "write",
]
