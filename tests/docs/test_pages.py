# SPDX-License-Identifier: BSD-3-Clause
"""The reference and the page of the command line are complete."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import sipower

DOCS = Path(__file__).parents[2] / "docs"
MODULES = (
    "problems",
    "nmf",
    "datasets",
    "io",
    "selection",
    "inference",
    "pl",
    "report",
    "results",
    "store",
    "results",
    "tl",
    "dask",
)


def documented_objects() -> set[int]:
    """Identities of all objects in the summaries of the reference."""
    names = set()
    for page in DOCS.glob("api/*.md"):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule::"):
                module = line.split()[-1]
            elif re.fullmatch(r"   \w+", line):
                names.add(id(getattr(importlib.import_module(module), line.strip())))
    return names


def test_the_reference_lists_every_public_name() -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("distributed")
    documented, text = (
        documented_objects(),
        "".join(page.read_text() for page in DOCS.glob("api/*.md")),
    )
    modules = [sipower, *(importlib.import_module(f"sipower.{name}") for name in MODULES)]
    for module in modules:
        for name in module.__all__:
            thing = getattr(module, name)
            constant = isinstance(thing, dict | tuple)
            is_module = type(thing) is type(sipower)
            there = is_module or (f"`{name}`" in text if constant else id(thing) in documented)
            assert there, f"{module.__name__}.{name}"


def test_every_public_function_has_an_example() -> None:
    """`test_paper_to_code.py` runs them."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("distributed")
    modules = [sipower, *(importlib.import_module(f"sipower.{name}") for name in MODULES)]
    functions = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    assert len(functions) > 60
    assert [name for name, each in functions.items() if ">>>" not in (each.__doc__ or "")] == []


def test_the_page_of_the_command_line_is_complete() -> None:
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from typer.main import get_command  # noqa: PLC0415 - optional

    from sipower.cli import app  # noqa: PLC0415 - optional

    page = (DOCS / "guide" / "command_line.md").read_text(encoding="utf-8")
    command = get_command(app)
    commands = command.commands
    assert set(re.findall(r"\| `sipower (\w+)", page)) == set(commands)
    options = {
        option
        for each in (command, *commands.values())
        for parameter in each.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", page)) - {"--help"}
    assert named <= options, named - options
    of_fit = {option for p in commands["fit"].params for option in p.opts if option[:2] == "--"}
    assert of_fit - {"--report", "--verify"} <= named, of_fit - named


def test_sections_of_docstrings_begin_their_lines():
    """A line that begins at the margin of the file would indent all others, sections included."""
    public = [getattr(sipower, name) for name in sipower.__all__]
    texts = [inspect.getdoc(thing) or "" for thing in public]
    assert sum("\nParameters\n---" in text for text in texts) > 10
    for text in texts:
        assert not re.search(r"\n +(Parameters|Attributes|Returns|Examples)\n +---", text), text
