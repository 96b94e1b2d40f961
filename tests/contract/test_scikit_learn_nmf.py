# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own tests of NMF, run on KLNMF: only the differences in the docs may fail."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "guide" / "scikit_learn.md"


def documented_differences():
    """Return the tests in the table of the page, the word in their cases, and the reason."""
    row = r"^\| `(test_\w+):?([^`]*)` \| (.*) \|$"
    return re.findall(row, PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Run scikit-learn's tests with the adapter; return whether each test passed, by its name."""
    folder = tmp_path_factory.mktemp("scikit-learn")
    words = "-p sklearn_adapter --pyargs sklearn.decomposition.tests.test_nmf -q"
    words += " -p no:cacheprovider --junitxml=results.xml"
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    call = [sys.executable, "-m", "pytest", *words.split()]
    run = subprocess.run(call, cwd=folder, env=environment, capture_output=True, check=False)
    assert run.returncode in (0, 1), run.stdout.decode()[-2000:] + run.stderr.decode()[-2000:]
    cases = ElementTree.parse(folder / "results.xml").iter("testcase")
    return {case.get("name"): case.find("failure") is None for case in cases}


def test_only_documented_differences_fail(outcomes):
    assert len(outcomes) > 200
    differences = documented_differences()
    undocumented = [
        name
        for name, passed in outcomes.items()
        if not passed
        and not any(name.split("[")[0] == test and word in name for test, word, _ in differences)
    ]
    assert undocumented == []


@pytest.mark.parametrize(("test", "word", "reason"), documented_differences())
def test_documented_difference_is_still_one(outcomes, test, word, reason):
    cases = {
        name: passed
        for name, passed in outcomes.items()
        if name.split("[")[0] == test and word in name
    }
    assert cases, f"{test} is no test of scikit-learn"
    if "depends on the processor" not in reason:
        assert not all(cases.values()), f"{test} passes: remove it from {PAGE.name}"
