# SPDX-License-Identifier: BSD-3-Clause
"""Where the chunks of a fit lie, and what travels between them and the driver."""

import numpy as np
import pytest
import scipy.sparse as sp

from lazy_fits import EVEN, RANK, UNEVEN, V, curve, lazy, local, model
from sipower import Stop, as_matrix, solve
from sipower.dask import KLNMF
from sipower.dask.balance import assign_workers
from sipower.dask.factorization import WorkerFactorization
from sipower.dask.loaded_chunk import load_chunk
from sipower.dask.worker_factor import RowTasks
from sipower.dask.worker_rows import WorkerRows
from sipower.kernels import Draw
from sipower.nmf import Factorization, Factors, RowRounds
from sipower.nmf.row_sample import fit_sample

da = pytest.importorskip("dask.array")
wait = pytest.importorskip("distributed").wait


# ---- what travels ------------------------------------------------------------------------------


def test_a_round_is_one_task_for_each_group(client, monkeypatch):
    """A round that is undone costs no more, but for the sums at the point that is kept."""
    calls, submit = [], RowTasks.submit

    def counted(self, name, function, *arguments):
        calls.append(name)
        return submit(self, name, function, *arguments)

    monkeypatch.setattr(RowTasks, "submit", counted)
    problem = WorkerFactorization(WorkerRows(client, lazy(), None), RANK)
    values = []
    solve(
        problem, RowRounds(), problem.start(0), stop=Stop(0, rounds=40),
        on_state=lambda _, state: values.append(state.value),
    )  # fmt: skip
    assert calls.count("update") == 40
    undone = int((np.diff(values) == 0).sum())
    assert undone > 0
    assert calls.count("sums") <= undone + 1  # and once for the first curvatures
    assert calls.count("restore") == 3  # W is gathered and placed again in rounds 11, 21 and 31


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
    """8 m K a group and direction, and 4 m K (K + 1) for curvatures, on each of two connections."""
    m, rank, rounds = 2000, 20, 10
    X = lazy(np.random.default_rng(0).poisson(0.02, (400, m)), (200, 200))
    written, totals = count_bytes(client), []
    for count in (2, 2 + rounds):
        before = written()
        KLNMF(rank, solver="rows", random_state=0, tol=0, max_iter=count).fit(X)
        totals.append(written() - before)
    groups = 2
    formula = groups * (16 * m * rank + 4 * m * rank * (rank + 1))
    a_round = (totals[1] - totals[0]) / rounds  # some rounds also need the sums at another point
    assert formula < a_round < 3 * formula


# ---- a start from a sample ---------------------------------------------------------------------


@pytest.mark.parametrize("rows", [EVEN, UNEVEN])
@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
def test_rows_of_any_blocks_come_to_the_driver_in_the_order_asked_for(client, rows, sparse):
    rows_taken = np.random.default_rng(0).permutation(len(V))[:123]
    result = WorkerRows(client, lazy(rows=rows, sparse=sparse), None).take(rows_taken)
    np.testing.assert_array_equal(result.toarray() if sparse else result, V[rows_taken])


@pytest.mark.parametrize("sparse", [(False, False, True), (True, False, True)])
def test_rows_of_dense_and_sparse_blocks_come_together(client, sparse):
    parts = zip(np.split(V, 3), sparse, strict=True)
    X = da.concatenate([lazy(part, (80,), sparse=is_sparse) for part, is_sparse in parts])
    rows_taken = np.random.default_rng(0).permutation(len(V))[:123]
    np.testing.assert_array_equal(
        WorkerRows(client, X, None).take(rows_taken).toarray(), V[rows_taken]
    )
    assert model(init="sample", max_iter=2).fit(X).n_iter_ == 2


def test_a_sampled_start_is_that_of_the_same_rows_at_home(client):
    result = model(init="sample", random_state=3, max_iter=5).fit(lazy())
    matrix = as_matrix(sp.csr_array(V))
    start = Factors(np.zeros((len(V), RANK)), fit_sample(matrix, RANK, 3))
    expected = solve(Factorization(matrix, RANK), RowRounds(), start, stop=Stop(0, 5))
    assert result.trace_[-2].objective == pytest.approx(expected.value, rel=1e-9)
    assert result.kl_divergence_ < model(max_iter=5).fit(lazy()).kl_divergence_


def test_work_is_spread_over_the_threads_and_few_blocks_move():
    places = assign_workers([10] * 8, ["a"] * 8, {"a": 1, "b": 1})
    assert sorted(places) == ["a"] * 4 + ["b"] * 4
    assert assign_workers([10] * 9, ["a"] * 9, {"a": 2, "b": 1}).count("a") == 6
    even = ["a", "b", "a", "b"]
    assert assign_workers([10, 11, 12, 11], even, {"a": 1, "b": 1}) == even
    assert assign_workers([100, 1, 1], ["a", "a", "a"], {"a": 1, "b": 1}) == ["a", "a", "a"]
    assert assign_workers([0, 0], ["a", "gone"], {"a": 1}) == ["a", "gone"]


def test_blocks_that_all_lie_on_one_worker_are_spread(client):
    one = min(client.nthreads())
    persisted = client.persist(lazy(rows=(60, 60, 60, 60)), workers=[one])
    wait(persisted)
    V = WorkerRows(client, persisted, None)
    assert sorted(len(group) for group in V.groups.values()) == [2, 2]
    result = model().fit(persisted)
    np.testing.assert_allclose(curve(result.trace_), curve(local().trace_), rtol=1e-9)


def test_rows_on_workers_tell_what_the_same_rows_in_memory_tell(client):
    here, there = as_matrix(sp.csr_array(V)), WorkerRows(client, lazy(rows=UNEVEN), None)
    assert (there.shape, there.nnz, there.total) == (here.shape, here.nnz, here.total)
    assert (there.dense, there.has_items, there.has_columns) == (False, False, False)
    np.testing.assert_array_equal(there.mass, here.mass)
    np.testing.assert_array_equal(there.columns.mass, here.T.mass)
    assert there.with_settings(here.dtype) is there
    assert there.with_settings(threads=7).threads == 7
    for act in (there.windows, lambda: there.sample("vectors", 0.5, Draw(0)), lambda: there.array):
        with pytest.raises(ValueError, match=r"on Dask workers|not in memory"):
            act()
    with pytest.raises(ValueError, match=r"`dtype` must be float64, .* got float32"):
        there.with_settings(np.dtype(np.float32))


def test_the_rows_of_a_chunk_are_made_once_and_not_once_a_round():
    chunk = load_chunk(sp.csr_array(V), None)
    rows = chunk.prepared(2).V
    assert rows.threads == 2
    assert chunk.prepared(2).V is rows
    assert chunk.prepared(1).V.threads == 1
    assert rows.array is chunk.matrix.array
    assert rows.columns.mass is rows.column_mass  # summed once, too
    assert load_chunk(np.zeros((0, 3)), None).prepared(2) is None
