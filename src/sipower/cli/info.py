# SPDX-License-Identifier: BSD-3-Clause
"""`sipower info`: show the installed versions and the processor, or what a file holds."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from sipower.cli.application import command
from sipower.cli.console import Console
from sipower.cli.describe_file import describe_file
from sipower.cli.options import Json
from sipower.datasets import CATALOGUE, is_present
from sipower.kernels import count_threads, instruction_set
from sipower.results.provenance import optional_packages, provenance

_PATH = "A run, store, checkpoint, result or table that sipower has written: describe it."


@command("nothing is saved")
def info(
    path: Annotated[Path | None, typer.Argument(help=_PATH)] = None, *, as_json: Json = False
) -> None:
    """Describe a file or folder; without one, show versions and processor for a bug report."""
    console = Console(as_json)
    if path is None:
        _say_versions(console)
    else:
        _say_file(path, console)


def _say_file(path: Path, console: Console) -> None:
    facts = describe_file(path)
    console.event("file", path=str(path), **facts)
    writer = facts.pop("sipower")
    by = "no version of sipower recorded" if writer is None else f"written by sipower {writer}"
    kind, version = facts.pop("kind"), facts.pop("format")
    console.say(f"{path}: {kind}, " + (f"format {version}, {by}" if version else "without format"))
    for name, value in facts.items():
        if value is not None:
            console.say(f"  {name.replace('_', ' '):16} {_as_text(name, value)}")


def _as_text(name: str, value: Any) -> str:
    """Return a fact on one line: sizes, the first names, numbers with six digits."""
    if name == "shape":
        return " x ".join(f"{size:,}" for size in value)
    if isinstance(value, dict) and set(value) == {"count", "first"}:
        more = ", ..." if value["count"] > len(value["first"]) else ""
        return f"{value['count']:,}: {', '.join(map(str, value['first']))}{more}"
    if isinstance(value, dict):
        return "; ".join(
            f"{key} {_as_text(key, part)}" for key, part in value.items() if part is not None
        )
    if isinstance(value, list):
        return ", ".join(_as_text("", part) for part in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _say_versions(console: Console) -> None:
    facts, packages = provenance(), optional_packages()
    threads, present = count_threads(None), [name for name in CATALOGUE if is_present(name)]
    console.event("info", **facts, packages=packages, threads=threads,
                  instruction_set=instruction_set(), datasets=present)  # fmt: skip
    console.say(f"sipower {facts['versions']['sipower']} ({facts['commit']})")
    console.say(f"processor: {facts['cpu']}; kernels for {instruction_set()}; {threads} threads")
    for name, version in (facts["versions"] | packages).items():
        if name != "sipower":
            console.say(f"  {name:14} {version or 'not installed'}")
    console.say(f"data sets: {', '.join(present)}")
    console.say(f"SIPOWER_DATA: {os.environ.get('SIPOWER_DATA', 'not set')}")
