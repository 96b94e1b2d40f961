# SPDX-License-Identifier: BSD-3-Clause
"""The application that the commands register with, and the entry point `main`."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from importlib.util import find_spec
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer
from typer.core import TyperGroup

from sipower import __version__
from sipower.cli import exit_codes
from sipower.cli.console import check_output, print_error
from sipower.cli.exit_codes import report_errors

# This is click.UsageError, of which newer versions of typer have their own copy.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class _Group(TyperGroup):
    """The group of commands, which reports wrong arguments in one sentence like other errors."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run a command and exit."""
        try:
            code = super().main(*arguments, **settings | {"standalone_mode": False})
        except _UsageError as error:
            text, where = error.format_message(), error.ctx  # type: ignore[attr-defined]
            if text:  # empty if typer has printed the help instead
                print_error(f"sipower: {text} (see {where.command_path} --help)")
            code = exit_codes.BAD_INPUT
        sys.exit(code)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 converged, or stopped by --max-iter or --max-time; 1 a bug in sipower; "
    "2 bad input or options; 3 interrupted, what was finished is saved; 4 saved, but not converged "
    "within the default number of rounds, stalled or not verified.",
)


def _print_version(show: bool) -> None:
    if show:
        typer.echo(f"sipower {__version__}")
        raise typer.Exit


@app.callback()
def sipower(
    _: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True,
                           help="Show the version and exit."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:  # fmt: skip
    """Scale-invariant power iteration, and the KL-divergence NMF built on it."""
    exit_codes.debug = debug


def command(saved: str) -> Callable[[Callable[..., int | None]], None]:
    """Register a function as a command of the same name; it may return an exit code.

    A parameter whose type is a dataclass becomes one option per field, so that commands can share
    options. `saved` is a phrase for messages that says what is saved after an interruption.
    """

    def register(function: Callable[..., int | None]) -> None:
        types = get_type_hints(function, include_extras=True)
        groups: dict[str, Any] = {name: kind for name, kind in types.items() if is_dataclass(kind)}

        @wraps(function)
        def run(**values: Any) -> None:
            for name, kind in groups.items():
                values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
            with report_errors(saved):
                code = function(**values)
                check_output()
                raise typer.Exit(code or exit_codes.DONE)

        parameters: list[Parameter] = []
        for p in signature(function).parameters.values():
            own = [p.replace(kind=Parameter.KEYWORD_ONLY, annotation=types[p.name])]
            parameters += _parameters(groups[p.name]) if p.name in groups else own
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command()(run)

    return register


def _parameters(options: Any) -> Iterator[Parameter]:
    """Yield a parameter for each field of a dataclass of options."""
    types = get_type_hints(options, include_extras=True)
    for f in fields(options):
        default = Parameter.empty if f.default is MISSING else f.default
        yield Parameter(f.name, Parameter.KEYWORD_ONLY, default=default, annotation=types[f.name])


def require(*modules: str) -> None:
    """Check that optional dependencies are installed before starting a long task."""
    for module in modules:
        if find_spec(module) is None:
            raise ValueError(f"{module} is not installed: pip install 'sipower[all]'")


def main() -> None:
    """Run the command; characters that the terminal cannot encode are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None if it was closed
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with report_errors("nothing is saved"):  # printing the help can fail too, on a full disk
            app()
    except typer.Exit as end:
        sys.exit(end.exit_code)
