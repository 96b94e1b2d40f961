# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is used up in the middle of a fit."""

import json

import pytest

from faults.children import run_code, run_script
from sipower import nmf
from systems import linux_only

pytestmark = linux_only
# No reserves: what is freed goes back to the system, and only what is needed is taken.
FRUGAL = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "OPENBLAS_NUM_THREADS": "1"}


def places_survived(solver, layout, jobs):
    """Functions in which memory was short; the script has seen to it that the process goes on."""
    return json.loads(run_script("exhausted.py", solver, layout, jobs, **FRUGAL))


def test_memory_used_up_anywhere_in_a_fit_is_a_memory_error_that_leaves_all_as_it_was():
    from_the_start, after_a_round = places_survived("auto", "sparse", 3)
    assert "fit_transform" in from_the_start
    assert "advance" in after_a_round


@pytest.mark.stress
@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_memory_used_up_in_any_solver_is_a_memory_error(solver, layout, jobs):
    from_the_start, _ = places_survived(solver, layout, jobs)  # a round may need next to nothing
    assert "fit_transform" in from_the_start


def test_memory_used_up_by_kernels_in_threads_is_a_memory_error_of_the_caller():
    printed = run_code("""
        import resource
        import numpy as np
        from sipower import kernels

        factor, made = np.ones((1_000_000, 8)), []

        def task(block):
            made.append(kernels.basis(factor, dense=False))

        kernels.run_blocks(3, lambda block: None, 3)  # the threads are there
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        unlimited = resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20), unlimited))
        try:
            kernels.run_blocks(12, task, 3)
        except MemoryError as problem:
            print(problem)
        assert 0 < len(made) < 12
        resource.setrlimit(resource.RLIMIT_AS, (unlimited, unlimited))
        made.clear()
        kernels.run_blocks(12, task, 3)
        print(len(made))
    """)
    assert printed.split() == ["std::bad_alloc", "12"]
