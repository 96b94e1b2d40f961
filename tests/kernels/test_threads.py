# SPDX-License-Identifier: BSD-3-Clause
"""Blocks, threads, ordered sums."""

import os
import threading
import time

import joblib
import numpy as np
import pytest

from sipower import as_matrix
from sipower.kernels import count_threads, run_blocks, sum_blocks
from sipower.problems import KLBlock
from systems import unix_only


@pytest.mark.parametrize("threads", [1, 2, 5, 64])
def test_every_block_runs_once(threads):
    blocks = []
    run_blocks(200, blocks.append, threads)
    assert sorted(blocks) == list(range(200))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_sums_are_added_in_block_order(threads):
    """Floating-point addition is not associative, so equal bits mean equal order."""
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-12, 12, (50, 1))

    def partial(block, out):
        time.sleep(rng.random() / 2000)
        out += parts[block]

    total = np.zeros(3)
    sum_blocks(50, partial, total, threads)
    expected = np.zeros(3)
    for part in parts:
        expected += part
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("run", [run_blocks, lambda n, f, t: sum_blocks(n, f, np.zeros(2), t)])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_block_reaches_the_caller(run, threads):
    def task(block, out=None):
        if block == 7:
            raise ZeroDivisionError("block 7")
        time.sleep(0.001)

    with pytest.raises(ZeroDivisionError, match="block 7"):
        run(40, task, threads)
    run_blocks(40, lambda block: None, threads)  # and the threads are still there


def test_threads_by_default():
    if hasattr(os, "sched_getaffinity"):  # Linux
        assert count_threads(None) == len(os.sched_getaffinity(0))
    assert count_threads(3) == 3
    assert count_threads(-1) >= 1
    inside = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(count_threads)(None) for _ in range(2)
    )
    assert inside == [1, 1]


def test_two_callers_at_once():
    V = as_matrix(np.random.default_rng(0).poisson(1.0, (400, 300)), n_jobs=2)
    H = np.random.default_rng(1).random((300, 8)) + 0.1
    W = np.random.default_rng(2).random((400, 8)) + 0.1
    block = KLBlock(V, H)
    expected = block.ratio_sums(W)
    results = {}

    def work(name):
        for _ in range(20):
            results[name] = block.ratio_sums(W)

    callers = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for name in "abc":
        np.testing.assert_array_equal(results[name], expected)


@unix_only
def test_a_forked_child_starts_its_own_threads():
    run_blocks(8, lambda block: time.sleep(0.001), 2)
    pid = os.fork()
    if pid == 0:
        blocks = []
        run_blocks(8, blocks.append, 2)
        os._exit(0 if sorted(blocks) == list(range(8)) else 1)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        finished, status = os.waitpid(pid, os.WNOHANG)
        if finished:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(pid, 9)
    pytest.fail("the forked child hangs")


def test_an_idle_thread_is_used_before_another_one_is_started():
    """With threads that take tasks meant for others, pools of Python 3.12 grew to their limit."""
    before = threading.active_count()
    for _ in range(3000):
        run_blocks(16, lambda block: None, 5)
    # A helper that is not quite free has another one started in its place, so 4 are too few.
    assert threading.active_count() - before <= 32
