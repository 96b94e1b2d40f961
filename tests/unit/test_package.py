# SPDX-License-Identifier: BSD-3-Clause
"""The package as a whole: its public names, its import, its effect on the process."""

import os
import subprocess
import sys

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
    done = python(code)
    assert done.returncode == 0, done.stderr


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
    assert "SIPOWER_ISA=pdp-11 is not available here" in wrong.stderr


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


def test_modules_are_attributes_and_loaded_when_first_used():
    code = (
        "import sys, sipower\n"
        "late = {'sipower.pl', 'sipower.report', 'sipower.tl', 'sipower.dask'}\n"
        "assert not late & sys.modules.keys()\n"
        "print(sipower.pl.palette.__name__, sipower.report.write_report.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["palette", "write_report"]


def test_the_old_name_of_the_plots_still_works_and_says_so():
    with pytest.warns(DeprecationWarning, match=r"sipower\.plot is now called sipower\.pl"):
        plots = sipower.plot
    assert plots is sipower.pl
    with pytest.raises(AttributeError, match="no attribute 'plots'"):
        sipower.plots  # noqa: B018
