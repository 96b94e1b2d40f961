# SPDX-License-Identifier: BSD-3-Clause
"""The exit codes of the command, and the errors that lead to them.

====  ==============================================================================
code  meaning
====  ==============================================================================
0     success: converged, or stopped by ``--max-iter`` or ``--max-time``
1     a bug in sipower; ``--debug`` shows the traceback
2     bad input or options
3     interrupted; what was finished is saved
4     saved, but not converged within the default number of rounds, stalled or not verified
====  ==============================================================================
"""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from sipower._files import NO_ROOM
from sipower.cli import console

DONE, FAULT, BAD_INPUT, INTERRUPTED, NOT_CONVERGED = range(5)

# Errors that users can fix: input, options, disk, memory and installation.
_USER_ERRORS = (ValueError, OSError, TypeError, MemoryError, ModuleNotFoundError)
debug = False  # whether to show tracebacks: `sipower --debug`


@contextmanager
def report_errors(saved: str) -> Iterator[None]:
    """Report an error in the block in one sentence, and exit with its code.

    `saved` is a phrase for messages that says what is saved after an interruption, or if the disk
    is full.
    """
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        console.print_error(f"Interrupted; {saved}.")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if debug:
            raise
        is_fault, text = not isinstance(error, _USER_ERRORS), str(error)
        if isinstance(error, MemoryError):
            text = "there is not enough memory"
        if isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is not None:
            text = (
                f"{error.filename} could not be written, because {NO_ROOM[error.errno]} "
                f"({error.strerror}): make room; {saved}."
            )
        if is_fault:
            text = f"{type(error).__name__}: {text} (run sipower --debug to see where)"
        console.print_error(f"sipower: {console.name_options(text)}")
        raise typer.Exit(FAULT if is_fault else BAD_INPUT) from None
