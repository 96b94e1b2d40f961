# SPDX-License-Identifier: BSD-3-Clause
"""The exit codes of the command, and the errors that lead to them.

====  ==============================================================================
code  meaning
====  ==============================================================================
0     done: converged, or stopped by a limit that was asked for
1     a fault of sipower itself; ``--debug`` shows where
2     bad input or options
3     interrupted; what was finished is saved
4     saved, but not converged within the default number of rounds
====  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from sipower.cli import console

__all__ = ["BAD_INPUT", "DONE", "FAULT", "INTERRUPTED", "NOT_CONVERGED", "report_errors"]

DONE, FAULT, BAD_INPUT, INTERRUPTED, NOT_CONVERGED = range(5)

# What users can put right: their input, options, disk, memory and installation.
_OF_USERS = (ValueError, OSError, TypeError, MemoryError, ModuleNotFoundError)
debug = False  # whether errors show where they came from: `sipower --debug`


@contextmanager
def report_errors(saved: str) -> Iterator[None]:
    """Report an error in one sentence, and exit with its code.

    Parameters
    ----------
    saved
        What an interruption leaves behind, in words.
    """
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        console.complain(f"Interrupted; {saved}.")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if debug:
            raise
        if isinstance(error, MemoryError):
            console.complain("sipower: there is not enough memory for this")
        elif isinstance(error, _OF_USERS):
            console.complain(f"sipower: {error}")
        else:
            where = "(run sipower --debug to see where)"
            console.complain(f"sipower: {type(error).__name__}: {error} {where}")
        raise typer.Exit(BAD_INPUT if isinstance(error, _OF_USERS) else FAULT) from None
