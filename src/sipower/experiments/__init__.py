# SPDX-License-Identifier: BSD-3-Clause
"""Reproduction of the paper's experiments: protocol, runs, results, figures and verdicts."""

from sipower.experiments.budgets import BUDGETS, EXPERIMENTS
from sipower.experiments.claims import judge_claims
from sipower.experiments.curves import Curves
from sipower.experiments.page import page, table1, write
from sipower.experiments.run import reproduce
from sipower.experiments.table import read

__all__ = [
    "BUDGETS",
    "EXPERIMENTS",
    "Curves",
    "judge_claims",
    "page",
    "read",
    "reproduce",
    "table1",
    "write",
]
