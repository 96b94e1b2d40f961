# SPDX-License-Identifier: BSD-3-Clause
"""The compiled module checks all of its arguments."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sipower import kernels

ROOT = Path(__file__).parents[2]
PLAN = {
    "step": 1.0,
    "full_step": 1.0,
    "batch": 0.5,
    "length": 4,
    "threshold": 0.01,
    "shortest": 0,
    "scheme": "stratified",
    "replace": False,
    "key": (0, 0),
    "at_round": 0,
    "side": 0,
}


def test_fuzzed_calls_are_refused_or_answered():
    """A part of `make fuzz`; in other processes, because a fault would end this one."""
    command = [sys.executable, str(ROOT / "fuzz" / "bindings.py"), "--inputs=3000", "--seed=1"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "3,000 inputs kept their promise, 0 did not" in process.stdout
    for outcome in ("sound", "accepted", "refused"):
        assert f"epoch          {outcome}" in process.stdout


def make_unaligned(array):
    raw = b"\0" + array.tobytes()
    return np.frombuffer(raw, array.dtype, offset=1).reshape(array.shape)


@pytest.fixture
def csr():
    columns = np.tile(np.arange(5, dtype=np.int32), 3)
    return kernels.Csr(np.array([0, 5, 10, 15]), columns, np.ones(15), 5)


@pytest.fixture
def basis():
    return kernels.basis(np.ones((5, 3)), dense=True)


def test_arrays_that_are_not_aligned_are_refused(csr, basis):
    ones = np.ones((3, 3))
    for call in (
        lambda: kernels.Dense(make_unaligned(ones)),
        lambda: kernels.basis(make_unaligned(ones), dense=True),
        lambda: kernels.Csr(make_unaligned(np.array([0, 1])), np.zeros(1, np.int32), np.ones(1), 5),
        lambda: kernels.gradient(csr, basis, make_unaligned(ones), 0, 3, np.zeros((3, 3))),
    ):
        with pytest.raises(ValueError, match="not aligned"):
            call()


@pytest.mark.parametrize(
    ("indptr", "message"),
    [
        (None, "needs indptr"),
        ([], "is empty"),
        ([1, 2], "begin with 0"),
        ([0, 3, 2], "decreases"),
        ([0, -1], "decreases"),
        ([0, 2**31], "takes at most 2\\^31 - 1 nonzeros"),
    ],
)
def test_elements_are_drawn_from_a_sound_indptr(indptr, message):
    array = None if indptr is None else np.array(indptr, np.int64)
    with pytest.raises(ValueError, match=message):
        kernels.EpochPlan(**PLAN | {"scheme": "elements", "indptr": array})


def test_elements_of_other_data_are_refused(csr, basis):
    """They would be read beyond the end of an item."""
    out, mass = np.zeros((3, 3)), np.full(3, 5.0)
    for indptr in ([0, 15], [0, 40, 41, 42]):
        plan = kernels.EpochPlan(**PLAN | {"scheme": "elements", "indptr": np.array(indptr)})
        with pytest.raises(ValueError, match="drawn from other data"):
            kernels.epoch(csr, basis, np.ones((3, 3)), 0, 3, out, mass, plan)
    assert not out.any()


@pytest.mark.parametrize("batch", [0.0, -1.0, 1.5, np.inf, np.nan])
def test_a_batch_is_a_share(batch):
    with pytest.raises(ValueError, match="batch must be a number in"):
        kernels.EpochPlan(**PLAN | {"batch": batch})


@pytest.mark.parametrize("scheme", ["stratified", "weighted", "elements", "vectors"])
def test_mass_without_terms_takes_a_full_step(basis, scheme):
    """Nothing can be drawn from an item without terms, whatever mass it is said to have."""
    empty = kernels.Csr(np.array([0, 0]), np.zeros(0, np.int32), np.zeros(0), 5)
    plan = kernels.EpochPlan(**PLAN | {"scheme": scheme, "indptr": np.array([0, 0])})
    out = np.zeros((1, 3))
    kernels.epoch(empty, basis, np.ones((1, 3)), 0, 1, out, np.ones(1), plan)
    assert np.isfinite(out).all()


def test_an_epoch_over_no_columns_draws_nothing():
    """The basis has no row that could be drawn."""
    rank = 40
    out, basis = np.zeros((3, rank)), kernels.basis(np.ones((0, rank)), dense=True)
    data = kernels.Dense(np.ones((3, 0)))
    kernels.epoch(data, basis, np.ones((3, rank)), 0, 3, out, np.ones(3), kernels.EpochPlan(**PLAN))
    assert np.isfinite(out).all()


def test_an_indptr_whose_differences_overflow_is_refused():
    """Modulo 2^64 each step of it is a small positive one."""
    indptr = np.array([0, 2**63 - 1, -(2**63) + 1])
    with pytest.raises(ValueError, match="decreases"):
        kernels.Csr(indptr, np.zeros(2, np.int32), np.ones(2), 5, (1, 2))


@pytest.mark.parametrize("count", [-1, 2**20 + 1, 2**62])
def test_a_call_ends_however_many_rounds_are_asked_for(csr, basis, count):
    h, out, mass, gap = np.ones((3, 3)), np.zeros((3, 3)), np.full(3, 5.0), np.zeros(3)
    order = "cyclic", (0, 0), (0, 0, 0, 0)
    for call in (
        lambda: kernels.coordinate(csr, basis, h, 0, 3, out, mass, count, *order),
        lambda: kernels.newton(csr, basis, h, 0, 3, out, mass, count),
        lambda: kernels.solve_items(csr, basis, h, 0, 3, out, mass, np.nan, count, 1, gap, gap),
        lambda: kernels.EpochPlan(**PLAN | {"length": count}),
    ):
        with pytest.raises(ValueError, match="2\\^20"):
            call()
    assert not out.any()


def test_newton_refuses_a_hessian_that_fits_nowhere():
    h = np.ones((1, 2049))
    data, basis = kernels.Dense(np.ones((1, 2))), kernels.basis(np.ones((2, 2049)), dense=True)
    with pytest.raises(ValueError, match="2048"):
        kernels.newton(data, basis, h, 0, 1, np.zeros_like(h), np.ones(1), 1)


@pytest.mark.parametrize(("library", "room"), [("no-such-asan.so", 0), ("", 256)])
def test_under_a_sanitizer_an_array_ends_with_its_memory(library, room):
    """A sanitizer sees a read beyond a block of the heap, but not of a guard within the block."""
    code = (
        "import numpy as np; from arguments import GuardedArrays; arrays = GuardedArrays(); "
        "a = arrays.put(np.ones(5));"
        "((memory, _),) = arrays.memories;"
        "print(memory.ctypes.data + memory.nbytes - a.ctypes.data - a.nbytes)"
    )
    variables = {key: value for key, value in os.environ.items() if key != "FUZZ_GUARD"}
    variables |= {"LD_PRELOAD": library, "PYTHONPATH": str(ROOT / "fuzz")}
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert int(process.stdout) == room
