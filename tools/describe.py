# SPDX-License-Identifier: BSD-3-Clause
"""Write what users see of the library as text: api.txt, and the help page of every command.

`python tools/describe.py` writes both again; `tests/test_described.py` holds them to the code.
Signatures are read from the source, so that they do not depend on the version of Python.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
API = ROOT / "api.txt"
HELP = ROOT / "tests" / "cli" / "help"
DRAWN_WITH = HELP / "drawn_with.txt"  # other versions of these libraries draw other pages
WRITE_AGAIN = "If the change is intended: python tools/describe.py"
WIDTH = 100  # columns of a help page
# The public modules, as far as a version has them; `sipower` comes first and lends its names.
MODULES = (
    "problems", "solvers", "nmf", "loop", "data", "kernels", "testing", "datasets", "io", "runs",
    "tl", "pl", "dask", "analysis", "theory", "selection", "inference", "results", "report",
    "estimators", "verification",
)  # fmt: skip
HEADER = f"""\
Every public name of sipower: what `__all__` of the package and of its public modules lists.
"= module.name" is a name that stands above. {WRITE_AGAIN}
"""


# ---- public names ----------------------------------------------------------------------------


def import_public_modules() -> dict[str, ModuleType]:
    """Return the package and its public modules that exist, by name."""
    modules = {}
    for name in ("sipower", *(f"sipower.{name}" for name in MODULES)):
        try:
            modules[name] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    return modules


def list_public_names() -> Iterator[tuple[str, str, Any]]:
    """Yield (module, name, value) of every public name, modules in the order of `MODULES`."""
    for module_name, module in import_public_modules().items():
        for name in sorted(getattr(module, "__all__", ())):
            yield module_name, name, getattr(module, name)


def is_callable_name(value: Any) -> bool:
    """Return whether a value is a function or a class, and not a module, constant or type alias."""
    is_compiled = type(value).__name__ == "nb_func"
    return is_compiled or inspect.isroutine(value) or (
        isinstance(value, type) and not is_alias(value)
    )  # fmt: skip


def is_alias(value: Any) -> bool:
    """Return whether a value is an alias such as NDArray[Any], which is an instance of no class."""
    return hasattr(value, "__origin__") or type(value).__name__ in ("UnionType", "Union")


# ---- signatures ------------------------------------------------------------------------------


def describe_api() -> str:
    """Return the text of api.txt."""
    lines = [HEADER]
    homes: dict[int, str] = {}  # where a name stood first
    last = ""
    public = {id(value) for _, _, value in list_public_names()}
    for module, name, value in list_public_names():
        if module != last:
            lines.append(f"\n[{module}]")
            last = module
        if id(value) in homes and is_callable_name(value):
            lines.append(f"{name} = {homes[id(value)]}")
            continue
        homes[id(value)] = f"{module}.{name}"
        lines += describe_value(name, value, public)
    return "\n".join(lines) + "\n"


def describe_value(name: str, value: Any, public: set[int]) -> list[str]:
    """Return the lines of one public name."""
    if isinstance(value, ModuleType):
        return [f"{name}: module"]
    if is_alias(value):
        return [f"{name}: type alias"]
    if isinstance(value, type):
        return describe_class(name, value, public)
    if is_callable_name(value):
        return [f"{name}{read_signature(value)}"]
    if isinstance(value, dict):
        own = [key for key, item in value.items() if is_own(item)]  # users may register others
        return [f"{name}: dict of {', '.join(map(str, own))}"]
    return [f"{name} = {value!r}"]


def is_own(value: Any) -> bool:
    """Return whether the module of a value, if it has one, belongs to the package."""
    return str(getattr(value, "__module__", "sipower")).partition(".")[0] == "sipower"


def describe_class(name: str, kind: type, public: set[int]) -> list[str]:
    """Return a class with its fields, public methods and properties, inherited ones too."""
    bases = [
        base.__name__
        for base in kind.__bases__
        if base is not object and (id(base) in public or base.__module__ in ("builtins", "enum"))
    ]
    lines = [f"class {name}({', '.join(bases)})" if bases else f"class {name}"]
    own = [base for base in kind.__mro__ if is_own(base)]
    nodes = {base: parse_definition(base) for base in own}
    if issubclass(kind, Enum):
        return lines + [f"    {member.name} = {member.value!r}" for member in kind]
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        fields: dict[str, str] = {}
        for base in reversed(own):
            fields |= read_fields(nodes[base])
        lines += [f"    {field}" for field in fields.values()]
    members: dict[str, str] = {}
    for base in own:
        members = read_members(nodes[base], is_generated=dataclasses.is_dataclass(base)) | members
    return lines + [f"    {members[member]}" for member in sorted(members)]


def read_fields(node: ast.ClassDef) -> dict[str, str]:
    """Return the public fields that the body of a dataclass declares."""
    return {
        item.target.id: ast.unparse(item)
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and not item.target.id.startswith("_")
    }


def read_members(node: ast.ClassDef, *, is_generated: bool) -> dict[str, str]:
    """Return the public methods and properties that the body of a class defines."""
    members = {}
    for item in node.body:
        if not isinstance(item, ast.FunctionDef):
            continue
        is_init = item.name == "__init__" and not is_generated
        if item.name.startswith("_") and not is_init and item.name != "__call__":
            continue
        decorators = {ast.unparse(decorator) for decorator in item.decorator_list}
        if any(decorator.endswith((".setter", ".deleter")) for decorator in decorators):
            continue
        if decorators & {"property", "cached_property", "functools.cached_property"}:
            returns = ast.unparse(item.returns) if item.returns else "Any"
            members[item.name] = f".{item.name}: {returns}"
        else:
            prefix = next((f"{word} " for word in ("classmethod", "staticmethod")
                           if word in decorators), "")  # fmt: skip
            members[item.name] = f"{prefix}.{item.name}{unparse_signature(item)}"
    return members


def read_signature(function: Any) -> str:
    """Return the signature of a function, as its source writes it."""
    node = parse_definition(inspect.unwrap(function))
    if isinstance(node, ast.FunctionDef):
        return unparse_signature(node)
    return str(inspect.signature(function))


def unparse_signature(node: ast.FunctionDef) -> str:
    """Return the arguments and the result of a definition on one line."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(node.args)}){returns}"


def parse_definition(value: Any) -> Any:
    """Return the definition of a function or class, that of a compiled one from the stub."""
    if value.__module__ == "sipower._kernels":
        return parse_stub()[value.__name__]
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


@cache
def parse_stub() -> dict[str, ast.AST]:
    """Return the definitions of the stub of the compiled module by name."""
    folder = Path(importlib.import_module("sipower").__file__ or "").parent
    tree = ast.parse((folder / "_kernels.pyi").read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if hasattr(node, "name")}


# ---- help pages ------------------------------------------------------------------------------


def list_commands(app: Any = None) -> dict[str, Any]:
    """Return the click command of every page of help by its words, "" for the application."""
    from typer.main import get_command  # noqa: PLC0415 - optional

    if app is None:
        app = importlib.import_module("sipower.cli").app
    commands: dict[str, Any] = {}

    def add(words: str, command: Any) -> None:
        commands[words] = command
        for name, inner in getattr(command, "commands", {}).items():
            add(f"{words} {name}".strip(), inner)

    add("", get_command(app))
    return commands


def render_help(words: str) -> str:
    """Return the help page of a command, without colours and 100 columns wide."""
    from typer.testing import CliRunner  # noqa: PLC0415 - optional

    app = importlib.import_module("sipower.cli").app
    environment = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1"}
    result = CliRunner().invoke(
        app, [*words.split(), "--help"], prog_name="sipower", env=environment
    )
    if result.exit_code != 0:
        raise RuntimeError(f"sipower {words} --help exits with {result.exit_code}: {result.output}")
    text = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def help_file(words: str) -> Path:
    """Return the file of a help page, "sipower-fit.txt"."""
    return HELP / f"{'-'.join(['sipower', *words.split()])}.txt"


def describe_libraries() -> str:
    """Return the versions of the libraries that draw the pages, without those of corrections."""
    versions = [(name, version(name).split(".")) for name in ("typer", "rich")]
    return "".join(f"{name} {'.'.join(parts[:2])}\n" for name, parts in versions)


def main() -> None:
    """Write api.txt and all help pages, and remove those of commands that are gone."""
    API.write_text(describe_api(), encoding="utf-8")
    HELP.mkdir(exist_ok=True)
    pages = {help_file(words): render_help(words) for words in list_commands()}
    for file in set(HELP.glob("*.txt")) - pages.keys():
        file.unlink()
    pages[DRAWN_WITH] = describe_libraries()
    for file, page in pages.items():
        file.write_text(page, encoding="utf-8")
    print(f"wrote {API.relative_to(ROOT)} and {len(pages) - 1} pages in {HELP.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
