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
    return _run_python([str(Path(__file__).with_name(name)), *map(str, arguments)], environment)


def run_code(code: str, *arguments: Any) -> str:
    """What a program prints."""
    return _run_python(["-c", textwrap.dedent(code), *map(str, arguments)], {})


def _run_python(words: list[str], environment: dict[str, str]) -> str:
    """Anything but a clean end fails the test with what the process complained of."""
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", *words], env=os.environ | environment,
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stderr}"
    assert result.stderr == ""
    return result.stdout
