# SPDX-License-Identifier: BSD-3-Clause
"""The objective after every round of every solver is what it was when the curves were recorded."""

import pytest
from threadpoolctl import threadpool_limits

from golden.cases import CASES, SETS, load_curves

# Kernels of the two instruction-set levels, and BLAS libraries for processors with and without
# vectors, add in other orders: measured, that moves a curve by at most 5e-11. Threads move nothing,
# which contract/test_rules.py holds.
TOLERANCE = 1e-9
INTENDED = "If the change is intended: python tests/golden/record.py"


@pytest.fixture(autouse=True)
def _one_thread_of_blas():
    """Matrices of six columns are not worth a second one, least of all on a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("name", SETS)
def test_every_solver_has_its_golden_curve(name):
    assert load_curves(name).keys() == CASES.keys(), INTENDED


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("case", CASES)
def test_no_solver_leaves_its_golden_curve(case, name):
    golden, curve = load_curves(name)[case], CASES[case](SETS[name]())
    assert len(curve) == len(golden), f"{case} on {name}: other rounds are evaluated. {INTENDED}"
    for place, (now, then) in enumerate(zip(curve, golden, strict=True)):
        assert abs(now - then) <= TOLERANCE * abs(then), (
            f"{case} on {name}, value {place} of the curve: {now!r}, recorded was {then!r}. "
            f"{INTENDED}"
        )
