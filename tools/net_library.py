# SPDX-License-Identifier: BSD-3-Clause
"""The public names and commands of the imported version, and which of them the net's cases use."""

from __future__ import annotations

import shlex
import sys
from functools import cache
from typing import Any

import describe

FACES = ("tl", "pl", "dask")  # modules whose names are also those of functions elsewhere


class Library:
    """The public names of the imported version, which remembers what a case has used."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {}
        self._faces: dict[str, dict[str, Any]] = {face: {} for face in FACES}
        for module, name, value in describe.list_public_names():
            face = module.removeprefix("sipower.")
            names = self._faces.get(face, self._names)
            names.setdefault(name, value)
        self.used: set[int] = set()  # identities of public names
        self.options: set[tuple[str, str]] = set()  # commands and groups of options

    def __getattr__(self, name: str) -> Any:
        if name in self._faces:
            return Face(self, name, self._faces[name])
        if name not in self._names:
            raise AttributeError(f"sipower has no public name {name!r}")
        self.used.add(id(self._names[name]))
        return self._names[name]

    @cache  # noqa: B019 - there is one library
    def _commands(self) -> dict[str, Any]:
        return describe.list_commands()

    def call(self, line: str) -> dict[str, Any]:
        """Run a command in this process; return its exit code and what it has printed.

        It may end with 0 or 4 (not converged), and must end with 2 if the line begins with "!".
        """
        from typer.testing import CliRunner  # noqa: PLC0415 - optional

        import sipower.cli  # noqa: PLC0415 - the version that is digested

        words = shlex.split(line.removeprefix("!"))
        sys.argv[1:] = words  # which a run records
        result = CliRunner().invoke(sipower.cli.app, words, prog_name="sipower")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code not in ((2,) if line[0] == "!" else (0, 4)):
            raise RuntimeError(f"sipower {line} exits with {result.exit_code}: {result.stderr}")
        command = self._commands()[words[0]]
        given = {word.partition("=")[0] for word in words[1:]}
        self.options.add((words[0], ""))
        for parameter in command.params:
            if given & {*parameter.opts, *parameter.secondary_opts}:
                self.options.add((words[0], getattr(parameter, "rich_help_panel", None) or ""))
        return {"exit code": result.exit_code, "stdout": result.stdout, "stderr": result.stderr}

    def list_options(self) -> set[tuple[str, str]]:
        """Return every command with each of its groups of options, "" for those without one."""
        return {
            (words, getattr(parameter, "rich_help_panel", None) or "")
            for words, command in self._commands().items()
            if words and not getattr(command, "commands", None)
            for parameter in [*command.params, None]
            if not getattr(parameter, "hidden", False)
        }

    def list_uncovered(self, classes: set[type]) -> list[str]:
        """Name the public functions, classes, commands and groups that no case has used."""
        covered = self.used | {id(kind) for kind in classes}
        names = {
            id(value): f"{module}.{name}"
            for module, name, value in reversed(list(describe.list_public_names()))
            if describe.is_callable_name(value)
        }
        missing = [name for identity, name in names.items() if identity not in covered]
        options = sorted(self.list_options() - self.options)
        return sorted(missing) + [
            f"sipower {command}" + (f", options {group!r}" if group else "")
            for command, group in options
        ]


class Face:
    """The names of one module, such as `lib.tl.nmf`."""

    def __init__(self, library: Library, module: str, names: dict[str, Any]) -> None:
        self._library, self._module, self._names = library, module, names

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(f"sipower.{self._module} has no public name {name!r}")
        self._library.used.add(id(self._names[name]))
        return self._names[name]
