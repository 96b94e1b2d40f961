# SPDX-License-Identifier: BSD-3-Clause
"""Fits of a store that run together: the bits of separate fits, and every window is read once."""

import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shared_fits import SMALL, V, assert_free, assert_same, model, window_bytes
from sipower import consensus
from sipower.data.from_store import StoreSource
from sipower.data.shared_reads import SharedReads
from sipower.estimators import memory
from sipower.io import open_store
from sipower.store import write_store


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    write_store(V, folder / "both")
    write_store(V, folder / "rows", rows_only=True)
    return folder


@pytest.fixture
def stored(stores):
    matrix = open_store(stores / "both", memory_limit=SMALL)
    assert len(matrix.windows_of_blocks) > 2
    return matrix


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not converged")
        yield


@pytest.mark.parametrize("solver", ["auto", "mu", "ccd"])
@pytest.mark.parametrize("replicates", [2, 5])
def test_replicates_in_lockstep_read_as_much_as_one_fit(stored, read_bytes, replicates, solver):
    consensus(stored, model(solver=solver), replicates=1)
    alone = sum(read_bytes)
    read_bytes.clear()
    found = consensus(stored, model(solver=solver), replicates=replicates)
    assert sum(read_bytes) <= alone + 2 * window_bytes(stored)
    assert_same(found, consensus(V, model(solver=solver), replicates=replicates))
    assert sum(len(memory) for memory in stored.buffers._memory) <= SMALL
    assert_free(stored)


def test_fits_that_end_at_different_rounds_still_share_most_reads(stored, read_bytes):
    settings, separate = {"solver": "mu", "tol": 1e-2, "max_iter": 300}, []
    for seed in range(4):
        fit = model(random_state=seed, **settings).fit(stored)
        separate.append(fit.n_iter_)
    alone = sum(read_bytes)
    read_bytes.clear()
    found = consensus(stored, model(**settings), replicates=4)
    assert len(set(separate)) > 1
    assert sum(read_bytes) < 0.6 * alone
    assert_same(found, consensus(V, model(**settings), replicates=4))


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_factors_that_fill_the_memory_leave_fewer_fits_at_a_time(stored, monkeypatch, jobs):
    factors = memory.factor_bytes(stored, 4)
    monkeypatch.setattr(memory, "free_memory", lambda: (jobs + 0.5) * factors * 2)
    running, most, lock = set(), [], threading.Lock()

    def on_round(_):
        with lock:
            running.add(threading.get_ident())
            most.append(len(running))

    settings = {"on_round": on_round, "tol": 1e-2, "max_iter": 100}
    found = consensus(stored, model(**settings), replicates=5)
    assert max(most) <= jobs
    assert_same(found, consensus(V, model(**settings), replicates=5))
    assert_free(stored)


@pytest.mark.parametrize("jobs", [2, 5])
def test_an_error_in_one_fit_ends_the_task(stored, monkeypatch, jobs):
    factors = memory.factor_bytes(stored, 4)
    monkeypatch.setattr(memory, "free_memory", lambda: (jobs + 0.5) * factors * 2)
    calls = []

    def on_round(record):
        calls.append(record)
        if len(calls) == 4:
            raise RuntimeError("`on_round` failed.")

    with pytest.raises(RuntimeError, match="`on_round` failed"):
        consensus(stored, model(on_round=on_round, max_iter=50), replicates=5)
    assert_free(stored)


def test_ctrl_c_stops_all_fits_and_the_task_can_be_continued(stored, tmp_path):
    calls = []

    def on_round(record):
        calls.append(record)
        if len(calls) == 20:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if len(calls) > 20:
            time.sleep(0.01)  # the main thread gets its turn, however busy the machine is

    task = {"replicates": 4, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        consensus(stored, model(on_round=on_round, max_iter=1000), **task)
    assert len(calls) < 2000
    assert_free(stored)
    shorter = model(max_iter=6)
    found = consensus(stored, shorter, replicates=4, folder=tmp_path / "other")
    assert_same(found, consensus(V, shorter, replicates=4))


def test_finished_fits_are_loaded_and_the_others_share_reads(stored, tmp_path):
    def interrupt(finished, _):
        if finished == 2:
            raise KeyboardInterrupt

    task = {"replicates": 4, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        consensus(stored, model(tol=1e-2, max_iter=100), on_fit=interrupt, **task)
    found = consensus(stored, model(tol=1e-2, max_iter=100), **task)
    assert_same(found, consensus(V, model(tol=1e-2, max_iter=100), replicates=4))


def test_a_time_limit_ends_every_fit(stored):
    found = consensus(stored, model(max_time=0.0, max_iter=100), replicates=3)
    assert found.statuses == ("max_seconds",) * 3
    assert_free(stored)


def test_weighted_fits_share_reads_too(stored, read_bytes):
    rng = np.random.default_rng(0)
    given = {"sample_weight": rng.random(900) + 0.5, "mask": rng.random(V.shape) < 0.9}
    consensus(stored, model(), replicates=1, **given)
    alone = sum(read_bytes)
    read_bytes.clear()
    found = consensus(stored, model(), replicates=4, **given)
    assert sum(read_bytes) <= 1.1 * alone
    assert_same(found, consensus(V, model(), replicates=4, **given))


def test_stores_of_rows_share_reads_too(stores, read_bytes):
    matrix = open_store(stores / "rows", memory_limit=SMALL)
    one = consensus(matrix, model(), replicates=1)
    alone = sum(read_bytes)
    read_bytes.clear()
    found = consensus(matrix, model(), replicates=3)
    assert sum(read_bytes) <= 1.5 * alone  # rounds on rows do not all take the same passes
    assert found.divergences[0] == one.divergences[0]


def run_together(buffers, tasks):
    group = SharedReads(buffers, len(tasks), len(tasks))
    with group, ThreadPoolExecutor(len(tasks)) as pool:
        return [pool.submit(group.member(task), None) for task in tasks]


def test_fits_that_need_different_windows_all_finish(stored):
    """Some threads scan the rows, one the columns, one ends at once and one in the middle."""

    def scan(matrix, times):
        return lambda _: [data.row_sums().sum() for _ in range(times) for data, _ in
                          matrix.windows()]  # fmt: skip

    def stop_early(_):
        return next(stored.windows())

    tasks = [scan(stored, 30), scan(stored, 3), scan(stored.T, 7), stop_early, lambda _: None]
    sums = [sum(future.result()) for future in run_together(stored.buffers, tasks)[:3]]
    assert sums == [30 * V.sum(), 3 * V.sum(), 7 * V.sum()]
    assert_free(stored)


def test_a_damaged_window_is_an_error_of_every_fit(stored, monkeypatch):
    def fail(*_):
        raise OSError("The disk is gone.")

    monkeypatch.setattr(StoreSource, "read", fail)
    tasks = [lambda _: next(stored.windows())] * 3
    for future in run_together(stored.buffers, tasks):
        with pytest.raises(OSError, match="The disk is gone"):
            future.result()
    monkeypatch.undo()
    assert_free(stored)
