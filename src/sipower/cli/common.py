# SPDX-License-Identifier: BSD-3-Clause
"""What all commands share: the application, where they speak, and how they end.

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

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import IO, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from sipower.selection.outcome import known

__all__ = [
    "BAD_INPUT",
    "INTERRUPTED",
    "NOT_CONVERGED",
    "Speaker",
    "app",
    "formats",
    "need",
    "ranks",
    "reported",
]

FAULT, BAD_INPUT, INTERRUPTED, NOT_CONVERGED = 1, 2, 3, 4

# Of click, which newer versions of typer contain.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class _Commands(TyperGroup):
    """Words that make no command are told in plain letters: a file's name may be among them."""

    def make_context(self, *words: Any, **more: Any) -> Any:
        """Understand the words."""
        with _plainly():
            return super().make_context(*words, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _plainly():
            return super().invoke(ctx)


@contextmanager
def _plainly() -> Iterator[None]:
    try:
        yield
    except _UsageError as problem:
        problem.message = printable(problem.message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 a fault of sipower, 2 bad input, 3 interrupted with results "
    "saved, 4 saved but not converged.",
)
# Formats of the factors, and the libraries that write them.
FORMATS = {"csv": ("pandas",), "parquet": ("pandas", "pyarrow"), "h5ad": ("anndata",)}
_debug = False


class _Console(Console):
    """Where words go; rich would end the work when nobody reads them."""

    def on_broken_pipe(self) -> None:
        """Go on in silence."""
        _go_silent(self.file)


console, errors = _Console(), _Console(stderr=True)
_unsaid: list[OSError] = []  # why words could not be written


def _version(asked: bool) -> None:
    if asked:
        console.print(f"sipower {version('sipower')}", highlight=False)
        raise typer.Exit


@app.callback()
def sipower(
    _: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="And exit."),
    debug: bool = typer.Option(False, "--debug", help="Show where an error came from."),
) -> None:
    """Scale-invariant power iteration, and the KL-divergence NMF built on it."""
    global _debug  # noqa: PLW0603 - an option of the whole command
    _debug = debug


class Speaker:
    """Tells a person in words or a machine in JSON lines what happens, as long as they listen."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    def say(self, text: str) -> None:
        """A sentence for a person; control characters in names cannot reach the terminal."""
        if not self.as_json:
            with _heard():
                console.print(printable(text), highlight=False, soft_wrap=True, markup=False)

    def event(self, name: str, **facts: Any) -> None:
        """A line for a machine."""
        if self.as_json:
            line = json.dumps({"event": name, **known(facts)}, allow_nan=False)
            with _heard():
                print(line, flush=True)  # noqa: T201 - what --json asks for


@contextmanager
def _heard() -> Iterator[None]:
    """Nobody reads on (`| head`), or the disk is full: the work goes on in silence."""
    try:
        yield
    except OSError as problem:
        _go_silent(sys.stdout)
        if not isinstance(problem, BrokenPipeError):
            _unsaid.append(problem)


def _go_silent(stream: IO[str]) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def printable(text: str) -> str:
    """The text on one line, with whatever a terminal would obey or hide shown as its code."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class Outcome:
    """What an interruption would leave behind, in words."""

    def __init__(self, saved: str) -> None:
        self.saved = saved


@contextmanager
def reported(
    saved: str = "what is finished is saved, the same command goes on",
) -> Iterator[Outcome]:
    """Say in one sentence what went wrong, and leave with the code for it."""
    outcome = Outcome(saved)
    try:
        yield outcome
        _check_said()
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        _complain(f"Interrupted; {outcome.saved}.")
        raise typer.Exit(INTERRUPTED) from None
    except (ValueError, OSError, TypeError, MemoryError, ModuleNotFoundError) as problem:
        if _debug:
            raise
        lacking = isinstance(problem, MemoryError)
        _complain(f"sipower: {'there is not enough memory for this' if lacking else problem}")
        raise typer.Exit(BAD_INPUT) from None
    except Exception as problem:
        if _debug:
            raise
        _complain(
            f"sipower: {type(problem).__name__}: {problem} (run sipower --debug to see where)"
        )
        raise typer.Exit(FAULT) from None


def _check_said() -> None:
    """Once the work is done, it is an error that words were lost."""
    if _unsaid:
        raise OSError(f"the work is done, but what it said is lost: {_unsaid.pop()}")


def _complain(text: str) -> None:
    errors.print(printable(text), highlight=False, soft_wrap=True, markup=False)


def need(*modules: str) -> None:
    """Refuse at once what would fail after hours."""
    for module in modules:
        if find_spec(module) is None:
            raise ValueError(f"{module} is not installed: pip install 'sipower[all]'")


def ranks(text: str) -> list[int]:
    """Numbers of components: ``20``, ``5,10,20``, ``5:50`` or ``5:50:5``, the end included."""
    try:
        if ":" in text:
            first, last, *step = (int(part) for part in text.split(":"))
            (stride,) = step or [1]
            found = list(range(first, last + 1, stride))
        else:
            found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise ValueError(f"-k {text}: expected numbers of components as 20, 5,10,20 or 5:50:5.")
    return found


def formats(text: str | None) -> list[str]:
    """Formats of the factors beside factors.npz."""
    found = [] if text is None else [part.strip().removeprefix(".") for part in text.split(",")]
    for name in found:
        if name not in FORMATS:
            raise ValueError(f"--also {name}: choose of {', '.join(FORMATS)}.")
    need(*{module for name in found for module in FORMATS[name]})
    return found
