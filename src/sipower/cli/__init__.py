# SPDX-License-Identifier: BSD-3-Clause
"""The command `sipower`: importing its parts adds their commands to the application."""

import sys

import typer

from sipower.cli import choose, convert, files, inspect, paper
from sipower.cli.common import app, reported

__all__ = ["app", "choose", "convert", "files", "inspect", "main", "paper"]


def main() -> None:
    """Run the command; what a terminal cannot show is written as its code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with reported("nothing is saved"):  # such as a full disk behind `sipower info > file`
            app()
    except typer.Exit as end:
        sys.exit(end.exit_code)
