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

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from sipower.cli import console

DONE, FAULT, BAD_INPUT, INTERRUPTED, NOT_CONVERGED = range(5)

# What users can put right: their input, options, disk, memory and installation.
_OF_USERS = (ValueError, OSError, TypeError, MemoryError, ModuleNotFoundError)
debug = False  # whether errors show where they came from: `sipower --debug`


@contextmanager
def report_errors(saved: str) -> Iterator[None]:
    """Report an error in one sentence, and exit with its code.

    `saved` says in words what an interruption leaves behind.
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
        is_fault, text = not isinstance(error, _OF_USERS), str(error)
        if isinstance(error, MemoryError):
            text = "there is not enough memory for this"
        if is_fault:
            text = f"{type(error).__name__}: {text} (run sipower --debug to see where)"
        console.complain(f"sipower: {text}")
        raise typer.Exit(FAULT if is_fault else BAD_INPUT) from None
