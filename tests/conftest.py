# SPDX-License-Identifier: BSD-3-Clause
"""Settings that must be there before anything is imported, a clock, and the count of fits."""

import os
import signal
from types import SimpleNamespace

import pytest

# scikit-learn's check of array API input runs only with it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Started with `&` or `nohup` a shell has its children ignore Ctrl-C, and they theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def set_clock(monkeypatch):
    """Give the library another clock; that of other threads, Dask's among them, goes on."""

    def use(now):
        for module in ("loop.trace", "estimators.fit", "estimators.klnmf"):
            monkeypatch.setattr(f"sipower.{module}.time", SimpleNamespace(monotonic=now))

    return use


def pytest_terminal_summary(terminalreporter):
    """Say how many fits were generated, in all processes together."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    fits = sum(n for report in reports for name, n in report.user_properties if name == "fits")
    if fits:
        terminalreporter.write_line(f"{fits:,} generated fits")
