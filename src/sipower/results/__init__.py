# SPDX-License-Identifier: BSD-3-Clause
"""What a fit leaves behind: the run and its folder, its description, plots, tables and report."""

from sipower.results.run import Run, load_run, save_run

__all__ = ["Run", "load_run", "save_run"]
