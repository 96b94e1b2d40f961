# SPDX-License-Identifier: BSD-3-Clause
"""Output of the commands: sentences for people, or JSON lines for programs."""

import errno
import json
import math
import os
import re
import shlex
import sys
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console as Terminal
from rich.table import Table

from sipower._files import printable
from sipower.selection.outcome import as_plain

terminal = Terminal()
# Arguments of the library in messages that the command prints as options.
_ARGUMENT = re.compile(
    r"\b(?P<name>layer|layout|solver|text_column|transpose)=(?P<value>True|'[^']*'|\"[^\"]*\")"
)
_OPTIONS = {
    name: f"--{name.replace('_', '-').lower()}"
    for name in (
        "sample_weight", "feature_weight", "weights", "mask", "offsets", "batch", "batch_prior",
        "alpha_W", "alpha_H", "l1_ratio", "prior_W", "prior_H", "guides", "guide_strength",
        "groups", "min_groups", "min_cosine",
    )
} | {"components_fixed": "--fixed", "n_components": "--components", "ranks": "-k"}  # fmt: skip
_NAMES = "|".join(_OPTIONS)
_NAMED = re.compile(
    rf"`(?P<quoted>{_NAMES})`|\banother (?P<other>{_NAMES})\b"
    rf"|The '(?P<invalid>{_NAMES})' parameter of KLNMF"  # scikit-learn's words
)
_failures: list[OSError] = []  # errors that prevented output


class Console:
    """A console that prints sentences or, with `as_json`, one JSON object per line."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    def say(self, text: str) -> None:
        """Print a sentence for people."""
        if not self.as_json:
            _print(printable(text))

    def event(self, name: str, **facts: Any) -> None:
        """Print an event for programs."""
        if self.as_json:
            _print(json.dumps({"event": name, **_as_finite(as_plain(facts))}, allow_nan=False))

    def table(self, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        """Print a table for people."""
        if not self.as_json:
            table = Table(*headings)
            for row in rows:
                table.add_row(*row)
            with terminal.capture() as text:
                terminal.print(table)
            _print(text.get().rstrip("\n"))


def _as_finite(value: Any) -> Any:
    """Return plain data with None for infinite numbers, such as the gap before a feature fits."""
    if isinstance(value, dict):
        return {key: _as_finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_finite(part) for part in value]
    return None if isinstance(value, float) and math.isinf(value) else value


def _print(text: str) -> None:
    """Print a line; continue if the pipe is closed (`| head`) or the disk is full."""
    try:
        typer.echo(text)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not _is_closed_pipe(error):
            _failures.append(error)


def _is_closed_pipe(error: OSError) -> bool:
    """Return whether the program that reads the output has ended; Windows calls that EINVAL."""
    on_windows = sys.platform == "win32" and error.errno == errno.EINVAL
    return on_windows or isinstance(error, BrokenPipeError)


def check_output() -> None:
    """Raise an error if output of the command could not be written."""
    if _failures:
        raise OSError(f"the work is done, but its output could not be written: {_failures.pop()}")


def print_error(text: str) -> None:
    """Print a line to standard error."""
    typer.echo(printable(text), err=True)


def name_options(text: str) -> str:
    """Return a message of the library with arguments written as options: --layer counts."""
    text = re.sub(r"\bn_components = (\d+)", r"--components \1", text)
    return _NAMED.sub(_name_option, _ARGUMENT.sub(_as_option, text))


def _name_option(match: re.Match[str]) -> str:
    option = _OPTIONS[match["quoted"] or match["other"] or match["invalid"]]
    return f"another {option}" if match["other"] else option


def option_name(argument: str) -> str:
    """Return the option for an argument of the library, or the argument if there is none."""
    return _OPTIONS.get(argument, argument)


def _as_option(match: re.Match[str]) -> str:
    option = f"--{match['name'].replace('_', '-')}"
    return option if match["value"] == "True" else f"{option} {shlex.quote(match['value'][1:-1])}"
