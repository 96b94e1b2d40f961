# SPDX-License-Identifier: BSD-3-Clause
"""A real Chromium for the tests that open pages."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 120  # seconds; a busy machine takes its time over plotly

needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"
)


@contextmanager
def open_browser(profile: Path) -> Iterator[Any]:
    """Start a browser that keeps its console's messages, and quit it at the end."""
    from selenium import webdriver  # noqa: PLC0415 - optional
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    browser.set_page_load_timeout(PATIENCE)
    try:
        yield browser
    finally:
        browser.quit()


def wait(driver: Any, condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds and return its value."""
    from selenium.webdriver.support.ui import WebDriverWait  # noqa: PLC0415 - optional

    return WebDriverWait(driver, PATIENCE, poll_frequency=0.1).until(lambda _: condition())
