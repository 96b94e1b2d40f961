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
from sipower.cli.console import check_output, complain
from sipower.cli.exit_codes import report_errors

# click.UsageError, which newer versions of typer have a copy of.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class _Group(TyperGroup):
    """The commands, with wrong arguments reported in one sentence as all other errors."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run a command and exit."""
        try:
            code = super().main(*arguments, **settings | {"standalone_mode": False})
        except _UsageError as error:
            text, where = error.format_message(), error.ctx  # type: ignore[attr-defined]
            if text:  # without arguments typer has printed the help
                complain(f"sipower: {text} (see {where.command_path} --help)")
            code = exit_codes.BAD_INPUT
        sys.exit(code)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 a fault of sipower, 2 bad input, 3 interrupted with results "
    "saved, 4 saved but not converged.",
)


def _print_version(show: bool) -> None:
    if show:
        typer.echo(f"sipower {__version__}")
        raise typer.Exit


@app.callback()
def sipower(
    _: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True,
                           help="And exit."),
    debug: bool = typer.Option(False, "--debug", help="Show where an error came from."),
) -> None:  # fmt: skip
    """Scale-invariant power iteration, and the KL-divergence NMF built on it."""
    exit_codes.debug = debug


def command(saved: str) -> Callable[[Callable[..., int | None]], None]:
    """Register a function that may return an exit code as a command of its name.

    A parameter whose type is a dataclass stands for one option per field: this is how commands
    share options. `saved` says in words what an interruption leaves behind.
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
    """Check that optional dependencies are installed, before a long task needs them."""
    for module in modules:
        if find_spec(module) is None:
            raise ValueError(f"{module} is not installed: pip install 'sipower[all]'")


def main() -> None:
    """Run the command; characters that a terminal cannot show are written as their codes."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None if it was closed
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with report_errors("nothing is saved"):  # help can fail too, on a full disk
            app()
    except typer.Exit as end:
        sys.exit(end.exit_code)
