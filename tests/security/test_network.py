# SPDX-License-Identifier: BSD-3-Clause
"""Nothing reaches a network unless it is asked to: not the library, nor what it writes."""

import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from chromium import PATIENCE, wait
from chromium import needs_browser as with_browser
from results.test_browser import driver  # noqa: F401 - a fixture
from security.hostile import NAMES
from sipower.report import write_report
from sipower.results import Run


def test_no_part_of_the_library_reaches_out(tmp_path):
    words = [sys.executable, Path(__file__).parent / "offline.py", tmp_path]
    result = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    control, attempts = json.loads(result.stderr.splitlines()[-1])
    assert "socket.connect" in control
    assert attempts == []


@pytest.fixture
def server():
    """A real server, and what it was asked for."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/", requests
        listening.shutdown()
        thread.join()


@with_browser
def test_a_report_runs_no_name_and_reaches_nobody(tmp_path, server, driver):  # noqa: F811 - the fixture
    """In a real browser; what might ever get in is stopped by the page's own policy."""
    address, requests = server
    size = len(NAMES)
    rng = np.random.default_rng(0)
    facts = {name: name for name in NAMES} | {"input": {"file": NAMES[1]}, "status": NAMES[0]}
    run = Run(rng.random((size, 2)), rng.random((2, size)), (), facts, NAMES, NAMES)
    driver.get(write_report(run, tmp_path / "report.html").as_uri())
    wait(driver, lambda: driver.execute_script("return document.querySelector('.main-svg')"))
    assert driver.execute_script("return typeof window.pwned") == "undefined"
    text = driver.find_element("id", "component-table").get_attribute("textContent")
    for name in NAMES[:5]:
        assert name in text
    foreign = "return document.querySelectorAll('main a, iframe, object').length"
    assert driver.execute_script(foreign) == 0
    handlers = "e.getAttributeNames().filter((name) => name.startsWith('on'))"
    handlers = f"return [...document.querySelectorAll('*')].flatMap((e) => {handlers})"
    assert driver.execute_script(handlers) == []
    driver.set_script_timeout(PATIENCE)
    ways = {
        "fetch": "fetch(a).then(() => done('open'), () => done('shut'))",
        "image": "const i = new Image(); i.onload = i.onerror = (e) => done(e.type); i.src = a",
        "script": "const s = document.createElement('script'); s.onload = () => done('open');"
                  "s.onerror = () => done('shut'); s.src = a; document.body.append(s)",
        "frame": "const f = document.createElement('iframe'); f.src = a; document.body.append(f);"
                 "setTimeout(() => done('shut'), 500)",
        "beacon": "navigator.sendBeacon(a); setTimeout(() => done('shut'), 500)",
        "form": "const f = document.createElement('form'); f.action = a;"
                "document.body.append(f); f.submit(); setTimeout(() => done('shut'), 500)",
    }  # fmt: skip
    for way, script in ways.items():
        outcome = driver.execute_async_script(
            f"const [a, done] = arguments; {script}", address + way
        )
        assert outcome in ("shut", "error"), way
    assert requests == []
    driver.get(address + "control")
    assert requests[0] == "/control"
    driver.get_log("browser")  # what the policy has stopped
