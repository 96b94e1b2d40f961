# SPDX-License-Identifier: BSD-3-Clause
"""Sums in a tree and factors that workers pass on change no result but the rounding of sums."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

import sipower
from lazy_fits import RANK, V, curve, lazy, local, model
from sipower.dask import collective
from sipower.dask.collective import add_results, broadcast

da = pytest.importorskip("dask.array")
psutil = pytest.importorskip("psutil")


@pytest.mark.parametrize("count", [1, 2, 4, 5, 9, 17])
def test_a_tree_adds_what_the_client_would_add(client, count):
    """Every result is added exactly once: the powers of two say which ones were."""
    futures = client.map(lambda b: (np.full(3, 2.0**b), 2**b), range(count), pure=False)
    for nbytes in (0, collective.MIN_SHARED):
        array, number = add_results(client, list(futures), nbytes)
        assert (array == 2.0**count - 1).all()
        assert number == 2**count - 1


def test_the_sum_of_a_single_task_is_a_copy_that_kernels_can_read():
    """Arrays that are received may not be aligned to their type."""
    unaligned = np.frombuffer(bytes(81), np.uint8)[1:].view(np.float64)
    assert not unaligned.flags.aligned
    (total,) = collective.add_tuples([(unaligned,)])
    assert total.flags.aligned


@pytest.mark.parametrize("count", [1, 2, 4, 5, 30])
def test_every_worker_gets_a_large_factor_and_the_client_sends_it_once(client, count):
    holders = sorted(client.nthreads()) * count
    small, large = np.zeros(10), np.arange(collective.MIN_SHARED / 8 + 1)
    assert all(copy is small for copy in broadcast(client, small, holders))
    copies = broadcast(client, large, holders)
    assert len(copies) == len(holders)
    for copy in client.gather(copies):
        np.testing.assert_array_equal(copy, large)
    assert broadcast(client, large, holders[:1])[0] is large


@pytest.mark.parametrize("killed", [False, True])
def test_rows_have_the_local_curve_with_trees_and_broadcasts(client, monkeypatch, killed):
    monkeypatch.setattr(collective, "MIN_SHARED", 0)

    def kill(record):
        if killed and record.round == 5:
            psutil.Process(next(iter(client.run(os.getpid).values()))).kill()

    result = model(on_round=kill).fit(lazy())
    np.testing.assert_allclose(curve(result.trace_), curve(local().trace_), rtol=1e-9)


def test_both_sides_have_the_local_bits_with_broadcasts(client, monkeypatch):
    monkeypatch.setattr(collective, "MIN_SHARED", 0)
    result = model(solver="auto").fit(lazy())
    expected = sipower.KLNMF(RANK, init="random", random_state=0, tol=0, max_iter=12)
    assert result.components_.tobytes() == expected.fit(sp.csr_array(V)).components_.tobytes()


def test_the_update_of_w_measures_the_objective(client, monkeypatch):
    """After the start, the objective needs no tasks of its own but for the evaluations."""
    from sipower.dask.worker_matrix import WorkerMatrix  # noqa: PLC0415 - needs Dask

    names, submit = [], WorkerMatrix._submit

    def counted(self, name, *arguments):
        names.append(name)
        return submit(self, name, *arguments)

    monkeypatch.setattr(WorkerMatrix, "_submit", counted)
    counts = []
    for rounds in (10, 20):
        names.clear()
        model(solver="auto", max_iter=rounds, on_round=None).fit(lazy())
        counts.append(names.count("divergence"))
    assert counts[1] - counts[0] < 5  # the rounds of the trace that are evaluated
