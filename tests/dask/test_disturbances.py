# SPDX-License-Identifier: BSD-3-Clause
"""Killed workers, failures, interrupts and stops do no harm to a fit on workers."""

import os
import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from lazy_fits import RANK, V, curve, lazy, model
from sipower import Stop, solve
from sipower.dask.factorization import WorkerFactorization
from sipower.dask.loaded_chunk import load_chunk
from sipower.dask.worker_factor import RowTasks
from sipower.dask.worker_rows import WorkerRows
from sipower.io import open_store
from sipower.nmf import RowRounds
from sipower.store import write_store

psutil = pytest.importorskip("psutil")


@pytest.mark.parametrize("kind", ["array", "files"])
def test_a_killed_worker_changes_nothing(client, plain, tmp_path, kind):
    X = lazy()
    if kind == "files":
        halves = {"a.npz": V[:120], "b.npz": V[120:]}
        for name, part in halves.items():
            sp.save_npz(tmp_path / name, sp.csr_array(part))
        X = [tmp_path / name for name in halves]
    pids = client.run(os.getpid)

    def kill(record):
        if record.round in (5, 8):  # every worker that the fit began with
            psutil.Process(pids.popitem()[1]).kill()

    result = model(on_round=kill).fit(X)
    assert not pids
    np.testing.assert_allclose(curve(result.trace_), curve(plain.trace_), rtol=1e-8)


@pytest.mark.parametrize("limit", [10**9, 0], ids=["gathered", "solved again"])
def test_killed_workers_change_no_bit_of_any_round(client, monkeypatch, limit):
    """W is recomputed from its chain of rounds, before and after the chain is cut."""
    monkeypatch.setattr("sipower.dask.factorization.MAX_SNAPSHOT", limit)
    problem = WorkerFactorization(WorkerRows(client, lazy(), None), RANK)

    def fit(*kills):
        rounds = []

        def kill(record, state):
            rounds.append((state.value, state.H.tobytes(), state.g.tobytes()))
            if record.round in kills:
                psutil.Process(next(iter(client.run(os.getpid).values()))).kill()

        result = solve(
            problem, RowRounds(), problem.start(0), stop=Stop(0, rounds=24), on_state=kill
        )
        return rounds, np.asarray(result.x.W).tobytes()

    undisturbed, W = fit()
    assert len(undisturbed) == 24
    assert all(after[0] <= before[0] for before, after in pairwise(undisturbed))
    disturbed, W_again = fit(3, 10, 11, 19)
    assert disturbed == undisturbed
    assert W_again == W


def test_a_factor_on_workers_is_the_array_that_was_placed(client):
    tasks = RowTasks(WorkerRows(client, lazy(), None))
    W = np.random.default_rng(0).random((len(V), RANK))
    factor = tasks.place(W)
    assert (factor.shape, factor.dtype, len(factor)) == (W.shape, W.dtype, len(W))
    np.testing.assert_array_equal(np.asarray(factor), W)


def test_a_fit_that_fails_on_a_worker_disturbs_no_later_one(client, plain, monkeypatch):
    def broken(*_):
        raise ArithmeticError("planted")

    def plant(record):
        if record.round == 3:
            monkeypatch.setattr("sipower.dask.factorization._update_group", broken)

    failed = model(on_round=plant)
    with pytest.raises(ArithmeticError, match="planted"):
        failed.fit(lazy())
    monkeypatch.undo()
    assert not hasattr(failed, "components_")
    np.testing.assert_allclose(curve(model().fit(lazy()).trace_), curve(plain.trace_), rtol=1e-9)


def test_rows_that_cannot_be_made_again_fail_where_they_are_used(monkeypatch):
    """Not while they arrive at a worker: Dask would wait for ever."""
    sent = pickle.dumps(load_chunk(V, None), protocol=5)
    assert (pickle.loads(sent).matrix.array == V).all()

    def broken(*_, **__):
        raise MemoryError("planted")

    monkeypatch.setattr("sipower.data.memory.kernels.Dense", broken)
    arrived = pickle.loads(pickle.dumps(pickle.loads(sent)))  # went on before it was used
    assert (arrived.info.shape, arrived.__sizeof__()) == (V.shape, V.nbytes)
    with pytest.raises(MemoryError, match="planted"):
        _ = arrived.matrix


def test_a_store_that_a_worker_cannot_open_fails_where_it_is_used(tmp_path):
    write_store(sp.csr_array(V), tmp_path / "counts.sipower")
    sent = pickle.dumps(load_chunk(open_store(tmp_path / "counts.sipower"), None))
    assert (pickle.loads(sent).matrix.rows(0, len(V)).toarray() == V).all()
    (tmp_path / "counts.sipower").rename(tmp_path / "elsewhere")
    arrived = pickle.loads(sent)
    with pytest.raises((OSError, ValueError), match=r"counts\.sipower"):
        _ = arrived.matrix


def test_an_interrupted_fit_keeps_its_last_round(client, plain, monkeypatch):
    cancelled = []
    monkeypatch.setattr(client, "cancel", cancelled.extend)

    def interrupt(record):
        if record.round == 3:
            from sipower.dask import waiting  # noqa: PLC0415 - patched in mid-fit

            wait = waiting.wait

            def stop(*_, **__):
                monkeypatch.setattr(waiting, "wait", wait)
                raise KeyboardInterrupt

            monkeypatch.setattr(waiting, "wait", stop)

    result = model(on_round=interrupt)
    with pytest.raises(KeyboardInterrupt):
        result.fit(lazy())
    assert cancelled
    assert (result.status_, result.n_iter_) == ("interrupted", 3)
    assert result.kl_divergence_ == pytest.approx(
        model(max_iter=3).fit(lazy()).trace_[-2].objective
    )


def test_a_callback_stops_a_fit(client, capsys):
    result = model(on_round=lambda record: record.round == 11, verbose=1).fit(lazy())
    assert (result.status_, result.n_iter_) == ("stopped", 11)
    assert capsys.readouterr().out.count("gap") >= 1


def test_a_fit_goes_on_from_its_checkpoint(client, plain, tmp_path):
    file = tmp_path / "fit.npz"
    model(max_iter=5, checkpoint=file, checkpoint_every=0).fit(lazy())
    result = model(checkpoint=file).fit(lazy())
    assert result.n_iter_ == 12
    np.testing.assert_allclose(curve(result.trace_), curve(plain.trace_), rtol=1e-9)
    with pytest.raises(ValueError, match="checkpoint of another data"):
        model(checkpoint=file).fit(lazy(V + 1))
