# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run as one HTML file that opens offline."""

from sipower.results.report.page import write_report

__all__ = ["write_report"]
