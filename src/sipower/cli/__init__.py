# SPDX-License-Identifier: BSD-3-Clause
"""The command `sipower`. Importing the modules registers the commands in the order of --help."""

from sipower.cli import fit, transform, report, differential, rank, consensus  # noqa: F401 - registers # isort: skip
from sipower.cli import verify  # noqa: F401 # isort: skip
from sipower.cli import refit, compare  # noqa: F401 # isort: skip
from sipower.cli import convert, cache, demo, bench, info, datasets, reproduce  # noqa: F401 # isort: skip
from sipower.cli.application import app, main

__all__ = ["app", "main"]
