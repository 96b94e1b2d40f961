# SPDX-License-Identifier: BSD-3-Clause
"""The command `sipower`: importing its parts adds their commands to the application."""

from sipower.cli import choose, files, inspect, paper
from sipower.cli.common import app

__all__ = ["app", "choose", "files", "inspect", "main", "paper"]


def main() -> None:
    """Run the command."""
    app()
