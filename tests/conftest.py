# SPDX-License-Identifier: BSD-3-Clause
"""Settings needed before any import, a clock, and counts of fits and messages."""

import os
import signal
from types import SimpleNamespace

import pytest

import messages

# scikit-learn's check of array API input runs only with it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Started with `&` or `nohup` a shell has its children ignore Ctrl-C, and they theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _cache_folder(tmp_path_factory):
    """Keep converted files away from the cache of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIPOWER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def set_clock(monkeypatch):
    """Give the library another clock; that of other threads, Dask's among them, goes on."""

    def use(now):
        for module in ("loop.trace", "estimators.fit", "estimators.fitting"):
            monkeypatch.setattr(f"sipower.{module}.time", SimpleNamespace(monotonic=now))

    return use


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test that provokes a message which nobody understands."""
    with messages.collect():
        result = yield
    unclear = {
        text: problems for text in messages.provoked if (problems := messages.complaints(text))
    }
    item.user_properties.append(("messages", sorted(set(messages.provoked))))
    assert unclear == {}
    return result


def pytest_terminal_summary(terminalreporter):
    """Say how many fits were generated and messages checked, in all processes together."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    properties = [each for report in reports for each in report.user_properties]
    fits = sum(value for name, value in properties if name == "fits")
    texts = {text for name, value in properties if name == "messages" for text in value}
    for number, kind in ((fits, "generated fits"), (len(texts), "messages checked")):
        if number:
            terminalreporter.write_line(f"{number:,} {kind}")
