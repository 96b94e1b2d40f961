# SPDX-License-Identifier: BSD-3-Clause
"""What a fit leaves behind: the run and its folder, its description, plots, tables and report."""

from sipower.results.folder import load_run, save_run
from sipower.results.run import Run

__all__ = ["Run", "load_run", "save_run"]
