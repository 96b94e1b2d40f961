# SPDX-License-Identifier: BSD-3-Clause
"""A fit on workers is the local fit, wherever the rows lie and whatever happens to a worker."""

import os
import pickle
import signal
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import sipower
from sipower import Stop, as_matrix, solve
from sipower.data.on_disk import open_store
from sipower.datasets import poisson_topics
from sipower.nmf import Factorization, Factors, Profiled
from sipower.nmf.init import initial_factors
from sipower.nmf.online import sampled_start
from sipower.store import write_store

da = pytest.importorskip("dask.array")
wait = pytest.importorskip("distributed").wait

from sipower.dask import KLNMF, Files  # noqa: E402 - optional
from sipower.dask.block import as_block  # noqa: E402
from sipower.dask.blocks import Blocks, spread  # noqa: E402

RANK = 4
V = poisson_topics(240, 60, RANK, length=80, seed=0).toarray().astype(float)
V[100:110] = 0  # rows without a count
EVEN, UNEVEN = (120, 120), (7, 100, 0, 103, 30)


def lazy(data=V, rows=UNEVEN, sparse=True):
    array = da.from_array(data, chunks=(rows, -1))
    return array.map_blocks(sp.csr_array) if sparse else array


def model(**parameters):
    settings = {"init": "random", "random_state": 0, "tol": 0, "max_iter": 12}
    return KLNMF(RANK, **settings | parameters)


def local(data=V, *, tol=0.0, rounds=12, sparse=True):
    matrix = as_matrix(sp.csr_array(data) if sparse else data)
    problem, start = Factorization(matrix, RANK), Factors(*initial_factors(matrix, RANK, 0))
    return solve(problem, Profiled(), start, stop=Stop(tol, rounds), trace="every")


def curve(trace):
    """Objectives of the rounds; before the first one a local W is random."""
    return np.array([record.objective for record in trace if record.round > 0])


@pytest.fixture(scope="module")
def plain(client):
    """An undisturbed fit."""
    return model().fit(lazy())


# ---- the same as a local fit -------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
@pytest.mark.parametrize("tol", [0.0, 2e-2])
def test_every_round_has_the_local_objective_and_gap(client, sparse, tol):
    found = model(tol=tol, max_iter=60 if tol else 12).fit(lazy(sparse=sparse))
    wanted = local(tol=tol, rounds=60 if tol else 12, sparse=sparse)
    assert found.status_ == str(wanted.status) == ("converged" if tol else "max_rounds")
    assert found.n_iter_ == wanted.state.round
    np.testing.assert_allclose(curve(found.trace_), curve(wanted.trace), rtol=1e-9)
    gaps = [[record.gap for record in trace[1:]] for trace in (found.trace_, wanted.trace)]
    np.testing.assert_allclose(*gaps, rtol=1e-6)
    np.testing.assert_allclose(found.components_.T, wanted.x.H, rtol=1e-7, atol=1e-12)
    assert found.kl_divergence_ == pytest.approx(wanted.value, rel=1e-9)
    assert found.reconstruction_err_ == pytest.approx(np.sqrt(2 * wanted.value), rel=1e-9)


@pytest.mark.parametrize("rows", [(240,), EVEN, (50, 50, 50, 50, 40)])
def test_chunks_change_nothing_but_rounding(client, plain, rows):
    found = model().fit(lazy(rows=rows))
    np.testing.assert_allclose(curve(found.trace_), curve(plain.trace_), rtol=1e-9)
    np.testing.assert_allclose(found.components_, plain.components_, rtol=1e-7, atol=1e-12)


def test_float32(client):
    found = model(max_iter=4).fit(lazy(V.astype(np.float32)))
    assert found.components_.dtype == np.float32
    wanted = local(V.astype(np.float32), rounds=4)
    np.testing.assert_allclose(curve(found.trace_), curve(wanted.trace), rtol=1e-4)
    mixed = da.concatenate([lazy(V[:80].astype(np.float32), (80,)), lazy(V[80:], (160,))])
    found, wanted = model(max_iter=4).fit(mixed), local(rounds=4)
    assert found.components_.dtype == np.float64
    np.testing.assert_allclose(curve(found.trace_), curve(wanted.trace), rtol=1e-9)


def test_unknown_sizes_and_read_only_chunks(client, plain):
    def guarded(chunk):
        chunk.flags.writeable = False
        return chunk

    array = lazy(sparse=False).map_blocks(guarded, dtype=float)
    unknown = array[array.sum(axis=1) >= 0]  # chunks of unknown sizes, one of them empty
    assert np.isnan(unknown.shape[0])
    found = model()
    W = found.fit_transform(unknown)
    np.testing.assert_allclose(curve(found.trace_), curve(plain.trace_), rtol=1e-9)
    assert W.chunks == (UNEVEN, (RANK,))  # known by now
    again = found.transform(unknown)
    assert np.isnan(again.shape[0])
    np.testing.assert_array_equal(again.compute(), W.compute())


def test_files_and_stores_are_opened_by_the_workers(client, plain, tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(V[:100]))
    np.save(tmp_path / "b.npy", V[100:150])
    write_store(sp.csr_array(V[150:]), tmp_path / "c")
    paths = [tmp_path / "a.npz", str(tmp_path / "b.npy"), tmp_path / "c"]
    found = model()
    W = found.fit_transform(paths)
    np.testing.assert_allclose(curve(found.trace_), curve(plain.trace_), rtol=1e-9)
    assert W.chunks[0] == (100, 50, 90)
    np.testing.assert_array_equal(found.transform(paths).compute(), W.compute())
    np.save(tmp_path / "turned.npy", V.T)
    turned = model().fit(Files([tmp_path / "turned.npy"], transpose=True))
    np.testing.assert_allclose(curve(turned.trace_), curve(plain.trace_), rtol=1e-9)


def test_lazy_anndata(client, plain):
    anndata = pytest.importorskip("anndata")
    found = model().fit(anndata.AnnData(lazy()))
    np.testing.assert_allclose(curve(found.trace_), curve(plain.trace_), rtol=1e-9)


def test_data_without_counts(client):
    found = model(tol=1e-3).fit(lazy(np.zeros_like(V)))
    assert found.kl_divergence_ == 0
    assert not found.components_.any()


# ---- W -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
def test_transform_has_the_bits_of_the_local_one(client, sparse):
    found, X = model(), lazy(sparse=sparse)
    W = found.fit_transform(X)
    assert isinstance(W, da.Array)
    wanted = found.to_local().transform(sp.csr_array(V) if sparse else V)
    np.testing.assert_array_equal(W.compute(), wanted)
    np.testing.assert_array_equal(found.transform(X).compute(scheduler="sync"), wanted)


def test_to_local_pickle_and_clone(client, plain):
    one = plain.to_local()
    assert type(one) is sipower.KLNMF
    assert one.solver == "profile"
    np.testing.assert_array_equal(one.components_, plain.components_)
    held = model(client=client)
    assert clone(held).client is client
    assert pickle.loads(pickle.dumps(held.fit(lazy()))).client is None
    names = plain.get_feature_names_out()
    assert names.tolist() == [f"klnmf{k}" for k in range(RANK)]


def test_partial_fit_goes_on_from_the_sums_of_all_rows(client, plain):
    """H ← (f H∘d + H∘Wᵀ(V ⊘ WH)) / (f d + Σ W): d of the W of the fit, the rest of the batch."""
    one, batch, f = plain.to_local(), V[:50], 0.7
    d = plain.transform(lazy()).compute().sum(axis=0)[:, None]
    W, H = one.transform(batch), one.components_
    ratios = np.divide(batch, W @ H, out=np.zeros_like(batch), where=batch > 0)
    below = f * d + W.sum(axis=0)[:, None]  # zero: a component that no row has any more
    wanted = H * np.divide(f * d + W.T @ ratios, below, out=np.ones_like(H), where=below > 0)
    found = one.set_params(forget_factor=f).partial_fit(batch).components_
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12 * wanted.max())


def test_counts_of_unknown_features_are_told(client, plain):
    assert not plain.components_[:, V.sum(axis=0) == 0].any()
    known = np.ones((5, 60))
    known[:, V.sum(axis=0) == 0] = 0
    assert plain.transform(da.from_array(known)).compute().shape == (5, RANK)
    told, lost = [], da.from_array(np.ones((5, 60)))
    client.subscribe_topic("warn", lambda event: told.append(str(event)))
    with warnings.catch_warnings(record=True):
        plain.transform(lost).compute()
        deadline = time.monotonic() + 10  # it comes by another connection than W
        while not told and time.monotonic() < deadline:
            time.sleep(0.05)
    assert "Chunk 0 has counts of" in told[0]


# ---- disturbances ------------------------------------------------------------------------------


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

    found = model(on_round=kill).fit(X)
    assert not pids
    np.testing.assert_allclose(curve(found.trace_), curve(plain.trace_), rtol=1e-8)


def test_a_fit_that_fails_on_a_worker_disturbs_no_later_one(client, plain, monkeypatch):
    def broken(*_):
        raise ArithmeticError("planted")

    def plant(record):
        if record.round == 3:
            monkeypatch.setattr("sipower.dask.rounds._sums", broken)

    failed = model(on_round=plant)
    with pytest.raises(ArithmeticError, match="planted"):
        failed.fit(lazy())
    monkeypatch.undo()
    assert not hasattr(failed, "components_")
    np.testing.assert_allclose(curve(model().fit(lazy()).trace_), curve(plain.trace_), rtol=1e-9)


def test_rows_that_cannot_be_made_again_fail_where_they_are_used(monkeypatch):
    """Not while they arrive at a worker: Dask would wait for ever."""
    sent = pickle.dumps(as_block(V, None), protocol=5)
    assert (pickle.loads(sent).matrix.array == V).all()

    def broken(*_, **__):
        raise MemoryError("planted")

    monkeypatch.setattr("sipower.data.memory.kernels.Dense", broken)
    arrived = pickle.loads(pickle.dumps(pickle.loads(sent)))  # went on before it was used
    assert (arrived.facts.shape, arrived.__sizeof__()) == (V.shape, V.nbytes)
    with pytest.raises(MemoryError, match="planted"):
        _ = arrived.matrix


def test_a_store_that_a_worker_cannot_open_fails_where_it_is_used(tmp_path):
    write_store(sp.csr_array(V), tmp_path / "counts.sipower")
    sent = pickle.dumps(as_block(open_store(tmp_path / "counts.sipower"), None))
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

    found = model(on_round=interrupt)
    with pytest.raises(KeyboardInterrupt):
        found.fit(lazy())
    assert cancelled
    assert (found.status_, found.n_iter_) == ("interrupted", 3)
    assert found.kl_divergence_ == pytest.approx(plain.trace_[3].objective, rel=1e-9)


def test_a_callback_stops_a_fit(client, capsys):
    found = model(on_round=lambda record: record.round == 2, verbose=1).fit(lazy())
    assert (found.status_, found.n_iter_) == ("stopped", 2)
    assert capsys.readouterr().out.count("gap") == 2


def test_a_fit_goes_on_from_its_checkpoint(client, plain, tmp_path):
    file = tmp_path / "fit.npz"
    model(max_iter=5, checkpoint=file, checkpoint_every=0).fit(lazy())
    found = model(checkpoint=file).fit(lazy())
    assert found.n_iter_ == 12
    np.testing.assert_allclose(curve(found.trace_), curve(plain.trace_), rtol=1e-9)
    with pytest.raises(ValueError, match="checkpoint of another data"):
        model(checkpoint=file).fit(lazy(V + 1))


# ---- what travels ------------------------------------------------------------------------------


def test_no_round_is_computed_twice(client, monkeypatch):
    asked = []
    ask = Blocks.ask

    def counted(self, name, *arguments):
        asked.append((name, len(self.groups)))
        return ask(self, name, *arguments)

    monkeypatch.setattr(Blocks, "ask", counted)
    found = model(max_iter=40).fit(lazy())
    rounds = [groups for name, groups in asked if name == "round"]
    assert len(rounds) == found.n_iter_ == 40
    assert set(rounds) <= {1, 2}  # one task a worker
    objectives = curve(found.trace_)
    assert (np.diff(objectives) == 0).any()  # a step was undone, and its point not asked for again


def count_bytes(client):
    """Count what every process writes to its connections; returns how to read the sum."""

    def install():
        from distributed.comm import tcp  # noqa: PLC0415 - in other processes

        if not hasattr(tcp, "written"):
            tcp.written, write = 0, tcp.TCP.write

            async def counted(self, *arguments, **options):
                size = await write(self, *arguments, **options)
                tcp.written += size
                return size

            tcp.TCP.write = counted
        return tcp.written

    return lambda: install() + sum(client.run(install).values())


def test_bytes_of_a_round_are_those_of_the_formula(client):
    """8 m K a group and direction, once from or to the client and once from or to the worker."""
    m, rank, rounds = 2000, 20, 10
    X = lazy(np.random.default_rng(0).poisson(0.02, (400, m)), (200, 200))
    written, totals = count_bytes(client), []
    for count in (2, 2 + rounds):
        before = written()
        KLNMF(rank, random_state=0, tol=0, max_iter=count).fit(X)
        totals.append(written() - before)
    groups = 2
    formula = 8 * m * rank * (groups + groups)
    a_round = (totals[1] - totals[0]) / rounds
    assert formula < a_round < 2 * formula + 50_000


# ---- a start from a sample ---------------------------------------------------------------------


@pytest.mark.parametrize("rows", [EVEN, UNEVEN])
@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
def test_rows_of_any_blocks_come_to_the_driver_in_the_order_asked_for(client, rows, sparse):
    drawn = np.random.default_rng(0).permutation(len(V))[:123]
    found = Blocks(client, lazy(rows=rows, sparse=sparse), None).take(drawn)
    np.testing.assert_array_equal(found.toarray() if sparse else found, V[drawn])


@pytest.mark.parametrize("sparse", [(False, False, True), (True, False, True)])
def test_rows_of_dense_and_sparse_blocks_come_together(client, sparse):
    parts = zip(np.split(V, 3), sparse, strict=True)
    X = da.concatenate([lazy(part, (80,), sparse=is_sparse) for part, is_sparse in parts])
    drawn = np.random.default_rng(0).permutation(len(V))[:123]
    np.testing.assert_array_equal(Blocks(client, X, None).take(drawn).toarray(), V[drawn])
    assert model(init="sample", max_iter=2).fit(X).n_iter_ == 2


def test_a_sampled_start_is_that_of_the_same_rows_at_home(client):
    found = model(init="sample", random_state=3, max_iter=5).fit(lazy())
    matrix = as_matrix(sp.csr_array(V))
    start = Factors(np.zeros((len(V), RANK)), sampled_start(matrix, RANK, 3))
    wanted = solve(Factorization(matrix, RANK), Profiled(), start, stop=Stop(0, 5), trace="every")
    np.testing.assert_allclose(curve(found.trace_), curve(wanted.trace), rtol=1e-9)
    assert curve(found.trace_)[0] < curve(model(max_iter=1).fit(lazy()).trace_)[0]


def test_work_is_spread_over_the_threads_and_few_blocks_move():
    places = spread([10] * 8, ["a"] * 8, {"a": 1, "b": 1})
    assert sorted(places) == ["a"] * 4 + ["b"] * 4
    assert spread([10] * 9, ["a"] * 9, {"a": 2, "b": 1}).count("a") == 6
    even = ["a", "b", "a", "b"]
    assert spread([10, 11, 12, 11], even, {"a": 1, "b": 1}) == even
    assert spread([100, 1, 1], ["a", "a", "a"], {"a": 1, "b": 1}) == ["a", "a", "a"]
    assert spread([0, 0], ["a", "gone"], {"a": 1}) == ["a", "gone"]


def test_blocks_that_all_lie_on_one_worker_are_spread(client):
    one = min(client.nthreads())
    held = client.persist(lazy(rows=(60, 60, 60, 60)), workers=[one])
    wait(held)
    blocks = Blocks(client, held, None)
    assert sorted(len(group) for group in blocks.groups.values()) == [2, 2]
    found = model().fit(held)
    np.testing.assert_allclose(curve(found.trace_), curve(local().trace), rtol=1e-9)
