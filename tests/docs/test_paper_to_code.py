# SPDX-License-Identifier: BSD-3-Clause
"""The page from paper to code names what exists, and the examples in docstrings run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sipower

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(sipower.__path__, "sipower.")]


def test_paths_of_the_paper_page_exist():
    page = (ROOT / "docs" / "paper_to_code.md").read_text()
    names = re.findall(r"`((?:(?:problems|solvers|nmf|theory|estimators)/)?[a-z_]+\.py)`", page)
    assert len(names) > 12
    for name in names:
        assert (ROOT / "src" / "sipower" / name).exists(), name


def test_functions_of_the_paper_page_exist():
    """What a path is followed by: `file`: `name`, `name`."""
    page = (ROOT / "docs" / "paper_to_code.md").read_text()
    named = re.findall(r"`([a-z_/]+\.(?:py|hpp))`:((?:,? `[\w.]+`)+)", page)
    assert len(named) > 30
    for path, names in named:
        folder = ROOT if path.startswith(("cpp/", "tests/")) else ROOT / "src" / "sipower"
        text = (folder / path).read_text()
        for name in re.findall(r"`([\w.]+)`", names):
            last = name.rsplit(".", maxsplit=1)[-1]
            defined = rf"(def|class|struct|void) {last}\b|^{last}\b.* = "
            assert re.search(defined, text, re.MULTILINE), (path, name)


def test_tests_of_the_paper_page_exist():
    page = (ROOT / "docs" / "paper_to_code.md").read_text()
    named = re.findall(r"`(tests/[a-z_/]+\.py)`(?:: `(test_\w+)`)?", page)
    assert len(named) > 20
    for path, test in named:
        assert not test or f"def {test}(" in (ROOT / path).read_text(), (path, test)
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("name", [m for m in MODULES if "_kernels" not in m])
def test_docstring_examples(name, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0
    pyplot.close("all")
