# SPDX-License-Identifier: BSD-3-Clause
"""The starts of one fit of a store, which run together: the bits of memory, and shared reads."""

import signal
import threading
import warnings

import pytest

from shared_fits import SMALL, V, assert_free, assert_same, model
from sipower import consensus
from sipower.data.shared_reads import SharedReads
from sipower.io import open_store
from sipower.store import write_store


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "both"
    write_store(V, path)
    return path


@pytest.fixture
def stored(path):
    return open_store(path, memory_limit=SMALL)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not converged")
        yield


def fit_starts(data, **parameters):
    fit = model(n_init=5, **{"max_iter": 400, "tol": 1e-2, "solver": "mu"} | parameters)
    return fit.fit_transform(data), fit


@pytest.mark.parametrize("parameters", [{}, {"max_iter": 150}, {"max_iter": 60}, {"max_iter": 10},
                                        {"solver": "auto", "tol": 1e-3}], ids=str)  # fmt: skip
def test_starts_share_reads_and_have_the_bits_of_memory(stored, read_bytes, parameters):
    """Also if the limit on rounds ends the race, whose starts are counted one after another."""
    W, there = fit_starts(stored, **parameters)
    together = sum(read_bytes)
    expected, here = fit_starts(V, **parameters)
    assert W.tobytes() == expected.tobytes()
    assert there.components_.tobytes() == here.components_.tobytes()
    assert (there.n_iter_, there.status_) == (here.n_iter_, here.status_)
    assert there.trace_[-1].passes == here.trace_[-1].passes
    assert_free(stored)
    if not parameters:
        read_bytes.clear()
        stored.buffers.shared = SharedReads(stored.buffers, 1, 1)  # a group of other fits
        fit_starts(stored)
        stored.buffers.shared = None
        assert together < 0.6 * sum(read_bytes)


def test_callbacks_see_the_work_of_all_starts_and_can_stop_them(stored):
    records = []

    def on_round(record):
        records.append(record)
        return len(records) == 12

    _, fit = fit_starts(stored, on_round=on_round, max_iter=1000)
    passes = [record.passes for record in records]
    assert passes == sorted(passes)
    assert [record.round for record in records[:12]] == list(range(1, 13))
    assert len(records) == 12
    assert fit.status_ == "stopped"
    assert_free(stored)


def test_ctrl_c_leaves_the_best_start(stored):
    calls = []

    def on_round(record):
        calls.append(record)
        if len(calls) == 20:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    fit = model(n_init=4, on_round=on_round, max_iter=1000)
    with pytest.raises(KeyboardInterrupt):
        fit.fit(stored)
    assert fit.status_ == "interrupted"
    assert fit.components_.shape == (4, 400)
    assert_free(stored)


def test_an_error_in_one_start_ends_the_fit(stored):
    def fail(record):
        if record.round == 7:
            raise RuntimeError("`on_round` failed.")

    with pytest.raises(RuntimeError, match="`on_round` failed"):
        fit_starts(stored, on_round=fail)
    assert_free(stored)


def test_replicates_with_several_starts_each_finish(stored):
    settings = {"n_init": 2, "solver": "mu", "tol": 1e-2, "max_iter": 200}
    found = consensus(stored, model(**settings), replicates=2)
    assert_same(found, consensus(V, model(**settings), replicates=2))
