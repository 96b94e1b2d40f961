# SPDX-License-Identifier: BSD-3-Clause
"""Killed workers, failures, interrupts and stops do no harm to a fit on workers."""

import os
import pickle
import signal

import numpy as np
import pytest
import scipy.sparse as sp

from lazy_fits import V, curve, lazy, model
from sipower.dask.loaded_chunk import load_chunk
from sipower.io import open_store
from sipower.store import write_store


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
            os.kill(pids.popitem()[1], signal.SIGKILL)

    result = model(on_round=kill).fit(X)
    assert not pids
    np.testing.assert_allclose(curve(result.trace_), curve(plain.trace_), rtol=1e-8)


def test_a_fit_that_fails_on_a_worker_disturbs_no_later_one(client, plain, monkeypatch):
    def broken(*_):
        raise ArithmeticError("planted")

    def plant(record):
        if record.round == 3:
            monkeypatch.setattr("sipower.dask.factorization._profile_sums", broken)

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

            def stop(*_, **__):
                raise KeyboardInterrupt

            monkeypatch.setattr(waiting, "wait", stop)

    result = model(on_round=interrupt)
    with pytest.raises(KeyboardInterrupt):
        result.fit(lazy())
    assert cancelled
    assert (result.status_, result.n_iter_) == ("interrupted", 3)
    assert result.kl_divergence_ == pytest.approx(plain.trace_[3].objective, rel=1e-9)


def test_a_callback_stops_a_fit(client, capsys):
    result = model(on_round=lambda record: record.round == 2, verbose=1).fit(lazy())
    assert (result.status_, result.n_iter_) == ("stopped", 2)
    assert capsys.readouterr().out.count("gap") == 2


def test_a_fit_goes_on_from_its_checkpoint(client, plain, tmp_path):
    file = tmp_path / "fit.npz"
    model(max_iter=5, checkpoint=file, checkpoint_every=0).fit(lazy())
    result = model(checkpoint=file).fit(lazy())
    assert result.n_iter_ == 12
    np.testing.assert_allclose(curve(result.trace_), curve(plain.trace_), rtol=1e-9)
    with pytest.raises(ValueError, match="checkpoint of another data"):
        model(checkpoint=file).fit(lazy(V + 1))
