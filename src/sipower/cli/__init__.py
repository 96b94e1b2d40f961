# SPDX-License-Identifier: BSD-3-Clause
"""The command `sipower`: importing its parts adds their commands to the application."""

import sys

from sipower.cli import choose, convert, files, inspect, paper
from sipower.cli.common import app

__all__ = ["app", "choose", "convert", "files", "inspect", "main", "paper"]


def main() -> None:
    """Run the command; what a terminal cannot show is written as its code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app()
