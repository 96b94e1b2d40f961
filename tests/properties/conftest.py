# SPDX-License-Identifier: BSD-3-Clause
"""Adds up the generated fits of all processes and says how many there were."""


def pytest_terminal_summary(terminalreporter):
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    fits = sum(n for report in reports for name, n in report.user_properties if name == "fits")
    if fits:
        terminalreporter.write_line(f"{fits:,} generated fits")
