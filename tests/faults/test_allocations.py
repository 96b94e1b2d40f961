# SPDX-License-Identifier: BSD-3-Clause
"""Every single allocation that fails: in the kernels, and for the data of NumPy's arrays."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from faults.children import run_script
from systems import linux_only

COMPILER = shutil.which("c++")
pytestmark = [
    linux_only,
    pytest.mark.skipif(COMPILER is None, reason="compiles an allocator"),
]
# The task, whose allocations fail, the layout of the data, and the number of threads. NumPy's
# allocator is that of one thread, so arrays are made in one.
CASES = [
    ("fit", "kernels", "dense", 1),
    ("fit", "kernels", "sparse", 1),
    ("fit", "kernels", "general", 2),
    ("fit", "arrays", "dense", 1),
    ("fit", "arrays", "sparse", 1),
    ("fit", "arrays", "general", 1),
    ("transform", "kernels", "dense", 2),
    ("transform", "kernels", "sparse", 1),
    ("transform", "arrays", "dense", 1),
    ("transform", "arrays", "general", 1),
    ("conversion", "kernels", "sparse", 1),
    ("conversion", "arrays", "sparse", 1),
    ("run_folder", "arrays", "sparse", 1),
    ("report", "kernels", "sparse", 1),
    ("report", "arrays", "sparse", 1),
]
QUICK_CASES = [CASES[2], CASES[4], CASES[11]]
# Fewer allocations than these mean that the allocator no longer sees them.
MIN_ALLOCATIONS = {"fit": 900, "transform": 20, "conversion": 10, "run_folder": 20, "report": 5}


def name(case):
    return "-".join(map(str, case))


@pytest.fixture(scope="session")
def allocator(tmp_path_factory):
    """Return the path of the compiled allocator."""
    library = tmp_path_factory.mktemp("allocator") / "failing.so"
    source = Path(__file__).with_name("failing_allocator.cpp")
    words = [COMPILER, "-std=c++17", "-O1", "-fPIC", "-shared", source, "-o", library]
    subprocess.run(words, check=True)
    return str(library)


def count_errors(allocator, case, step):
    """Return the number of allocations, and that of each kind of error; the script checks all."""
    outcome = json.loads(run_script("failing_allocations.py", *case, step, LD_PRELOAD=allocator))
    total = outcome.pop("allocations")
    assert total >= MIN_ALLOCATIONS[case[0]]
    return total, outcome


@pytest.mark.parametrize("case", QUICK_CASES, ids=name)
def test_an_allocation_that_fails_is_an_error_that_leaves_all_as_it_was(allocator, case):
    _, errors = count_errors(allocator, case, 2)
    assert errors.keys() <= {"MemoryError", "ReadError", "no error"}
    assert errors["MemoryError"] >= 4


@pytest.mark.stress
@pytest.mark.parametrize("case", CASES, ids=name)
def test_every_allocation_that_fails_is_an_error_that_leaves_all_as_it_was(allocator, case):
    total, errors = count_errors(allocator, case, 1)
    assert sum(errors.values()) == total
    assert errors["MemoryError"] > 0.9 * total
