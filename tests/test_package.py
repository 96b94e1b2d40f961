# SPDX-License-Identifier: BSD-3-Clause
"""The package as a whole: its public names, its import, its effect on the process."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sipower
from sipower import nmf, problems


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("module", [sipower, nmf, problems])
def test_public_names_exist_and_are_sorted_out(module):
    assert all(isinstance(name, str) and hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


def test_importing_leaves_floating_point_alone():
    """Subnormal numbers survive: no part of the module was linked with -ffast-math."""
    code = (
        "import numpy as np; import sipower.kernels;"
        "tiny = np.float64(5e-324); assert tiny > 0 and tiny / 2 == 0 and tiny * 3 > tiny;"
        "small = np.full(64, 1e-310); assert (small * 0.5 > 0).all(), 'flush to zero is on'"
    )
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_optional_and_heavy_packages_are_not_imported():
    """Beyond what scikit-learn's NMF brings in by itself."""
    code = "import {}, sys; print(*sorted(m for m in sys.modules if '.' not in m))"
    ours, theirs = (
        set(python(code.format(m)).stdout.split()) for m in ("sipower", "sklearn.decomposition")
    )
    optional = {"pandas", "matplotlib", "plotly", "dask", "typer", "rich", "anndata", "h5py"}
    assert not (ours - theirs) & optional


def test_instruction_set_can_be_pinned():
    code = "import sipower; print(sipower.instruction_set())"
    assert python(code, SIPOWER_ISA="baseline").stdout.strip() == "baseline"
    wrong = python(code, SIPOWER_ISA="pdp-11")
    assert wrong.returncode != 0
    assert "SIPOWER_ISA=pdp-11 is not supported by this processor" in wrong.stderr


def test_instruction_sets_agree():
    """The baseline kernels and those of this processor differ by rounding alone."""
    code = (
        "import numpy as np; from sipower import *; from sipower.nmf import *;"
        "V = np.random.default_rng(0).poisson(1.0, (60, 50));"
        "r = solve(Factorization(V, 4), Alternating(SciPiRule()), stop=Stop(0, rounds=20));"
        "print(repr(r.value))"
    )
    values = [
        float(python(code, SIPOWER_ISA=level).stdout)
        for level in ("baseline", sipower.instruction_set())
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-10)


def test_version_is_the_installed_one():
    from importlib.metadata import version  # noqa: PLC0415

    assert sipower.__version__ == version("sipower")
    assert np.lib.NumpyVersion(np.__version__) >= "2.0.0"


def test_the_public_surface():
    """About 40 names; `dir` shows them and nothing else, before and after they are used."""
    assert 30 <= len(sipower.__all__) <= 43
    code = "import sipower; print(*dir(sipower))"
    fresh = python(code).stdout.split()
    assert fresh == dir(sipower) == sorted(sipower.__all__)
    doors = {"dask", "datasets", "io", "pl", "report", "results", "tl"}
    assert doors <= set(sipower.__all__)
    for name in sipower.__all__:
        assert getattr(sipower, name) is getattr(sipower, name)
    assert {"open_on_disk", "write_store"} <= set(sipower.io.__all__)
    assert {"Run", "load_run", "save_run"} == set(sipower.results.__all__)


def test_type_checkers_see_what_is_imported_on_first_use():
    tree = ast.parse(Path(sipower.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    aliases = {alias.asname for node in imports for alias in node.names}
    assert aliases == set(sipower.__all__)


def test_importing_loads_nothing_until_it_is_used():
    code = (
        "import sys, sipower\n"
        "print(*sorted(m for m in sys.modules if m.startswith(('sipower.', 'numpy', 'scipy'))))\n"
        "print(sipower.pl.palette.__name__, sipower.report.write_report.__name__)\n"
        "print(sipower.KLNMF.__name__, 'sipower.dask' in sys.modules)"
    )
    loaded, modules, names = python(code).stdout.splitlines()
    assert not loaded
    assert modules.split() == ["palette", "write_report"]
    assert names.split() == ["KLNMF", "False"]


def test_other_names_do_not_exist():
    with pytest.raises(AttributeError, match="no attribute 'plots'"):
        sipower.plots  # noqa: B018


def test_the_top_of_the_package_is_small():
    top = Path(sipower.__file__).parent
    assert len(list(top.glob("*.py"))) <= 6


def test_version_takes_no_time():
    """It imports neither NumPy nor the libraries of the command."""
    code = (
        "import sys; sys.argv = ['sipower', '--version']\n"
        "from sipower.__main__ import main; main()\n"
        "assert not {'numpy', 'typer', 'rich'} & sys.modules.keys()"
    )
    result = python(code)
    assert (result.stdout, result.stderr) == (f"sipower {sipower.__version__}\n", "")


def test_names_of_the_readme_are_attributes_after_one_import():
    """Each in a process of its own, where nothing else has imported the module."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    names = set(re.findall(r"(?<!/)\bsipower((?:\.[A-Za-z_]\w*)+)", readme))
    names |= {".tl.nmf", ".pl.structure", ".report.write_report", ".describe", ".dask.KLNMF"}
    assert len(names) >= 5
    for name in sorted(names):
        result = python(f"import sipower; assert callable(sipower{name}) or sipower{name}")
        assert result.returncode == 0, result.stderr
