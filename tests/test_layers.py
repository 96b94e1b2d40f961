# SPDX-License-Identifier: BSD-3-Clause
"""The layers that import-linter checks name every module of the package, once."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
DOORS = {"sipower", "sipower.__main__", "sipower._kernels"}  # import from everywhere, or nothing


def layer_names():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract, _ = settings["tool"]["importlinter"]["contracts"]  # the other is of the verifier
    return [name.strip() for layer in contract["layers"] for name in layer.split("|")]


def test_every_module_has_one_layer():
    layers = layer_names()
    assert len(set(layers)) == len(layers)
    for file in SOURCE.rglob("*.py"):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if module in DOORS:
            continue
        own = [name for name in layers if f"{module}.".startswith(f"{name}.")]
        inside = [name for name in layers if name.startswith(f"{module}.")]
        is_package = file.name == "__init__.py"
        assert len(own) == 1 or (is_package and not own and inside), (module, own)


def test_every_layer_is_a_module():
    for name in layer_names():
        path = SOURCE.joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), name


def test_no_two_classes_have_the_same_name():
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in SOURCE.rglob("*.py")]
    names = Counter(n.name for t in trees for n in ast.walk(t) if isinstance(n, ast.ClassDef))
    again = {name for name, count in names.items() if count > 1}
    assert again <= {"KLNMF", "CallbackSupportMixin"}  # on Dask too; for an older scikit-learn
