# SPDX-License-Identifier: BSD-3-Clause
"""Where a result comes from: versions, processor, commit."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["provenance"]


@cache
def provenance() -> dict[str, Any]:
    """Versions, processor and commit."""
    names = ("sipower", "numpy", "scipy")
    return {
        "versions": {"python": platform.python_version(), **{n: version(n) for n in names}},
        "cpu": _processor(),
        "commit": _commit(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """Of the checkout whose src/sipower this is, if it is one."""
    package = Path(__file__).parent
    try:
        top = _git(package, "rev-parse", "--show-toplevel")
        if Path(top, "src", "sipower").resolve() == package.resolve():
            return _git(package, "describe", "--always", "--dirty", "--abbrev=12")
    except (OSError, subprocess.CalledProcessError):
        pass
    return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    ask = ["git", "-C", str(folder), *arguments]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
