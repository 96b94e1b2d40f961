# SPDX-License-Identifier: BSD-3-Clause
"""The results of a fit: the run and its folder, its description, plots, tables and report."""

from sipower.results.folder import load_run, save_run
from sipower.results.run import Run

__all__ = ["Run", "load_run", "save_run"]
