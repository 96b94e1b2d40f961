# SPDX-License-Identifier: BSD-3-Clause
"""Processes of their own for tests that may crash, hang or use up what a process has."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

SECONDS = 600  # a process that takes longer hangs


def run_script(name: str, *arguments: Any, **environment: str) -> str:
    """What a script of this folder prints."""
    return _printed([str(Path(__file__).with_name(name)), *map(str, arguments)], environment)


def run_code(code: str, *arguments: Any) -> str:
    """What a program prints."""
    return _printed(["-c", textwrap.dedent(code), *map(str, arguments)], {})


def _printed(words: list[str], environment: dict[str, str]) -> str:
    """Anything but a clean end fails the test with what the process complained of."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *words], env=os.environ | environment,
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"
    assert done.stderr == ""
    return done.stdout
