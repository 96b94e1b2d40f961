# SPDX-License-Identifier: BSD-3-Clause
"""What the README and the docstrings show must run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sipower

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(sipower.__path__, "sipower.")]


def test_readme_blocks_run_in_order(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert "converged" in capsys.readouterr().out


@pytest.mark.parametrize("name", [m for m in MODULES if "_kernels" not in m])
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
