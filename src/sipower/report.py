# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run as one HTML file."""

from sipower.results.report import write_report

__all__ = ["write_report"]
